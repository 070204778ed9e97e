"""With the salt a run repeats to the last digit; without it, or with anything changed, that is told."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import api, registry
from synth_audit.dp.guarantee import Mechanism, MechanismRecord
from synth_audit.errors import DataError
from synth_audit.execution.seeds import Salt
from synth_audit.generators.independent import Independent, IndependentModel
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.rerun import rerun
from synth_audit.store.workspace import Workspace
from synth_audit.table import arrow

TABLES = ("source", "train", "control", "synthetic")


def found(case, **more):
    return {c.what: c for c in rerun(case.plan, case.workspace, **more)}


def states(checks):
    """What holds, what does not, what cannot be told: of the four tables."""
    return [checks[f"content of {name}"].holds for name in TABLES]


def files(case):
    return {p: p.read_bytes() for p in case.workspace.root.rglob("*") if p.is_file()}


def test_a_run_repeats_to_the_last_digit_and_nothing_is_written(case):
    before = files(case)
    checks = found(case)
    assert all(c.holds for c in checks.values())
    assert states(checks) == [True] * 4
    assert {"measurements of exact_match", "measurements of marginals", "verdict"} <= set(checks)
    assert "agree to the last digit" in checks["measurements of marginals"].detail
    assert files(case) == before


def test_large_tables_are_mapped_and_repeat_as_well(case, monkeypatch):
    before, laid_out = files(case), []
    write = arrow.write_arrow
    monkeypatch.setattr(arrow, "MOST_HELD", 100)
    monkeypatch.setattr(arrow, "write_arrow", lambda path, *rows: laid_out.append(path) or write(path, *rows))
    assert all(c.holds for c in found(case).values())
    assert len(laid_out) >= len(TABLES)
    assert all(path.is_relative_to(case.workspace.scratch) for path in laid_out)
    assert files(case) == before


def test_the_same_plan_data_and_salt_give_the_same_evidence(case, tmp_path, with_salt):
    again, other = Workspace(tmp_path / "again"), Workspace(tmp_path / "other")
    with_salt(again)
    assert pipeline.produce(case.plan, again).digest == case.evidence.digest
    assert pq.read_table(again.synthetic).equals(case.synthetic)
    assert pipeline.produce(case.plan, other).tables != case.evidence.tables


def test_the_order_in_which_a_warehouse_gives_its_rows_does_not_matter(case):
    path = case.folder / "people.parquet"
    data = pq.read_table(path)
    pq.write_table(data.take(np.random.default_rng(0).permutation(data.num_rows)), path)
    assert all(c.holds for c in found(case).values())


def test_tables_that_are_gone_are_made_again(case):
    for path in (case.workspace.train, case.workspace.control, case.workspace.synthetic):
        path.unlink()
    shutil.rmtree(case.workspace.restricted / "audits", ignore_errors=True)
    assert all(c.holds for c in found(case).values())


def test_a_source_that_changed_is_told_and_what_was_kept_is_repeated(case):
    path = case.folder / "people.parquet"
    data = pq.read_table(path)
    changed = data.set_column(1, "age", pa.array([17 + (i % 60) for i in range(data.num_rows)]))
    pq.write_table(changed, path)
    checks = found(case)
    assert states(checks) == [False, False, False, True]
    assert checks["measurements of exact_match"].holds
    path.unlink()
    checks = found(case)
    assert states(checks) == [None, None, None, True]
    assert "does not exist" in checks["content of source"].detail
    case.workspace.train.unlink()
    checks = found(case)
    assert states(checks) == [None, None, None, None]
    assert checks["measurements"].holds is None


def test_another_candidate_is_told(case, monkeypatch):
    true_sample = IndependentModel.sample
    monkeypatch.setattr(
        IndependentModel, "sample", lambda self, n, rng: true_sample(self, n, np.random.default_rng(9))
    )
    checks = found(case)
    assert states(checks) == [True, True, True, False]
    assert checks["measurements"].detail == "no synthetic that agrees with the evidence"


def test_a_generator_that_fails_is_told_without_a_value(case, monkeypatch, canary):
    def broken(self, n, rng):
        raise ValueError(canary)

    monkeypatch.setattr(IndependentModel, "sample", broken)
    check = found(case)["content of synthetic"]
    assert check.holds is False
    assert check.detail.startswith("ValueError at")


def test_other_measurements_are_named(case, monkeypatch):
    audit = registry.find("audit", "marginals").load()
    true_run = audit.run

    def shifted(self, subject, context):
        findings = true_run(self, subject, context)
        first, *rest = findings.measurements
        return replace(findings, measurements=(replace(first, value=first.value + 1e-3), *rest))

    monkeypatch.setattr(audit, "run", shifted)
    checks = found(case)
    odd = [what for what, c in checks.items() if c.holds is False]
    assert odd == ["measurements of marginals"]
    assert "differ" in checks["measurements of marginals"].detail
    assert "other versions" not in checks["measurements of marginals"].detail


@pytest.fixture(params=["no seed", "privacy budget", "finished table"])
def once(request, make_case, tmp_path, monkeypatch):
    """A run whose candidate cannot be made again; drawing it once more is an error."""
    generator = "independent"
    case = make_case(tmp_path / "case", audits=["exact_match"])
    if request.param == "finished table":
        made = pq.read_table(case.folder / "people.parquet").drop_columns(["person"]).slice(0, 60)
        pq.write_table(made, case.folder / "made.parquet")
        case.replan(generator={"external": {"source": "made.parquet"}})
    elif request.param == "no seed":
        cls = registry.find("generator", generator).load()
        monkeypatch.setattr(cls, "repeats", False, raising=False)
    else:
        true_fit = Independent.fit

        def paid(self, train, context):
            spent = MechanismRecord(what="a test", mechanism=Mechanism.PURE, epsilon=1.0)
            context.accountant._records.append(spent)  # as if there had been a budget
            return true_fit(self, train, context)

        monkeypatch.setattr(Independent, "fit", paid)
    pipeline.produce(case.plan, case.workspace)
    monkeypatch.setattr("synth_audit.pipeline.making.fit_plan", None)
    if request.param == "finished table":
        (case.folder / "made.parquet").unlink()
    return case


def test_what_cannot_be_made_again_is_compared_by_hash_and_audited_as_it_was_kept(once):
    checks = found(once)
    assert all(c.holds for c in checks.values())
    assert "the one that was kept, since its" in checks["content of synthetic"].detail
    assert checks["measurements of exact_match"].holds
    for path in once.workspace.restricted.rglob("synthetic.parquet"):
        data = pq.read_table(path).slice(1)
        path.unlink()  # it may be one file in two places
        pq.write_table(data, path)
    checks = found(once)
    assert checks["content of synthetic"].holds is False
    assert checks["measurements"].holds is None
    for path in once.workspace.restricted.rglob("synthetic.parquet"):
        path.unlink()
    check = found(once)["content of synthetic"]
    assert check.holds is None
    assert "none is kept" in check.detail


def test_another_plan_another_salt_and_no_salt_are_errors(case):
    plan = case.plan
    with pytest.raises(DataError, match="not of a run with this plan"):
        rerun(case.replan(seed=6), case.workspace)
    case.workspace.salt.write_text(Salt(bytes(32)).text())
    with pytest.raises(DataError, match="under another salt"):
        rerun(plan, case.workspace)
    case.workspace.salt.unlink()
    with pytest.raises(DataError, match="the salt is missing"):
        rerun(plan, case.workspace)


def test_an_audit_of_files_is_nothing_to_repeat(case, tmp_path):
    tables = [getattr(case.workspace, name) for name in ("train", "control", "synthetic")]
    plan = {"columns": {"person": {"role": "identifier"}}, "audits": ["exact_match"]}
    api.audit(*tables, plan | {"gates": str(case.folder / "gates.json")}, out=tmp_path / "out")
    with pytest.raises(DataError, match="not of a run") as caught:
        api.rerun(case.folder / "plan.yaml", tmp_path / "out")
    assert "verify" in caught.value.fix


def test_a_candidate_of_a_sweep_repeats(make_case, tmp_path):
    frontier = {
        "generators": ["independent", "resample"],
        "privacy": "exact_match.excess",
        "utility": "marginals.total_variation",
    }
    case = make_case(tmp_path / "case", audits=["exact_match", "marginals"], frontier=frontier)
    plan = case.folder / "plan.yaml"
    api.frontier(plan, case.workspace.root)
    checks = api.rerun(plan, case.workspace.root, candidate="resample")
    assert all(c.holds for c in checks)
    assert "content of synthetic" in {c.what for c in checks}
