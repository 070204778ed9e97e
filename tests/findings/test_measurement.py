"""Measurements, series and outcomes as values."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import pytest

from synth_audit.errors import DataError, SynthAuditError
from synth_audit.findings.measurement import (
    Direction,
    Findings,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
    Series,
)
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Status

M = MeasurementId("", "m")
RISK = Quantity("risk", "Risk", unit="ratio", direction=Direction.HIGHER, range=(0, 2))


def test_a_quantity_lends_its_unit_and_direction():
    found = RISK.at(1, setting="deep", column="age", n_requested=5, n_achieved=4, n_minimum=5)
    assert (found.id, found.value) == (MeasurementId("", "risk", "deep", "age"), 1.0)
    assert (found.unit, found.direction) == ("ratio", Direction.HIGHER)
    assert isinstance(found.value, float)


@pytest.mark.parametrize(
    ("achieved", "minimum", "short"), [(4, 5, True), (5, 5, False), (None, 5, True), (0, None, False)]
)
def test_short_of_attempts(achieved, minimum, short):
    assert Measurement(M, 0.0, n_achieved=achieved, n_minimum=minimum).short is short


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_finite_means_value_and_both_ends(bad):
    assert Measurement(M, 0.0, interval=Interval(0, 1, 0.95, "x")).finite
    assert not Measurement(M, bad).finite
    assert not Measurement(M, 0.0, interval=Interval(bad, 1, 0.95, "x")).finite
    assert not Measurement(M, 0.0, interval=Interval(0, bad, 0.95, "x")).finite


def test_series_of_uneven_length_is_refused():
    with pytest.raises(ValueError, match="differ in length"):
        Series(M, "S", "line", "x", "y", (1.0, 2.0), {"a": (1.0, 2.0), "b": (1.0,)})


def test_outcome_stamps_measurements_with_the_audit():
    blank = AuditOutcome("copies", "privacy", Status.NOT_APPLICABLE)
    done = blank.with_findings(Findings((RISK.at(1),), notes=("seen",)))
    assert done.status is Status.MEASURED
    assert [str(m.id) for m in done.measurements] == ["copies.risk"]
    assert done.notes == ("seen",)
    assert blank.measurements == ()


def test_values_are_frozen():
    with pytest.raises(FrozenInstanceError):
        RISK.name = "other"


def test_audit_info_knows_only_declared_quantities():
    info = AuditInfo(
        title="", question="", threat_model="", not_covered="", quantities=(RISK,), risk="utility"
    )
    assert info.quantity("risk") is RISK
    with pytest.raises(KeyError):
        info.quantity("other")


def test_errors_say_what_where_expected_and_fix():
    text = str(DataError("bad", where="train", expected="good", fix="mend it"))
    assert text.splitlines() == ["bad", "  where: train", "  expected: good", "  fix: mend it"]
    assert str(SynthAuditError("bad")) == "bad"
