"""Which questions were answered: by gates that were decided, never by an audit that merely ran."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from synth_audit.build import resource_folder
from synth_audit.errors import GateError
from synth_audit.findings.measurement import MeasurementId
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.verdict.criteria import ANSWERS, CRITERIA, AnswerState, answers, answers_result
from synth_audit.verdict.judge import judge
from synth_audit.verdict.suite import load_suite, parse_suite

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
