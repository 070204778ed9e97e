"""A plan's ``coarsen``: applied before the audit, told in the evidence, and no place to hide a copy in."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee, Unit
from synth_audit.errors import PlanError
from synth_audit.examination.examine import Views
from synth_audit.execution.context import RunContext
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.coarsening import coarsening_of, without_void_guarantee
from synth_audit.pipeline.making import real_tables
from synth_audit.pipeline.rerun import rerun
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.fitting import CoarsenedModel, FitRecipe, fit_shared
from synth_audit.store.evidence import GeneratorRecord
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.verdict.suite import load_suite

COLUMNS = {"age": {"round_to": 10, "top": 80}, "city": {"merge_rarer_than": 10}}
CHOSEN = {"columns": COLUMNS, "chosen_on": "real data", "tries": 5}


def gated(case, make_gate, *ids):
    """The case judged by copies and by these gates of the suite that ships."""
    shipped = [dict(g.plain) for g in load_suite("release", case.folder).gates if g.id in ids]
    case.set_gates(make_gate("copies", "exact_match.excess", 0.2), *shipped)


def results(evidence):
    return {g.gate: g.result for g in evidence.gates.results}


def test_the_release_is_made_of_coarser_values_as_they_were_audited(case, canary):
    plan = case.replan(coarsen={"columns": COLUMNS}, columns={"person": {"role": "identifier"}})
    evidence = pipeline.produce(plan, case.workspace)
    assert evidence.verdict is Result.PASS
    record = pipeline.release_synthetic(plan, case.workspace)
    released = pq.read_table(record.where)
    assert set(released["age"].to_pylist()) <= {*range(20, 90, 10)}
    assert set(released["city"].to_pylist()) == {"north", "south", "east", "other"}
    assert canary in pq.read_table(case.workspace.train)["city"].to_pylist()
    [told] = [w for w in evidence.warnings if "coarser" in w]
    assert "'age' rounded to 10, at most 80; 'city' labels of fewer than 10 rows merged into 'other'" in told
    assert evidence.plan["coarsen"] == plan.plain()["coarsen"]
    assert all(check.holds for check in rerun(plan, case.workspace))
    assert all(check.holds is not False for check in api.verify(case.workspace.root))


def test_without_rules_the_same_fit_draws_the_same_rows(case):
    before = case.synthetic
    pipeline.produce(case.replan(coarsen={"columns": {"age": {"round_to": 10}}}), case.workspace)
    after = case.synthetic
    assert after.drop_columns(["age"]) == before.drop_columns(["age"])
    assert np.array_equal(after["age"], np.rint(before["age"].to_numpy() / 10) * 10)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"income": {"round_to": 1000}}, marks=pytest.mark.slow),
        {"income": {"round_to": 5000}} | COLUMNS,
    ],
)
def test_copies_of_which_values_are_rounded_are_copies_still(case, make_gate, columns):
    gated(case, make_gate, "recognised_people")
    made = pq.read_table(case.workspace.train).drop_columns(["person"])
    pq.write_table(made, case.folder / "made.parquet")
    plan = case.replan(generator={"external": {"source": "made.parquet"}}, coarsen={"columns": columns})
    evidence = pipeline.produce(plan, case.workspace)
    assert results(evidence)["copies"] is not Result.PASS
    assert results(evidence)["recognised_people"] is not Result.PASS
    assert evidence.measurement("exact_match.share").value == 1
    assert not set(case.synthetic["income"].to_pylist()) & set(made["income"].to_pylist())


def test_the_label_that_others_are_merged_into_is_no_novel_content(case, make_gate):
    gated(case, make_gate, "novel_content")
    cities = ["north", "south", "east", "Zanzibar-7391"]
    columns = {"person": {"role": "identifier"}, "city": {"categories": cities}}
    rules = {"city": {"merge": ["Zanzibar-7391", "east"], "into": "elsewhere"}}
    evidence = pipeline.produce(
        case.replan(coarsen={"columns": rules}, columns=columns, rules=[], audits=["constraints"]),
        case.workspace,
    )
    assert evidence.verdict is Result.PASS
    assert set(case.synthetic["city"].to_pylist()) == {"north", "south", "elsewhere"}
    assert evidence.measurement("constraints.worst_violations").value == 0


def test_usefulness_is_compared_with_real_rows_as_they_are(case):
    evidence = [
        pipeline.produce(case.replan(coarsen=coarsen), case.workspace)
        for coarsen in (None, {"columns": {"income": {"round_to": 50_000}}})
    ]
    lost = [e.measurement("marginals.worst_total_variation").value for e in evidence]
    assert lost[0] < 0.2 < 0.4 < lost[1]


def test_a_choice_made_on_real_data_widens_every_interval_and_is_told(case):
    evidence = pipeline.produce(case.replan(coarsen=CHOSEN), case.workspace)
    assert evidence.level == pytest.approx(0.99)
    intervals = [m.interval for m in evidence.measurements if m.interval]
    assert intervals
    assert {round(i.level, 9) for i in intervals} == {0.99}
    assert any("chosen on real data, among 5 candidates" in w for w in evidence.warnings)


def test_a_choice_made_on_real_data_voids_a_guarantee():
    promise = PrivacyGuarantee(
        unit=Unit.ROW, neighbouring=Neighbouring.ADD_OR_REMOVE, epsilon=1.0, delta=0.0, accountant="a test",
        mechanisms=(), assumptions=(), not_protected=(),
    )  # fmt: skip
    record = GeneratorRecord("toy", {}, PrivacyAccount(guarantee=promise))
    fixed = without_void_guarantee(record, parse_plan({"coarsen": {"columns": COLUMNS}}))
    chosen = without_void_guarantee(record, parse_plan({"coarsen": CHOSEN}))
    assert fixed.privacy.guarantee is promise
    assert chosen.privacy.guarantee is None
    assert "chosen on real data" in chosen.privacy.reason


def test_games_meet_coarser_draws_of_a_generator_that_learns_rows_as_they_are(case):
    plan = case.replan(coarsen={"columns": COLUMNS})
    real, control = real_tables(plan, case.workspace)
    subject = pipeline.subject_of(plan, real, control, real.released_only())
    fitted = fit_shared(FitRecipe.of(subject), real.released_only(), 0, RunContext())
    assert isinstance(fitted.model, CoarsenedModel)
    assert set(fitted.model.sample(50, np.random.default_rng(0)).column("age").to_pylist()) <= {
        *range(20, 90, 10)
    }
    views = Views.of(subject)
    known = {name: views.met_by(audit) for name, audit in plan.build_audits().items()}
    assert known["exact_match"] is views.coarse
    assert known["marginals"] is views.plain
    game = parse_plan({"audits": ["membership_game"]}).build_audits()["membership_game"]
    assert views.met_by(game) is views.plain


def test_files_made_elsewhere_are_audited_as_they_are(make_people):
    with pytest.raises(PlanError, match="made elsewhere"):
        api.audit(make_people(), None, make_people(seed=1), {"coarsen": {"columns": COLUMNS}})


DATA = pa.table(
    {"key": ["a", "b", "c"], "n": [1, 2, 40], "x": [0.5, 1.0, 2.25], "k": ["u", "v", "u"],
     "day": pa.array([0, 400, 900], pa.date32()), "yes": [True, False, True], "code": [1, 2, 1],
     "whole": [1.0, 3.0, 8.0]}
)  # fmt: skip
SPECS = {
    "whole": ColumnSpec(kind="integer"),
    "key": ColumnSpec(role="identifier"),
    "n": ColumnSpec(bounds=(0, 50)),
    "k": ColumnSpec(categories=("u", "v")),
}


@pytest.mark.parametrize(
    ("column", "rule", "says"),
    [
        ("nn", {"round_to": 5}, "none that is released"),
        ("key", {"merge_rarer_than": 5}, "none that is released"),
        ("k", {"round_to": 5}, "is categorical"),
        ("n", {"merge": ["1"]}, "is integer, of which no labels merge"),
        ("yes", {"merge": ["true"]}, "is boolean"),
        ("n", {"round_to": "1 day"}, "is integer"),
        ("day", {"round_to": 3}, "is datetime"),
        ("n", {"round_to": 1}, "does nothing"),
        ("x", {"round_to": 0.01}, "does nothing"),
        ("day", {"round_to": "1 day"}, "does nothing"),
        ("n", {"top": 50}, "does nothing"),
        ("n", {"round_to": 2.5}, "cannot hold the step"),
        ("n", {"top": 7.5}, "cannot hold the top"),
        ("n", {"bottom": 1e300}, "cannot hold the bottom"),
        ("whole", {"round_to": 2.5}, "cannot hold the step"),
        ("day", {"round_to": "30 hours"}, "cannot hold the step"),
        ("n", {"round_to": 5, "top": 42}, "no multiple of its step"),
        ("k", {"merge": ["w"]}, "without 'w'"),
        ("code", {"merge_rarer_than": 2}, "cannot hold 'other'"),
    ],
)
def test_a_rule_that_does_not_suit_its_column_is_named(column, rule, says):
    plan = parse_plan({"coarsen": {"columns": {column: rule}}})
    with pytest.raises(PlanError) as caught:
        coarsening_of(plan, infer_schema(DATA, SPECS))
    assert says in str(caught.value)
    assert repr(column) in str(caught.value)
    assert caught.value.where == f"coarsen.columns.{column}"


def test_a_mistake_shows_before_the_generator_is_fitted(case, monkeypatch):
    plan = case.replan(coarsen={"columns": {"age": {"round_to": 1}}})
    with pytest.raises(PlanError, match="'age'"):
        pipeline.split_table(plan, case.workspace)
