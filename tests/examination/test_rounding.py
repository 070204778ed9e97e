"""Usefulness is published with few digits."""

from __future__ import annotations

import math

from synth_audit.examination.examine import rounded_for_publication
from synth_audit.findings.measurement import Estimate, Interval, Measurement, MeasurementId, Reference
from synth_audit.plugins.audit import AuditOutcome, Status


def interval(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "bootstrap")


def test_all_numbers_are_rounded_and_intervals_still_hold_their_value() -> None:
    reference = Reference(
        1 / 3, "control", interval(0.31234567, math.inf), Estimate(2 / 3, interval(0.61234567, 2 / 3))
    )
    m = Measurement(
        MeasurementId("marginals", "ks"), 1 / 7, interval=interval(1 / 7, 0.14285749), reference=reference
    )
    [found] = rounded_for_publication(
        AuditOutcome("marginals", "fidelity", Status.MEASURED, measurements=(m,))
    ).measurements
    assert (found.value, found.interval) == (0.1429, interval(0.1429, 0.1429))
    assert found.reference == Reference(
        0.3333, "control", interval(0.3123, math.inf), Estimate(0.6667, interval(0.6123, 0.6667))
    )
