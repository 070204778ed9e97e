from __future__ import annotations

from types import ModuleType

from report_reading import text  # made importable by conftest.py

from synth_audit.core.verdict import Result
from synth_audit.report import render_report


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
