from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit.findings.verdict import Fitness, Result
from synth_audit.report import render_report
from synth_audit.report.certificate import render_certificate
from synth_audit.store.evidence import Evidence
from synth_audit.store.reports import audit_marks


def test_the_first_screen_names_the_release_and_repeats_the_warnings(build: ModuleType) -> None:
    warned = build.evidence(
        (), build.report_of(build.gates()), warnings=tuple(f"warning {i}" for i in range(4))
    )
    page = text(render_report(warned))
    first = page[: page.index("Gates")]
    assert "39,084 rows and 13 columns, made by the generator ctgan from 39,084 rows" in first
    assert "555555555555" in first
    assert "Warning 2." in first
    assert "All 4 warnings" in first


def test_without_warnings_or_a_release_nothing_is_said_of_them(build: ModuleType) -> None:
    page = text(render_report(build.evidence((), build.report_of(()), tables={})))
    first = page[: page.index("Gates")]
    assert "fingerprint" not in first
    assert "warning" not in first[first.index("Audit of a synthetic table") :].lower()


def test_a_few_advisory_gates_that_did_not_pass_are_named_beside_the_verdict(build: ModuleType) -> None:
    def first_screen(*missed: str) -> str:
        advice = tuple(
            build.gate(title, "", Result.FAIL, blocking=False, explanation=f"{title}.") for title in missed
        )
        page = text(render_report(build.evidence((), build.report_of((*build.gates(), *advice)))))
        return page[: page.index("Gates")]

    assert "2 advisory gates did not pass (“A leak would show”, “Rows are many”)" in first_screen(
        "A leak would show", "Rows are many"
    )
    three = first_screen("A leak would show", "Rows are many", "Columns are few")
    assert "3 advisory gates did not pass; advice does not stop a release" in three


def test_both_answers_stand_on_the_first_screen(build: ModuleType) -> None:
    page = text(render_report(build.unfit()))
    first = page[: page.index("Gates")]
    assert "may be released, but it is not fit for purpose" in first
    assert "Safe to release: yes" in first
    assert "Fit for purpose: no The columns are independent." in first
    assert "advisory" not in first
    page = text(render_report(build.passing()))
    assert "Fit for purpose: not tested" in page[: page.index("Gates")]


@pytest.mark.parametrize("render", [render_report, render_certificate])
def test_what_is_not_fit_is_never_green(build: ModuleType, render: Callable[[Evidence], str]) -> None:
    green = '<section class="verdict pass"'
    assert green not in render(build.unfit())
    assert '<div class="fail"><dt>Fit for purpose:</dt>' in render(build.unfit())
    assert green in render(build.unfit(Result.PASS))
    assert green in render(build.unfit(Result.INSUFFICIENT))
    assert '<div class="open"><dt>Fit for purpose:</dt>' in render(build.unfit(Result.INSUFFICIENT))


def test_recorded_fitness_that_does_not_follow_is_an_alert(build: ModuleType) -> None:
    page = text(render_report(replace(build.unfit(), fitness=Fitness.YES).sealed()))
    assert "The recorded fitness does not follow from the results of the gates." in page
    assert "Fit for purpose: yes" not in page


def test_machines_read_fitness_where_it_was_tested(build: ModuleType) -> None:
    assert audit_marks(build.unfit())["data-fitness"] == "no"
    assert "data-fitness" not in audit_marks(build.passing())
