"""The report as it is written by default: short in print, in sentences, and advice that looks like advice."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit.findings.verdict import Result, TableCheck
from synth_audit.report import render_report
from synth_audit.report.gates import check_sentence, gate_views
from synth_audit.report.page import check_page, render
from synth_audit.verdict.table_checks import contract_key


def check(kind: str, **kwargs: object) -> str:
    key = contract_key({"type": f"expect_{kind}", "kwargs": kwargs})
    return check_sentence(TableCheck(key, True, ""))


def test_audits_are_folded_unless_all_of_it_is_asked_for(build: ModuleType) -> None:
    brief, full = (render_report(build.passing(), full=full) for full in (False, True))
    assert '<details class="data body">' in brief
    assert '<details class="data body" open>' in full
    assert '<details class="data body">' not in full


@pytest.mark.parametrize("full", [False, True])
def test_both_are_the_report_of_their_evidence(build: ModuleType, full: bool) -> None:
    evidence = build.passing()
    assert check_page(evidence, render(evidence, full=full))
    assert check_page(evidence, render(evidence, full=full) + " ") is False


def test_advice_that_does_not_hold_does_not_look_like_a_refusal(build: ModuleType) -> None:
    advice = build.gate("worst", "No column is lost", Result.FAIL, blocking=False)
    refusal = build.gate("copies", "No row is copied", Result.FAIL)
    views = {g.result.gate: g for g in gate_views(build.evidence((), build.report_of((advice, refusal))))}
    assert (views["worst"].sign.kind, views["worst"].sign.word) == ("advice", "Advice not met")
    assert views["copies"].sign.kind == "fail"
    assert "f-fail" not in views["worst"].sign.icon


def test_a_failed_gate_on_usefulness_is_no_advice(build: ModuleType) -> None:
    (failed,) = (g for g in gate_views(build.unfit()) if g.result.gate == "ties")
    assert (failed.sign.kind, failed.sign.word) == ("open", "Not fit for purpose")
    assert "f-fail" not in failed.sign.icon
    assert "Advice not met" not in text(render_report(build.unfit()))


def test_checks_of_the_table_are_sentences() -> None:
    assert (
        check("column_values_to_be_in_type_list", column="age", type_list=["int64"])
        == "Column age holds int64"
    )
    assert check("column_values_to_not_be_null", column="age") == "Column age has no missing values"
    assert check("column_values_to_be_between", column="age", min_value=0) == (
        "Column age lies within its bounds, at least 0"
    )
    assert check("table_columns_to_match_set", column_set=["a", "b"]) == (
        "The table has exactly these 2 columns: a, b"
    )


def test_how_many_checks_hold_is_said(build: ModuleType) -> None:
    met = TableCheck(
        contract_key({"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "a"}}), True, ""
    )
    evidence = replace(build.passing(), table_checks=(met, replace(met, met=False))).sealed()
    page = text(render_report(evidence))
    assert "Checks of the synthetic table itself: 1 of 2 hold" in page
    assert "expect_column" not in page
