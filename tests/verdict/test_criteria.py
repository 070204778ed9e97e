"""Which questions were answered: by gates that were decided, never by an audit that merely ran."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import api, registry
from synth_audit.build import resource_folder
from synth_audit.errors import GateError, ReleaseRefused
from synth_audit.examination.audit_runner import run_audits
from synth_audit.examination.examine import with_ratios
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Interval, Measurement, MeasurementId, read_scoped
from synth_audit.findings.verdict import FITNESS, Fitness, GateResult, Result, TableCheck
from synth_audit.pipeline import stages
from synth_audit.pipeline.release import refuse_unless_allowed
from synth_audit.pipeline.verify import verify
from synth_audit.plugins.audit import AuditOutcome, Status, Subject
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table
from synth_audit.verdict.criteria import ANSWERS, CRITERIA, AnswerState, answers, answers_result
from synth_audit.verdict.judge import judge
from synth_audit.verdict.suite import load_suite, parse_suite
from synth_audit.verdict.table_checks import contract_key

RISKS = {"singling_out": "singling out", "linkability": "linkability", "exact_match": "singling out"}


def outcome(audit, status=Status.MEASURED):
    return AuditOutcome(audit, "privacy", status, info=SimpleNamespace(risk=RISKS[audit]))


def result(audit, found, blocking=True, name="limit"):
    return GateResult(name, name, found, blocking, "", "", measurement=MeasurementId(audit, "risk"))


def state_of(criterion, outcomes, results):
    return next(a for a in answers(outcomes, results) if a.criterion == criterion)


@pytest.mark.parametrize(
    ("results", "state"),
    [
        ([result("singling_out", Result.PASS)], "within limit"),
        ([result("singling_out", Result.FAIL)], "beyond limit"),
        ([result("singling_out", Result.INSUFFICIENT, name="blind_one")], "insufficient evidence"),
        (
            [result("singling_out", Result.INSUFFICIENT), result("exact_match", Result.PASS)],
            "insufficient evidence",
        ),
        ([result("singling_out", Result.INSUFFICIENT), result("exact_match", Result.FAIL)], "beyond limit"),
        (
            [result("singling_out", Result.INSUFFICIENT), result("exact_match", Result.FAIL, False)],
            "insufficient evidence",
        ),
        (
            [result("singling_out", Result.INSUFFICIENT, False), result("exact_match", Result.PASS)],
            "within limit",
        ),
        ([result("singling_out", Result.PASS), result("exact_match", Result.FAIL, False)], "within limit"),
        ([result("singling_out", Result.INSUFFICIENT, False)], "insufficient evidence"),
        ([result("singling_out", Result.FAIL, False)], "beyond limit"),
        ([result("linkability", Result.PASS)], "not tested"),
        ([], "not tested"),
    ],
)
def test_an_audit_that_ran_is_an_answer_only_where_gates_on_it_were_decided(results, state):
    found = state_of("singling out", [outcome("singling_out"), outcome("exact_match")], results)
    assert found.state == state
    assert bool(found.reason) == (state not in ("within limit", "beyond limit"))
    deciding = any(g.blocking for g in results)
    assert (found.kind == "fail") == (state == "beyond limit" and deciding)
    assert bool(found.remark) == (bool(found.reason) or not deciding)


@pytest.mark.parametrize("absent", ["closest_record", "an_audit_that_nobody_has"])
def test_a_gate_on_an_audit_that_did_not_run_leaves_its_question_open(absent):
    """As when just one audit of several about a question is asked for."""
    ran = AuditOutcome("membership_game", "privacy", Status.MEASURED, info=SimpleNamespace(risk="membership"))
    passed, other = (
        result("membership_game", Result.PASS),
        result(absent, Result.INSUFFICIENT, name="lacking"),
    )
    found = state_of("membership", [ran], [passed, other])
    assert (found.state, "lacking" in found.reason) == (AnswerState.INSUFFICIENT, True)
    assert state_of("membership", [ran], [passed]).state is AnswerState.WITHIN
    warning = replace(other, blocking=False)
    assert state_of("membership", [ran], [passed, warning]).state is AnswerState.WITHIN


def test_a_gate_on_an_audit_about_something_else_leaves_no_question_open():
    absent = result("linkability", Result.INSUFFICIENT)
    found = state_of("singling out", [outcome("singling_out")], [result("singling_out", Result.PASS), absent])
    assert found.state is AnswerState.WITHIN


def test_what_no_audit_is_about_is_not_tested_and_what_gave_no_result_lacks_evidence():
    outcomes = [outcome("linkability", Status.NOT_APPLICABLE)]
    assert [a.criterion for a in answers(outcomes, [])] == list(CRITERIA)
    assert state_of("linkability", outcomes, []).state is AnswerState.INSUFFICIENT
    assert state_of("membership", outcomes, []).state is AnswerState.NOT_TESTED


def test_an_audit_that_ended_in_an_error_leaves_its_question_open_though_no_gate_is_on_it():
    outcomes = [outcome("singling_out"), outcome("exact_match", Status.ERROR)]
    found = state_of("singling out", outcomes, [result("singling_out", Result.PASS)])
    assert (found.state, found.reason) == (AnswerState.INSUFFICIENT, "an error ended exact_match")
    beyond = state_of("singling out", outcomes, [result("singling_out", Result.FAIL)])
    assert beyond.state is AnswerState.BEYOND


def test_the_gate_is_named_that_was_left_open():
    found = state_of(
        "linkability", [outcome("linkability")], [result("linkability", Result.INSUFFICIENT, name="halves")]
    )
    assert "halves" in found.reason


def test_a_reader_is_warned_first_of_what_could_not_be_tested_or_decided():
    wide = result("linkability", Result.INSUFFICIENT)
    blind = replace(wide, unusable="so it is")
    ran = [outcome("linkability")]

    def warning(*results):
        return state_of("linkability", ran, results).warning

    assert warning(blind) == "Linkability could not be tested on this table."
    assert warning(wide) == "Linkability could not be decided on this table: the evidence is insufficient."
    assert warning(wide, blind) == "Linkability could not be tested on this table."
    assert warning() == "Linkability was not tested."
    assert warning(replace(wide, result=Result.PASS)) == warning(replace(wide, result=Result.FAIL)) == ""


def test_a_demanded_answer_holds_the_release():
    open_ = answers_result(["linkability"], [outcome("linkability")], [])
    assert (open_.result, open_.blocking) == (Result.INSUFFICIENT, True)
    assert "linkability: not tested" in open_.explanation
    given = [result("linkability", Result.PASS)]
    assert answers_result(["linkability"], [outcome("linkability")], given).result is Result.PASS


def suite(**meta):
    limit = {"name": "linkability.risk", "maximum": 0.1}
    gate = {
        "type": "expect_measurement_to_be_within",
        "kwargs": limit,
        "meta": {"id": "one", "reason": "because"},
    }
    return {"name": "s", "expectations": [gate], "meta": meta}


def test_only_a_suite_that_demands_answers_gets_the_gate():
    for meta, there in (({}, False), ({"answers": ["membership"]}, True)):
        report = judge(parse_suite(suite(**meta)), [], [])
        assert (report.results[-1].gate == ANSWERS) is there
    assert load_suite("sensitive", Path()).answers == CRITERIA


@pytest.mark.parametrize("asked", ["membership", ["members"], ["membership", "membership"], [1], [[]]])
def test_what_is_no_criterion_cannot_be_demanded(asked):
    with pytest.raises(GateError, match="criteria"):
        parse_suite(suite(answers=asked))


SUITES = sorted(path.name for path in resource_folder("expectations").glob("*.json"))


@pytest.mark.parametrize("name", SUITES)
def test_each_gate_has_a_finding_with_its_number_in_it(name: str) -> None:
    suite = json.loads((resource_folder("expectations") / name).read_text(encoding="utf-8"))
    for meta in (x["meta"] for x in suite["expectations"]):
        found = re.findall(r"\{(\w+)\}", meta.get("finding", ""))
        assert {"value", "percent"} & set(found), meta["id"]
        assert set(found) <= {"value", "percent", "column", "surely"}, meta["id"]


def test_a_finding_is_text_and_its_key_is_not_misspelt() -> None:
    limit = {"name": "exact_match.excess", "maximum": 0.02}
    for wrong in ({"finding": 3}, {"findings": "{value}"}):
        meta = {"id": "copies", "reason": "because", **wrong}
        suite = {
            "name": "s",
            "expectations": [{"type": "expect_measurement_to_be_within", "kwargs": limit, "meta": meta}],
        }
        with pytest.raises(GateError, match="finding"):
            parse_suite(suite)


COLUMNS = {"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": ["a"]}}
HELD = (TableCheck(contract_key(COLUMNS), True, "ok"),)
SAFE = AuditOutcome("copies", "privacy", Status.NOT_APPLICABLE, reason="for the test")


def gate(ident, severity="warning", **meta):
    return {
        "type": "expect_measurement_to_be_within",
        "kwargs": {"name": f"{ident}.loss", "maximum": 0.1},
        "meta": {"id": ident, "reason": "for the test", **meta},
        "severity": severity,
    }


def suite_of(*expectations, **meta):
    safe = gate("copies", "critical")
    plain = {"name": "test", "expectations": [safe, *expectations], "meta": meta}
    return parse_suite(plain, installed=False)


def lost(audit, low, high):
    middle = (low + high) / 2
    found = Measurement(read_scoped(f"{audit}.loss", ""), middle, interval=Interval(low, high, 0.95, "test"))
    return AuditOutcome(audit, "utility", Status.MEASURED, measurements=(found,))


KEPT, HALF, GONE = (0.0, 0.05), (0.05, 0.2), (0.2, 0.3)
BOTH = (gate("model", fitness="target"), gate("ties", fitness="always"), gate("global", fitness="no target"))


@pytest.mark.parametrize(
    ("model", "ties", "expected"),
    [
        (KEPT, KEPT, Fitness.YES),
        (KEPT, GONE, Fitness.NO),
        (HALF, GONE, Fitness.NO),
        (HALF, KEPT, Fitness.INSUFFICIENT),
    ],
)
def test_fitness_is_as_bad_as_the_worst_gate_that_decides_it(model, ties, expected):
    outcomes = [lost("copies", *KEPT), lost("model", *model), lost("ties", *ties)]
    report = judge(suite_of(*BOTH), outcomes, HELD, target=True)
    assert report.fitness is expected
    assert report.verdict is report.safe is Result.PASS


def test_what_decides_depends_on_whether_a_target_is_named():
    outcomes = [lost("copies", *KEPT), *(lost(a, *KEPT) for a in ("model", "ties")), lost("global", *GONE)]
    assert judge(suite_of(*BOTH), outcomes, HELD, target=True).fitness is Fitness.YES
    assert judge(suite_of(*BOTH), outcomes, HELD).fitness is Fitness.NO


def test_an_optional_gate_is_left_out_for_the_other_case_alone():
    suite = suite_of(gate("model", fitness="target", optional=True), BOTH[1])
    idle = AuditOutcome("model", "utility", Status.NOT_APPLICABLE, reason="no control rows")
    outcomes = [lost("copies", *KEPT), idle, lost("ties", *KEPT)]
    named, unnamed = (judge(suite, outcomes, HELD, target=target) for target in (True, False))
    assert named.fitness is Fitness.INSUFFICIENT
    assert unnamed.fitness is Fitness.YES
    assert "model" not in {g.gate for g in unnamed.results}


def test_without_its_gates_or_its_audits_fitness_was_not_tested():
    assert judge(suite_of(gate("ties")), [lost("ties", *GONE)], HELD).fitness is Fitness.NOT_TESTED
    assert judge(suite_of(*BOTH), [lost("copies", *KEPT)], HELD).fitness is Fitness.NOT_TESTED


def test_what_is_unsafe_may_be_fit():
    outcomes = [lost("copies", *GONE), *(lost(a, *KEPT) for a in ("model", "ties"))]
    report = judge(suite_of(*BOTH), outcomes, HELD, target=True)
    assert (report.safe, report.fitness) == (Result.FAIL, Fitness.YES)


@pytest.mark.parametrize(
    ("ties", "verdict"), [(KEPT, Result.PASS), (HALF, Result.INSUFFICIENT), (GONE, Result.FAIL)]
)
def test_a_suite_says_whether_fitness_blocks(ties, verdict):
    outcomes = [lost("copies", *KEPT), lost("ties", *ties)]
    open_, closed = (judge(suite_of(BOTH[1], fitness_blocks=b), outcomes, HELD) for b in (False, True))
    assert (open_.verdict, open_.safe) == (Result.PASS, Result.PASS)
    assert (closed.verdict, closed.safe) == (verdict, Result.PASS)
    assert open_.fitness is closed.fitness
    assert (closed.results[-1].gate, closed.results[-1].blocking) == (FITNESS, True)


def test_fitness_that_blocks_and_was_not_tested_holds_the_release():
    report = judge(suite_of(BOTH[1], fitness_blocks=True), [lost("copies", *KEPT)], HELD)
    assert (report.verdict, report.safe) == (Result.INSUFFICIENT, Result.PASS)


@pytest.mark.parametrize(
    ("gates", "meta"),
    [
        ((gate("ties", fitness="sometimes"),), {}),
        ((gate("ties", fitness=True),), {}),
        ((gate("ties", fitness=[]),), {}),
        ((gate("ties", "critical", fitness="always"),), {}),
        ((gate("ties", fitnes="always"),), {}),
        ((gate("ties", fitness="always"),), {"fitness_blocks": "yes"}),
        ((gate("ties", fitness="always"),), {"fitness_block": True}),
        ((gate("ties"),), {"fitness_blocks": True}),
    ],
)
def test_a_suite_that_cannot_be_followed_is_refused(gates, meta):
    with pytest.raises(GateError, match="fit"):
        suite_of(*gates, **meta)


@pytest.mark.parametrize("name", ["release", "sensitive", "health"])
def test_the_suites_that_ship_show_fitness_and_do_not_block(name):
    suite = load_suite(name, Path())
    when = {g.id: g.fitness for g in suite.gates if g.fitness}
    assert when == {
        "associations": "always",
        "coverage": "no target",
        "prediction": "target",
        "each_column": "no target",
    }
    assert not suite.fitness_blocks


def people(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2, n))
    return pa.table(
        {
            "age": 50 + 10 * z[0],
            "dose": 5 + z[0] + 0.5 * rng.normal(size=n),
            "region": rng.choice(["north", "south"], n),
            "weight": 70 + 8 * z[0] + 4 * z[1],
            "ill": np.where(z[0] + z[1] > 0, "yes", "no"),
        }
    )


def independent(table):
    rng = np.random.default_rng(9)
    return pa.table({n: table[n].take(rng.permutation(len(table))) for n in table.column_names})


def flipped(table):
    other = ["no" if x == "yes" else "yes" for x in table["ill"].to_pylist()]
    return table.set_column(table.column_names.index("ill"), "ill", pa.array(other))


CASES = {"fresh": lambda t: t, "independent": independent, "flipped": flipped}


@pytest.mark.parametrize(
    ("kind", "fit", "target"),
    [
        ("fresh", "yes", True),
        ("flipped", "no", True),
        ("independent", "no", False),
        pytest.param("independent", "no", True, marks=pytest.mark.slow),
        pytest.param("flipped", "no", False, marks=pytest.mark.slow),
        pytest.param("fresh", "yes", False, marks=pytest.mark.slow),
    ],
)
def test_independent_columns_and_a_flipped_target_are_not_fit(kind, fit, target):
    train, control, other = people(500, 1), people(400, 2), CASES[kind](people(500, 3))
    schema = infer_schema(train, {"ill": ColumnSpec(role="target")} if target else {})
    subject = Subject(*(read_table(t, schema, where="test") for t in (train, control, other)))
    names = ["associations", "coverage", "prediction" if target else "each_column"]
    quick = {"prediction": {"repeats": 1, "n_bootstrap": 100}}
    audits = {name: registry.build("audit", name, quick.get(name, {})) for name in names}
    outcomes = [with_ratios(o) for o in run_audits(audits, subject, RunContext(seed=0))[0]]
    assert judge(load_suite("release", Path()), outcomes, (), target=target).fitness == fit


@pytest.fixture(scope="module")
def unfit(tmp_path_factory, make_case, make_gate):
    """A release that is safe and, by a limit that nothing keeps, not fit. Not to be altered."""
    case = make_case(tmp_path_factory.mktemp("unfit") / "case", audits=["exact_match", "marginals"])
    useful = make_gate("marginals", "marginals.total_variation", -1, "warning")
    useful["meta"]["fitness"] = "always"
    case.set_gates(make_gate("copies", "exact_match.excess", 0.2), useful)
    stages.produce(case.plan, case.workspace)
    return case


def test_evidence_says_both(unfit):
    evidence = unfit.evidence
    assert (evidence.verdict, evidence.fitness) == (Result.PASS, Fitness.NO)
    assert "fit for purpose: no" in repr(evidence)
    assert all(c.holds is not False for c in verify(evidence))
    loose = api.gate(evidence, str(unfit.folder / "gates.json"))
    assert (loose.fitness, loose.intact) == (Fitness.NO, True)


def forged(evidence):
    """Fitness claimed by itself, and with gates to match."""
    yield replace(evidence, fitness=Fitness.YES).sealed()
    held = tuple(replace(g, result=Result.PASS) for g in evidence.gates.results)
    yield replace(evidence, fitness=Fitness.YES, gates=replace(evidence.gates, results=held)).sealed()
    none = tuple(replace(g, fitness=False) for g in evidence.gates.results)
    gates = replace(evidence.gates, results=none)
    yield replace(evidence, fitness=Fitness.NOT_TESTED, gates=gates).sealed()


def test_forged_fitness_is_refused(unfit):
    for evidence in forged(unfit.evidence):
        assert evidence.intact
        assert {c.what for c in verify(evidence) if c.holds is False} == {"verdict, judged anew"}
        with pytest.raises(ReleaseRefused, match="fitness"):
            refuse_unless_allowed(unfit.plan, evidence, unfit.synthetic, None)


def test_a_plan_that_names_no_audits_gets_those_that_decide_fitness(unfit):
    def audits(**meta):
        suite = suite_of(BOTH[1], gate("each_column", fitness="no target"), **meta)
        named = json.loads(json.dumps(suite.plain).replace("ties.", "associations."))
        named["expectations"][0]["kwargs"]["name"] = "exact_match.excess"
        named["expectations"][1]["kwargs"]["name"] = "associations.lost"
        return stages.audits_of(plan, parse_suite(named, installed=False))

    plan = unfit.plan.model_copy(update={"columns": {}})
    assert set(audits()) == {"exact_match", "marginals"}
    assert set(audits(fitness_blocks=True)) == {"exact_match", "marginals", "associations", "each_column"}
    plan = plan.model_copy(update={"audits": ()})
    assert "each_column" in audits()
    plan = unfit.plan.model_copy(update={"audits": ()})
    assert "each_column" not in audits()
