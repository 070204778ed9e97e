"""The report as it is written by default: short in print, in sentences, and advice that looks like advice."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit import registry
from synth_audit.findings.verdict import Result, TableCheck
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report import render_report
from synth_audit.report.chapters import groups
from synth_audit.report.gates import check_sentence, gate_views
from synth_audit.report.page import check_page, render
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.table_checks import contract_key

SUITES = Path(__file__).parents[2] / "expectations"


def check(kind: str, **kwargs: object) -> str:
    key = contract_key({"type": f"expect_{kind}", "kwargs": kwargs})
    return check_sentence(TableCheck(key, True, ""))


def test_groups_and_audits_are_folded_unless_all_of_it_is_asked_for(build: ModuleType) -> None:
    brief, full = (render_report(build.passing(), full=full) for full in (False, True))
    for folded in (r'<details class="group print" id="[\w-]+">', r'<details class="data audit" id="[\w-]+">'):
        assert re.search(folded, brief)
        assert not re.search(folded, full)
        assert re.search(folded.replace('">', '" open>'), full)
    assert "evidence.json" in brief
    assert len(text(brief)) < len(text(full))


def test_the_gates_stand_in_seven_groups_with_their_audits(build: ModuleType) -> None:
    evidence = build.failing()
    found = groups(evidence)
    assert [g.risk.title for g in found] == [
        *("Membership", "Singling out", "The table itself", "Utility"),
        *("Linkability", "Inference", "Fidelity"),
    ]
    assert sum(len(g.gates) for g in found) == len(evidence.gates.results)
    assert sum(len(g.audits) for g in found) == len(evidence.outcomes)
    notes = {g.risk.title: g.note for g in found}
    assert notes["Membership"] == "beyond limit: 1 of 2 gates did not pass"
    assert notes["Singling out"] == "insufficient evidence: 1 of 1 gate did not pass"
    assert notes["Utility"] == "1 gate passed"
    assert notes["Linkability"] == "not tested: no gate on it"


def test_gates_of_audits_that_did_not_run_stand_with_what_they_are_about(build: ModuleType) -> None:
    known = build.gate("known", "t", Result.INSUFFICIENT, measurement="linkability.risk")
    gone = build.gate("gone", "t", Result.INSUFFICIENT, measurement="no_such_audit.risk")
    found = {g.risk.name: [x.result.gate for x in g.gates] for g in groups(
        build.evidence((), build.report_of((known, gone)))
    )}  # fmt: skip
    assert found["linkability"] == ["known"]
    assert found["unplaced"] == ["gone"]


def test_what_explains_a_gate_that_did_not_pass_is_on_the_short_page(build: ModuleType) -> None:
    noted = replace(build.marginals(), notes=("column fnlwgt differs most",))
    gate = build.gate("tv", "t", Result.FAIL, measurement="marginals.tv", value=0.4, maximum=0.1)
    failed = text(render_report(build.evidence((noted,), build.report_of((gate,)))))
    passed = text(render_report(build.evidence((noted,), build.report_of(()))))
    assert "Column fnlwgt differs most." in failed
    assert "worst first: " in failed
    assert "fnlwgt differs most" not in passed
    assert "worst first: " not in passed


def everything_fails(build: ModuleType) -> Evidence:
    """Each default audit measured all of its numbers, by column too, and each gate of the suite failed."""
    suite = json.loads((SUITES / "release.json").read_text())
    gates = [
        build.gate(
            x["meta"]["id"], x["meta"]["title"], Result.FAIL, measurement=x["kwargs"]["name"], value=0.5,
            low=0.4, high=0.6, level=0.95, maximum=0.1, advice=x["meta"]["advice"],
            explanation="The whole 95 % interval is outside the limit.",
        )
        for x in suite["expectations"]
    ]  # fmt: skip
    outcomes = []
    for name in registry.default_audits():
        ref = registry.find("audit", name)
        info = ref.load().info
        numbers = [
            build.measurement(f"{name}.{q.name}", 0.5, 0.1, column=column)
            for q in info.quantities
            for column in ("", *(f"a_column_{i}" for i in range(30)))
        ]
        notes = (("word " * 20).strip(),) * 6
        outcome = AuditOutcome(name, ref.family, Status.MEASURED, info=info, notes=notes)
        outcomes.append(replace(outcome, measurements=tuple(numbers)))
    return build.evidence(tuple(outcomes), replace(build.report_of(tuple(gates)), suite=suite))


def test_a_report_has_at_most_six_thousand_words_even_where_everything_fails(build: ModuleType) -> None:
    page = render_report(everything_fails(build))
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert 3000 < len(text(page).split()) < 6000


@pytest.mark.parametrize("suite", ["release", "health", "sensitive"])
def test_findings_and_advice_of_the_suites_have_at_most_thirty_words(suite: str) -> None:
    found = json.loads((SUITES / f"{suite}.json").read_text())
    for meta in (x["meta"] for x in found["expectations"]):
        assert len(meta["finding"].split()) <= 30
        assert len(meta["advice"].split()) <= 30


@pytest.mark.parametrize("full", [False, True])
def test_both_are_the_report_of_their_evidence(build: ModuleType, full: bool) -> None:
    evidence = build.passing()
    assert check_page(evidence, render(evidence, full=full))
    assert check_page(evidence, render(evidence, full=full) + " ") is False


def test_advice_that_does_not_hold_does_not_look_like_a_refusal(build: ModuleType) -> None:
    advice = build.gate("worst", "No column is lost", Result.FAIL, blocking=False)
    refusal = build.gate("copies", "No row is copied", Result.FAIL)
    views = {g.result.gate: g for g in gate_views(build.evidence((), build.report_of((advice, refusal))))}
    assert (views["worst"].sign.kind, views["worst"].sign.word) == ("advice", "Fail (advice)")
    assert views["copies"].sign.kind == "fail"
    assert "f-fail" not in views["worst"].sign.icon


def test_a_failed_gate_on_usefulness_is_no_advice(build: ModuleType) -> None:
    (failed,) = (g for g in gate_views(build.unfit()) if g.result.gate == "ties")
    assert (failed.sign.kind, failed.sign.word) == ("open", "Not fit for purpose")
    assert "f-fail" not in failed.sign.icon
    assert "Fail (advice)" not in text(render_report(build.unfit()))


def test_checks_of_the_table_are_sentences() -> None:
    assert check("column_values_to_not_be_null", column="age") == "Column age: has no missing values"
    assert check("column_values_to_be_odd", column="age") == "Column age: values to be odd"
    assert check("table_columns_to_match_set", column_set=["a"]).startswith(
        "The table: has the declared columns"
    )
    assert check_sentence(TableCheck("{damaged", True, "")) == "{damaged"


def test_how_many_checks_hold_is_said(build: ModuleType) -> None:
    met = TableCheck(
        contract_key({"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "a"}}), True, ""
    )
    evidence = replace(build.passing(), table_checks=(met, replace(met, met=False))).sealed()
    page = text(render_report(evidence))
    assert "Checks of the synthetic table itself: 1 of 2 hold" in page
    assert "expect_column" not in page
