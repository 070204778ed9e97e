import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refusal

from synth_audit import registry
from synth_audit.errors import GateError, PlanError
from synth_audit.findings.measurement import MeasurementId, read_scoped
from synth_audit.findings.verdict import Result
from synth_audit.inputs import as_plan
from synth_audit.pipeline import stages as pipeline
from synth_audit.plugins.audit import Status
from synth_audit.report import write_report
from synth_audit.store.workspace import Workspace
from synth_audit.table import arrow

COLUMNS = [
    "audit", "quantity", "setting", "column", "derived_from", "id", "name", "scope",
    "value", "ci_low", "ci_high", "level", "n_requested", "n_achieved", "n_minimum",
    "unit", "direction", "outcome", "insensitive", "copy_low", "copy_high", "worse",
]  # fmt: skip


def test_the_whole_way_ends_in_a_pass(complete):
    evidence = complete.evidence
    assert evidence.verdict is Result.PASS
    assert evidence.intact
    assert {o.audit: o.status for o in evidence.outcomes} == dict.fromkeys(
        registry.default_audits(), Status.MEASURED
    )
    assert set(evidence.tables) == {"source", "train", "control", "synthetic"}
    assert evidence.tables["source"].rows == 240
    assert evidence.tables["train"].rows + evidence.tables["control"].rows == 240
    assert evidence.tables["synthetic"].rows == evidence.tables["train"].rows
    assert evidence.plan_sha256 == complete.plan.digest
    assert complete.workspace.newest.report.stat().st_size > 1000


def test_the_same_plan_and_data_give_the_same_evidence_in_another_place(finished, make_case, tmp_path):
    other = make_case(tmp_path / "elsewhere", audits=[c.name for c in finished.plan.audits])
    pipeline.produce(other.plan, other.workspace)
    write_report(other.workspace)
    assert other.evidence.digest == finished.evidence.digest
    timeless = [
        replace(e, created="", timings={}, attempt=0, ledger=None)
        for e in (other.evidence, finished.evidence)
    ]
    assert timeless[0].to_json() == timeless[1].to_json()
    files = [
        sorted(
            p.relative_to(c.folder) for p in c.folder.rglob("*") if p.is_file() and "outcomes" not in p.parts
        )
        for c in (other, finished)
    ]
    assert files[0] == files[1]


def test_the_identifier_never_reaches_the_candidate(finished):
    assert "person" not in finished.synthetic.column_names
    assert "person" in pq.read_schema(finished.workspace.train).names


def test_the_generator_is_given_no_identifier(case, monkeypatch):
    kind, given = registry.find("generator", "independent").load(), []
    fit = kind.fit

    def watched(self, train, *rest):
        given.append(train.names)
        return fit(self, train, *rest)

    monkeypatch.setattr(kind, "fit", watched)
    pipeline.make_synthetic(case.plan, case.workspace)
    assert given == [("age", "income", "city", "ill")]


def test_real_rows_are_readable_by_their_owner_alone(case, finished):
    assert stat.S_IMODE(case.workspace.restricted.stat().st_mode) == 0o700
    restricted = finished.workspace.restricted
    found = {str(p.relative_to(restricted)): stat.S_IMODE(p.stat().st_mode) for p in restricted.rglob("*")}
    tables = {"train.parquet", "control.parquet", "synthetic.parquet", "exposed_records.parquet"}
    own = f"audits/{finished.evidence.digest}"
    files = {
        "split.json",
        "synthetic.json",
        "journal.json",
        "ledger.jsonl",
        "ledger.head",
        ".gitignore",
        ".journal.lock",
        ".in-use.lock",
        "salt",
        f"{own}/synthetic.parquet",
        f"certificates/{finished.evidence.digest}.sha256",
    }
    folders = ("audits", own, "certificates", "scratch")
    assert found == dict.fromkeys(tables | files, 0o600) | dict.fromkeys(folders, 0o700)


def test_the_review_folder_stays_readable_to_others(finished):
    umask = os.umask(0)
    os.umask(umask)
    for path in finished.workspace.review.rglob("*"):
        most = 0o777 if path.is_dir() else 0o666
        assert stat.S_IMODE(path.stat().st_mode) == most & ~umask


