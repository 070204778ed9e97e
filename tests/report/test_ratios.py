"""References and what stands beside them in a row of numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from types import ModuleType

import pytest

from synth_audit.findings.measurement import Interval, Measurement, MeasurementId, Reference
from synth_audit.findings.sensitivity import REFERENCE_RATIO
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report.chapters import AuditView, reference

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
