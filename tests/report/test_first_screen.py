import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit.findings.measurement import Interval, Measurement, MeasurementId, Reference
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, REFERENCE_RATIO
from synth_audit.findings.verdict import Fitness, Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report import render_report
from synth_audit.report.certificate import render_certificate
from synth_audit.report.chapters import AuditView, reference
from synth_audit.report.gates import obstacles
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


def test_the_most_direct_harm_is_why_and_advice_comes_after_it(build: ModuleType) -> None:
    restated = LEAK_EQUIVALENT.derived(MeasurementId("closest_record", "share"))
    advice = build.gate("rows", "", Result.FAIL, blocking=False, explanation="Rows are many.")
    columns = build.gate("own", "", Result.FAIL, explanation="A column is missing.")
    leak = build.gate("leak", "", Result.FAIL, measurement=restated, value=0.3, maximum=0.02)
    copies = build.gates(copies=Result.FAIL)[2]
    page = text(render_report(build.evidence((), build.report_of((advice, leak, columns, copies)))))
    first = page[: page.index("Gates")]
    assert "Exact copies: 0.0214. Of 3 deciding gates, 3 failed. " in first
    assert "advisory" not in first
    both = build.evidence((), build.report_of((advice, *build.gates())))
    for page in (render_report(both), render_certificate(both)):
        assert "1 advisory gate did not pass, which does not stop a release: Rows are many." in text(page)
    page = text(render_report(both))
    assert "All 4 deciding gates passed. 1 advisory gate did not pass, which does not stop a release" in page
    order = [g.result.gate for g in obstacles(build.evidence((), build.report_of((leak, columns, copies))))]
    assert order == ["copies.max", "own", "leak"]


def test_both_answers_stand_on_the_first_screen(build: ModuleType) -> None:
    page = text(render_report(build.unfit()))
    first = page[: page.index("Gates")]
    assert "may be released, but it is not fit for purpose" in first
    assert "Safe to release: yes" in first
    assert "Fit for purpose: no The columns are independent." in first
    assert "advisory" not in first
    page = text(render_report(build.passing()))
    assert "Fit for purpose: not tested" in page[: page.index("Gates")]
    useful = build.unfit(Result.PASS).gates.results
    report = build.report_of((build.gate("copies", "Copies", Result.FAIL), *useful))
    refused = render_certificate(build.evidence((build.singling_out(),), report))
    assert "Fit for purpose: not judged, since the release is not safe The gates on usefulness" in text(
        refused
    )
    assert '<div class=""><dt>Fit for purpose:</dt>' in refused


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


GAP = MeasurementId("gaps", "gap")
NB = "\u00a0"


def row(build: ModuleType, unit: str, *, ratio: float, low: float, high: float) -> tuple[str, str]:
    """Its ratio and its reference."""
    control = Reference(0.04, "control rows", Interval(0.03, 0.05, 0.95, "w"))
    found = (
        Measurement(GAP, 0.1, interval=Interval(0.09, 0.11, 0.95, "w"), unit=unit, reference=control),
        Measurement(
            REFERENCE_RATIO.derived(GAP),
            ratio,
            interval=Interval(low, high, 0.95, "w"),
            unit="ratio",
        ),
    )
    info = build.info("fidelity", "Gaps", build.quantity("gap", "Gap", unit=unit))
    outcome = AuditOutcome("gaps", "fidelity", Status.MEASURED, info=info, measurements=found)
    view = AuditView(outcome, "a")
    assert view.scopes == []
    return view.ratio(view.numbers[0]), reference(view.numbers[0])


@pytest.mark.parametrize(
    ("ratio", "low", "high", "text"),
    [
        (2.5, 1.8, 3.7, "2.5 times the reference (1.8 to 3.7)"),
        (1.3, 0.2, math.inf, ""),
        (math.nan, 0.0, math.inf, ""),
    ],
)
def test_a_ratio_has_its_interval_in_brackets(
    build: ModuleType, ratio: float, low: float, high: float, text: str
) -> None:
    assert row(build, "distance", ratio=ratio, low=low, high=high)[0] == text


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("standard deviations", f"0.04 (0.030 to 0.050{NB}standard deviations)"),
        ("share", f"4{NB}% (3.0 to 5.0{NB}%)"),
        ("distance", "0.04 (0.030 to 0.050)"),
    ],
)
def test_a_unit_in_words_is_said_once(build: ModuleType, unit: str, text: str) -> None:
    assert row(build, unit, ratio=1.0, low=0.9, high=1.1)[1] == text


def test_settings_are_named_with_their_values_the_worst_first(build: ModuleType) -> None:
    info = build.info("fidelity", "Gaps", build.quantity("gap", "Gap"))

    def told(*columns: str) -> tuple[str, str]:
        found = tuple(Measurement(replace(GAP, column=c), 0.1 * i) for i, c in enumerate(columns, 1))
        outcome = AuditOutcome("gaps", "fidelity", Status.MEASURED, info=info, measurements=found)
        scope = AuditView(outcome, "a").scopes[0]
        return scope.summary, scope.worst

    assert told("numbers") == ("1 value", f"numbers 10{NB}%")
    assert told("numbers", "labels") == ("2 values, worst first", f"labels 20{NB}%, numbers 10{NB}%")