def stands_in(value, content):
    """True when the value stands there by itself, and not as a part of a longer number."""
    alone = rf"(?<![\d.]){re.escape(value)}(?![\d])".encode()
    return value.encode() in content and re.search(alone, content) is not None


def test_no_real_value_is_in_the_review_folder(complete, canary):
    review = {p.name: p.read_bytes() for p in complete.workspace.review.rglob("*") if p.is_file()}
    assert set(review) == {
        "certificate.html",
        "evidence.json",
        "measurements.parquet",
        "newest.json",
        "report.html",
    }
    train = pq.read_table(complete.workspace.train)
    incomes = [str(x) for x in train.column("income").to_pylist()]
    told = {"canary": [canary], "identifiers": train.column("person").to_pylist(), "incomes": incomes}
    for name, content in review.items():
        for kind, values in told.items():
            found = [v for v in values if stands_in(v, content)]
            assert not found, f"{kind} in {name}"
    assert canary in train.column("city").to_pylist(), "the search would not have found anything"
    assert b"north" in review["evidence.json"], "frequent labels are named, rare ones are not"


def test_no_small_count_is_in_the_warnings(make_case, make_people, tmp_path):
    case = make_case(tmp_path / "case", suppression=20, audits=["exact_match"])
    people = make_people()
    twins = people.slice(0, 12)
    ids = pa.array([f"twin-{i}" for i in range(12)])
    both = pa.concat_tables([people, twins.set_column(0, "person", ids)])
    pq.write_table(both, case.folder / "people.parquet")
    (warning,) = pipeline.split_table(case.plan, case.workspace).warnings
    assert warning.startswith("fewer than 20 of ")


def test_no_picture_draws_a_small_count(complete):
    rows = complete.evidence.tables["train"].rows
    drawn = [s for o in complete.evidence.outcomes for s in o.series if "real" in s.lines]
    assert {"city", "age"} <= {s.id.column for s in drawn}
    counts = [share * rows for s in drawn for share in s.lines["real"]]
    assert not [n for n in counts if 0.5 < n < complete.evidence.suppression - 0.5]


def test_measurements_are_a_flat_table(complete):
    table = pq.read_table(complete.workspace.newest.measurements)
    assert table.column_names == COLUMNS
    assert table.num_rows == len(complete.evidence.measurements)
    rows = {r["id"]: r for r in table.to_pylist()}
    for m in complete.evidence.measurements:
        row = rows[str(m.id)]
        assert read_scoped(row["name"], row["scope"]) == m.id
        named = MeasurementId(row["audit"], row["quantity"], row["setting"], row["column"])
        assert replace(m.id, derived_from=None) == named
        assert row["derived_from"] == str(m.id.derived_from or "")
        assert row["value"] == m.value or (np.isnan(row["value"]) and np.isnan(m.value))
        ends = (m.interval.low, m.interval.high, m.interval.level) if m.interval else (None, None, None)
        assert (row["ci_low"], row["ci_high"], row["level"]) == ends
        assert (row["n_requested"], row["n_achieved"]) == (m.n_requested, m.n_achieved)
        assert row["n_minimum"] == m.n_minimum
        assert row["outcome"] == "measured"
        assert (row["unit"], row["direction"]) == (m.unit, str(m.direction))


def test_an_audit_without_measurements_keeps_its_row(finished):
    from synth_audit.verdict.judge import measurement_frame

    first, *rest = finished.evidence.outcomes
    broken = replace(first, status=Status.ERROR, measurements=(), reason="ValueError at x.py:1 in run")
    table = measurement_frame(replace(finished.evidence, outcomes=(broken, *rest)))
    assert table.column_names == COLUMNS
    (row,) = [r for r in table.to_pylist() if r["audit"] == first.audit]
    assert (row["outcome"], row["name"], row["value"]) == ("error", "", None)


