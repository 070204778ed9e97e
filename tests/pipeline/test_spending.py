"""Spending and attempts on a table are counted before they begin, in one ledger that cannot be cut."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from synth_audit import api
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.dp.guarantee import Neighbouring, Unit
from synth_audit.errors import BudgetSpent, DataError, LedgerDamaged, PlanError, SynthAuditError
from synth_audit.execution.context import RunContext
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.making import real_tables
from synth_audit.pipeline.rerun import rerun
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.fitting import FitRecipe, fit_shared
from synth_audit.plugins.generator import GeneratorInfo
from synth_audit.report import render_report
from synth_audit.store.files import write_parquet
from synth_audit.store.journal import LEDGER as FILE
from synth_audit.store.journal import read_journal
from synth_audit.store.ledger import Ledger, table_ledger
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import fingerprint
from synth_audit.table.table import Table
from synth_audit.verdict.criteria import PRIVACY_BUDGET
from synth_audit.verdict.privacy_budget import Promise, promise_results

NOISE = 5.0
BUDGET = {"epsilon": 1.2, "delta": 1e-5, "rows_per_entity": 1}


@dataclass(frozen=True)
class NoisyMean:
    """Normal numbers about one noisy mean."""

    mean: float

    def sample(self, n, rng):
        return pa.table({"x": np.clip(rng.normal(self.mean, 0.1, n), 0, 1)})


@dataclass(frozen=True)
class ToyGaussian:
    """Sees one sum of values in [0, 1], with Gaussian noise."""

    fails: bool = False
    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Toy", summary="One noisy sum.", cost="instant")

    def fit(self, train, context):
        assert context.public_domain.columns["x"].bounds == (0, 1)
        context.accountant.domain("declared")
        context.accountant.gaussian(NOISE, what="the sum")
        if self.fails:
            raise RuntimeError
        total = float(train.numbers("x").sum() + context.noise.gaussian(NOISE, 1)[0])
        return Drawn(NoisyMean(total / 200), train.schema)


@dataclass(frozen=True)
class Drawn:
    model: NoisyMean
    schema: object

    def sample(self, n, rng):
        return Table(self.schema, self.model.sample(n, rng))


@pytest.fixture
def spending(tmp_path, make_case, plug_in):
    """A case whose generator is the toy."""
    plug_in("toy", ToyGaussian)
    case = make_case(tmp_path / "case")
    rng = np.random.default_rng(0)
    data = {"key": [f"k{i}" for i in range(200)], "x": np.round(rng.uniform(0, 1, 200), 4)}
    pq.write_table(pa.table(data), case.folder / "people.parquet")
    plan = {
        "source": {"parquet": {"path": "people.parquet"}},
        "columns": {"key": {"role": "identifier"}, "x": {"bounds": [0, 1]}},
        "generator": "toy",
        "rows": 100,
        "audits": ["exact_match"],
        "gates": "gates.json",
        "privacy": BUDGET,
    }
    (case.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    return case


def run(case):
    return pipeline.produce(case.plan, case.workspace)


def gate_of(evidence, name=PRIVACY_BUDGET):
    return next(g for g in evidence.gates.results if g.gate == name)


def debits(case):
    return table_ledger(case.workspace, read_journal(case.workspace)).debits()


def test_runs_compose_until_the_budget_is_spent(spending):
    first, second = run(spending), run(spending)
    one, two = (e.generator.privacy for e in (first, second))
    assert one.guarantee.epsilon == pytest.approx(one.table_epsilon)
    assert one.guarantee.epsilon < two.table_epsilon < 2 * one.guarantee.epsilon
    assert one.guarantee.unit is Unit.ENTITY
    assert gate_of(second).result is Result.PASS
    before = spending.workspace.synthetic.read_bytes()
    with pytest.raises(BudgetSpent, match="of this table is spent"):
        run(spending)
    assert len(debits(spending)) == 2
    assert spending.workspace.synthetic.read_bytes() == before


def test_the_report_says_what_is_guaranteed_and_what_is_not(spending):
    page = render_report(run(spending))
    for words in ("one entity", "The sum", "It holds if", "evidence, measurements and report"):
        assert words.lower() in page.lower()


def test_what_was_debited_before_a_crash_stays_spent(spending):
    spending.replan(generator={"toy": {"fails": True}})
    with pytest.raises(RuntimeError):
        run(spending)
    assert len(debits(spending)) == 1
    spending.replan(generator="toy")
    run(spending)
    with pytest.raises(BudgetSpent):
        pipeline.make_synthetic(spending.plan, spending.workspace)


def test_a_stage_that_runs_again_spends_again_and_a_rerun_does_not(spending):
    run(spending)
    assert not any(c.holds is False for c in rerun(spending.plan, spending.workspace))
    assert len(debits(spending)) == 1
    pipeline.make_synthetic(spending.plan, spending.workspace)
    assert len(debits(spending)) == 2


def test_a_ledger_that_is_gone_beside_a_paid_candidate_is_an_error(spending):
    pipeline.split_table(spending.plan, spending.workspace)
    pipeline.make_synthetic(spending.plan, spending.workspace)
    (spending.workspace.restricted / FILE).unlink()
    with pytest.raises(LedgerDamaged, match="missing"):
        pipeline.make_synthetic(spending.plan, spending.workspace)


def test_as_many_rows_as_train_void_the_guarantee(spending):
    spending.replan(rows=None)
    evidence = run(spending)
    assert evidence.generator.privacy.guarantee is None
    assert evidence.generator.privacy.mechanisms
    assert "public constant" in gate_of(evidence).explanation
    assert evidence.verdict is Result.FAIL
    rerun(spending.plan, spending.workspace)
    assert len(debits(spending)) == 1, "without a guarantee it spent all the same"


@pytest.mark.parametrize(("rows", "result"), [(None, Result.FAIL), (2, Result.PASS)])
def test_entities_with_several_rows_need_a_bound(spending, rows, result):
    table = pq.read_table(spending.folder / "people.parquet")
    doubled = table.set_column(0, "key", pa.array([f"k{i // 4}" for i in range(200)]))
    pq.write_table(doubled, spending.folder / "people.parquet")
    spending.replan(privacy={"epsilon": 3.0, "delta": 1e-5} | ({"rows_per_entity": rows} if rows else {}))
    evidence = run(spending)
    assert gate_of(evidence).result is result
    assert evidence.generator.privacy.guarantee.unit is (Unit.ENTITY if rows else Unit.ROW)


def test_without_a_budget_nothing_can_be_spent(spending):
    spending.replan(privacy=None)
    with pytest.raises(BudgetSpent, match="no privacy budget is declared"):
        run(spending)
    assert debits(spending) == ()


def test_a_generator_that_buys_nothing_keeps_no_promise(spending):
    spending.replan(generator="independent")
    evidence = run(spending)
    assert "spent nothing on privacy" in gate_of(evidence).explanation
    assert evidence.verdict is Result.FAIL


def test_games_spend_beside_the_ledger(spending):
    run(spending)
    plan = spending.plan
    real, control = real_tables(plan, spending.workspace)
    subject = pipeline.subject_of(plan, real, control, real)
    fitted = fit_shared(FitRecipe.of(subject), real.released_only(), 0, RunContext())
    assert fitted.guarantee.epsilon == pytest.approx(
        pipeline.SyntheticRecord.read(spending.workspace.synthetic_record).generator.privacy.guarantee.epsilon
    )
    assert fitted.spent
    assert len(debits(spending)) == 1


@pytest.mark.parametrize(
    "privacy",
    [{}, {"epsilon": 0}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "per_fit": 2},
     {"epsilon": 1, "rows_per_entity": 0}, {"epsilon": 1, "total": 3}, {"epsilon": float("inf")}],
)  # fmt: skip
def test_budgets_that_are_none(privacy):
    with pytest.raises(PlanError):
        parse_plan({"privacy": privacy})


def test_a_budget_is_part_of_what_the_digest_of_a_plan_covers():
    digests = {parse_plan({"privacy": {"epsilon": e}}).digest for e in (1, 2)} | {parse_plan({}).digest}
    assert len(digests) == 3
    assert parse_plan({"privacy": {"epsilon": 1}}).fit_terms.neighbouring is Neighbouring.ADD_OR_REMOVE


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epsilon": 0.1}, "was declared"),
        ({"delta": 1e-9}, "larger delta"),
        ({"account": PrivacyAccount(guarantee=None, reason="a test")}, "no guarantee: a test"),
    ],
)
def test_what_does_not_keep_the_declared_budget_fails(spending, changes, says):
    evidence = run(spending)
    promise = Promise.of(evidence.plan, evidence.generator.privacy)
    assert promise_results(promise, ())[0].result is Result.PASS
    [budget, _] = promise_results(replace(promise, **changes), ())
    assert budget.result is Result.FAIL
    assert says in budget.explanation
    assert budget.blocking


def test_numbers_outside_the_declared_bounds_are_refused_or_set_to_them_and_counted(spending):
    """Under a budget the noise is for the declared range: what lies beyond would be hidden too little."""
    path = spending.folder / "people.parquet"
    people = pq.read_table(path)
    wide = people["x"].to_numpy() * 1.5
    pq.write_table(people.set_column(1, "x", pa.array(wide)), path)
    with pytest.raises(DataError, match="outside its declared bounds"):
        run(spending)
    assert not debits(spending)
    columns = {"key": {"role": "identifier"}, "x": {"bounds": [0, 1], "outside": "clip"}}
    spending.replan(columns=columns)
    evidence = run(spending)
    [said] = [text for text in evidence.warnings if "declared bounds" in text]
    assert said.startswith(f"{(wide > 1).sum()} values of column 'x'")
    assert pq.read_table(spending.workspace.train)["x"].to_numpy().max() == 1
    assert not any(c.holds is False for c in rerun(spending.plan, spending.workspace))


def ledger_of(case):
    return table_ledger(case.workspace, read_journal(case.workspace))


def file_of(case):
    return case.workspace.restricted / FILE


def told(case):
    return {c.what: c.detail for c in api.verify(case.workspace.root) if c.holds is False}


def cut(case, lines):
    path = file_of(case)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


def test_evidence_and_report_carry_the_number_of_the_attempt(case):
    evidence = case.evidence
    [attempt] = ledger_of(case).attempts()
    assert (attempt.number, attempt.verdict, attempt.evidence) == (1, evidence.verdict, evidence.digest)
    assert attempt.candidate == evidence.tables["synthetic"].hmac
    assert evidence.attempt == 1
    assert ledger_of(case).extends(evidence.ledger)
    assert "1 on this table" in render_report(evidence)
    assert told(case) == {}


def test_an_attempt_that_breaks_off_counts(case, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    plan = case.replan(seed=6)
    monkeypatch.setattr(pipeline, "examine", interrupted)
    pipeline.split_table(plan, case.workspace)
    pipeline.make_synthetic(plan, case.workspace)
    with pytest.raises(KeyboardInterrupt):
        pipeline.audit_synthetic(plan, case.workspace)
    monkeypatch.undo()
    evidence = pipeline.audit_synthetic(plan, case.workspace)
    assert evidence.attempt == 3
    first = read_journal(case.workspace).audits[0].digest
    assert [a.evidence for a in ledger_of(case).attempts()] == [first, "", evidence.digest]
    assert [e.number for e in read_journal(case.workspace).audits] == [1, 3]


def test_the_same_evidence_found_again_is_counted_and_stays_under_its_first_number(case):
    again = pipeline.audit_synthetic(case.plan, case.workspace)
    assert again.attempt == 1
    assert [a.evidence for a in ledger_of(case).attempts()] == [again.digest] * 2
    assert told(case) == {}


def test_candidates_count_on_the_table_they_were_made_from(tmp_path):
    home = Workspace(tmp_path / "out").prepare()
    assert table_ledger(home.candidate("a"), None).folder == home.restricted


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_ledger_that_was_cut_is_refused(case, lines):
    cut(case, lines)
    assert "ledger of the table" in told(case)
    with pytest.raises(SynthAuditError, match="ledger"):
        pipeline.release_synthetic(case.plan, case.workspace)
    assert not (case.folder / "out-of-the-house").exists()


def test_a_ledger_that_is_gone_beside_history_is_refused(case):
    file_of(case).unlink()
    assert told(case)["ledger of the table"] == "the ledger is missing"
    for stage in (pipeline.release_synthetic, pipeline.audit_synthetic):
        with pytest.raises(SynthAuditError, match="ledger is missing"):
            stage(case.plan, case.workspace)
    assert not file_of(case).exists(), "none takes its place"


def test_a_ledger_of_another_table_is_refused(case):
    file_of(case).unlink()
    Ledger(case.workspace.restricted).mark.unlink()
    other = Ledger(case.workspace.restricted)
    other.judged(other.attempt(plan="a", candidate="b"), verdict="pass", evidence=case.evidence.digest)
    assert told(case)["ledger of the table"] == "lines that it held are gone or changed"


def test_a_failure_that_is_found_again_governs_again(case, make_gate):
    """A pass, a failure on the same rows, a pass under other gates, and the very same failure."""
    for limit in (-0.5, 0.3, -0.5):
        case.set_gates(make_gate("copies", "exact_match.excess", limit))
        last = pipeline.audit_synthetic(case.plan, case.workspace)
    journal = read_journal(case.workspace)
    assert len({e.candidate for e in journal.audits}) == 1
    assert journal.governing(journal.audits[0].candidate).digest == last.digest
    assert [e.verdict for e in journal.audits] == ["pass", "pass", "fail"]
    assert len(ledger_of(case).attempts()) == 4
    with pytest.raises(SynthAuditError, match="the verdict is fail"):
        pipeline.release_synthetic(case.plan, case.workspace)
    for entry in journal.audits[:2]:
        older = {c.what: c.holds for c in api.verify(case.workspace.audit(entry.digest).path)}
        assert older["newest attempt on these rows"] is False


def test_the_rows_that_are_kept_are_those_that_were_audited(case, monkeypatch):
    """Another run puts another candidate in the place of the one that is being audited."""
    plan, true_examine = case.replan(seed=6), pipeline.examine
    pipeline.split_table(plan, case.workspace)
    pipeline.make_synthetic(plan, case.workspace)
    audited = fingerprint(case.synthetic)

    def raced(*args, **kwargs):
        write_parquet(case.workspace.synthetic, case.synthetic.slice(1), private=True)
        return true_examine(*args, **kwargs)

    monkeypatch.setattr(pipeline, "examine", raced)
    evidence = pipeline.audit_synthetic(plan, case.workspace)
    kept = pq.read_table(case.workspace.kept_rows(evidence.digest))
    assert fingerprint(kept) == audited == evidence.tables["synthetic"].sha256
    assert fingerprint(case.synthetic) != audited
    assert list(case.workspace.scratch.iterdir()) == []
