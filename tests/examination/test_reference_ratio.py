"""Ratios of fidelity and utility measurements to what real rows reach."""

from __future__ import annotations

import math

import pytest

from synth_audit.examination.examine import ratio
from synth_audit.findings.measurement import Estimate, Interval, Measurement, MeasurementId, Reference

KS = MeasurementId("marginals", "ks", column="age")


def number(value: float, low: float, high: float, reference: Reference | None) -> Measurement:
    return Measurement(KS, value, interval=Interval(low, high, 0.95, "wilson"), reference=reference)


def beside(value: float, low: float, high: float, candidate: Estimate | None = None) -> Reference:
    return Reference(value, "control", Interval(low, high, 0.95, "wilson"), candidate)


def test_a_ratio_spans_what_both_intervals_allow() -> None:
    found = ratio(number(0.2, 0.1, 0.3, beside(0.1, 0.05, 0.2)))
    assert found is not None
    assert found.interval is not None
    assert str(found.id) == "marginals.reference_ratio[of ks[by age]]"
    assert found.value == pytest.approx(2)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.5, 6))


def test_a_candidate_is_compared_at_the_size_of_its_reference() -> None:
    alike = Estimate(0.3, Interval(0.2, 0.4, 0.95, "wilson"))
    found = ratio(number(0.2, 0.1, 0.25, beside(0.1, 0.1, 0.1, alike)))
    assert found is not None
    assert found.value == pytest.approx(3)


def test_a_reference_that_may_be_zero_sets_no_upper_end() -> None:
    found = ratio(number(0.2, 0.1, 0.3, beside(0.1, -0.05, 0.2)))
    assert found is not None
    assert found.interval is not None
    assert found.interval.high == math.inf
    assert not found.finite


@pytest.mark.parametrize("reference", [None, Reference(0.5, "known exactly"), beside(0, 0, 0.1)])
def test_there_is_no_ratio_to_zero_or_to_what_was_not_measured(
    reference: Reference | None,
) -> None:
    assert ratio(number(0.2, 0.1, 0.3, reference)) is None