@pytest.mark.parametrize("change", [{"seed": 6}, {"split": {"control": 0.3}}, {"level": 0.9}])
def test_stages_of_another_plan_are_refused(case, change):
    plan = case.replan(**change)
    before = case.workspace.newest.evidence.read_bytes()
    error = refusal(pipeline.audit_synthetic, plan, case.workspace)
    assert "the output of the split stage" in error.what
    assert case.workspace.newest.evidence.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "stage"), [("train", "split"), ("control", "split"), ("synthetic", "synthetic")]
)
def test_changed_tables_are_refused(case, name, stage):
    path = getattr(case.workspace, name)
    table = pq.read_table(path)
    place = table.column_names.index("age")
    ages = [19, *table.column("age").to_pylist()[1:]]
    assert ages != table.column("age").to_pylist()
    pq.write_table(table.set_column(place, "age", pa.array(ages)), path)
    error = refusal(pipeline.audit_synthetic, case.plan, case.workspace)
    assert f"the output of the {stage} stage" in error.what
    assert f"run the {stage} stage" in error.fix


def test_a_new_split_makes_the_old_candidate_stale(case):
    table = pq.read_table(case.folder / "people.parquet")
    pq.write_table(table.slice(0, 200), case.folder / "people.parquet")
    pipeline.split_table(case.plan, case.workspace)
    assert "synthetic stage" in refusal(pipeline.audit_synthetic, case.plan, case.workspace).what


def test_train_of_one_split_with_control_of_another_is_refused(case):
    """A crash between two files must not leave control rows that the generator has seen."""
    old = case.workspace.control.read_bytes()
    table = pq.read_table(case.folder / "people.parquet")
    pq.write_table(table.slice(0, 200), case.folder / "people.parquet")
    pipeline.split_table(case.plan, case.workspace)
    pipeline.make_synthetic(case.plan, case.workspace)
    case.workspace.control.write_bytes(old)
    assert "split stage" in refusal(pipeline.audit_synthetic, case.plan, case.workspace).what


@pytest.mark.parametrize("name", ["split_record", "synthetic_record", "train", "control", "synthetic"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_missing_or_damaged_part_names_the_stage_to_run(case, name, damage, canary):
    path = getattr(case.workspace, name)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-20])
    error = refusal(pipeline.audit_synthetic, case.plan, case.workspace)
    assert str(path) in error.where
    assert "stage" in error.fix
    assert canary not in str(error)


def test_another_audit_has_a_folder_of_its_own_and_the_same_audit_does_not(case):
    first = case.workspace.newest
    before = {p.name: p.read_bytes() for p in first.path.iterdir()}
    pipeline.audit_synthetic(case.plan, case.workspace)
    assert case.workspace.newest == first
    plan = case.replan(audits=["exact_match"])
    for stage in (pipeline.split_table, pipeline.make_synthetic, pipeline.audit_synthetic):
        stage(plan, case.workspace)
    assert case.workspace.newest != first
    assert {p.name: p.read_bytes() for p in first.path.iterdir()} == before
    assert {p.name for p in case.workspace.newest.path.iterdir()} == {"evidence.json", "measurements.parquet"}


def only_a_salt(case):
    found = {p.name for p in case.workspace.root.rglob("*") if p.is_file()}
    return found == {case.workspace.salt.name, ".gitignore"}


def test_a_bad_suite_is_found_before_anything_is_fitted(make_case, tmp_path):
    case = make_case(tmp_path / "case", gates="nowhere.json")
    with pytest.raises(GateError, match="nowhere"):
        pipeline.produce(case.plan, case.workspace)
    assert only_a_salt(case)


def test_a_gate_brings_its_audit_along(make_case, tmp_path):
    case = make_case(tmp_path / "case", audits=["marginals"])
    evidence = pipeline.produce(case.plan, case.workspace)
    assert [o.audit for o in evidence.outcomes] == ["marginals", "exact_match"]
    assert evidence.verdict is Result.PASS


@pytest.mark.parametrize("release", ["./people.parquet", {"duckdb": {"path": "db", "query": "FROM t"}}])
def test_a_release_over_the_source_is_found_before_anything_is_fitted(
    make_case, tmp_path, release, monkeypatch
):
    case = make_case(tmp_path / "case", release=release)
    if isinstance(release, dict):
        from synth_audit.sources.duckdb import DuckDB

        monkeypatch.delattr(DuckDB, "write")
    with pytest.raises(PlanError) as caught:
        pipeline.produce(case.plan, case.workspace)
    assert caught.value.where == "release"
    assert only_a_salt(case)


def test_a_table_made_elsewhere_is_found_beside_the_plan(make_case, tmp_path, monkeypatch, make_people):
    case = make_case(tmp_path / "case", generator={"external": {"source": "made.parquet"}})
    made = make_people(50, seed=9).drop_columns(["person"])
    pq.write_table(made, case.folder / "made.parquet")
    monkeypatch.chdir(tmp_path)
    pipeline.split_table(case.plan, case.workspace)
    record = pipeline.make_synthetic(case.plan, case.workspace)
    assert record.table.rows == 50
    assert record.generator.name == "external"
    assert "made elsewhere" in record.generator.privacy.reason


def test_the_plan_may_ask_for_another_number_of_rows(case):
    plan = case.replan(rows=17)
    pipeline.split_table(plan, case.workspace)
    assert pipeline.make_synthetic(plan, case.workspace).table.rows == 17


def test_nothing_temporary_is_left(finished):
    hidden = [p for p in finished.folder.rglob("*") if p.name.startswith(".") or p.suffix == ".tmp"]
    assert {p.name for p in hidden} == {".journal.lock", ".in-use.lock", ".gitignore"}
    assert list(finished.workspace.scratch.iterdir()) == []
    assert json.loads(finished.workspace.newest.evidence.read_text())["table"] == "plan"


def test_a_table_made_before_the_split_is_warned_of(case):
    made = pq.read_table(case.folder / "people.parquet").drop_columns(["person"])
    pq.write_table(made, case.folder / "made.parquet")
    plan = case.replan(generator={"external": {"source": "made.parquet"}})
    evidence = pipeline.produce(plan, case.workspace)
    assert "made elsewhere before this split" in evidence.warnings[0]


def test_a_column_that_the_target_cannot_hold_is_named_before_anything_is_made(make_case, tmp_path):
    case = make_case(tmp_path, release={"duckdb": {"path": "out.duckdb", "table": "people"}})
    data = pq.read_table(tmp_path / "people.parquet")
    wide = pa.array([Decimal(i) for i in range(data.num_rows)], pa.decimal256(60, 2))
    pq.write_table(data.append_column("paid", wide), tmp_path / "people.parquet")
    error = refusal(pipeline.split_table, case.plan, case.workspace)
    assert "'paid'" in error.what
    assert not case.workspace.train.exists()


N = 3000


def test_split_and_candidate_are_the_same_and_no_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_salt: Callable[[Workspace], None]
) -> None:
    rng = np.random.default_rng(1)
    columns = {"id": range(N), "x": rng.normal(size=N), "k": rng.choice(["a", "b"], N)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    plan = {"source": str(tmp_path / "rows.parquet"), "columns": {"id": {"role": "identifier"}}}
    settled = as_plan(plan | {"generator": "resample"})
    found, laid_out = [], []
    for most in (arrow.MOST_HELD, 1000):
        workspace = Workspace(tmp_path / f"out {most}")
        with_salt(workspace)
        with monkeypatch.context() as patch:
            patch.setattr(arrow, "MOST_HELD", most)
            written = arrow.write_arrow
            patch.setattr(
                arrow,
                "write_arrow",
                lambda path, *rows, w=written: laid_out.append(path) or w(path, *rows),
            )
            split = pipeline.split_table(settled, workspace)
            made = pipeline.make_synthetic(settled, workspace)
        found.append((split.source, split.train, split.control, made.table))
        assert not list(workspace.scratch.iterdir())
    assert found[0] == found[1]
    assert len(laid_out) == 5, "the source and its two parts, train and the candidate, the second time"
    assert all(path.is_relative_to(workspace.scratch) for path in laid_out)
