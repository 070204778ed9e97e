"""The gate of every suite: a leak that is proven holds the release, whatever room the suite leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from synth_audit.core.errors import OUT_OF_TIME
from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Direction, Interval, Measurement
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.sensitivity import CHECK_CUT_SHORT, LEAK_EQUIVALENT, Sensitivity, SensitivityCurve
from synth_audit.core.verdict import Result
from synth_audit.judging.proven_leak import TOLERATED, leak_result


def equivalent(value, half, setting="", **more):
    return Measurement(
        LEAK_EQUIVALENT.derived(MeasurementId("probe", "risk", setting)),
        value,
        interval=Interval(value - half, value + half, 0.95, "test"),
        **more,
    )


def outcome(*measurements, family="privacy"):
    return AuditOutcome("probe", family, Status.MEASURED, measurements=measurements)


def test_a_number_wholly_above_the_tolerance_is_proof():
    found = leak_result([outcome(equivalent(0.3, 0.1))])
    assert found.result is Result.FAIL
    assert found.blocking
    assert "probe.risk behaves" in found.explanation
    assert found.value == pytest.approx(0.2)


@pytest.mark.parametrize("value", [0.0, 0.05, 0.14])
def test_a_number_that_reaches_below_it_is_none(value):
    assert leak_result([outcome(equivalent(value, 0.1))]).result is Result.PASS


def test_among_many_numbers_one_must_be_further_above():
    alone, among = equivalent(0.16, 0.1), [equivalent(0.0, 0.1, f"s{i}") for i in range(30)]
    assert leak_result([outcome(alone)]).result is Result.FAIL
    assert leak_result([outcome(alone, *among)]).result is Result.PASS
    assert leak_result([outcome(equivalent(0.3, 0.1), *among)]).result is Result.FAIL


def test_a_few_wrong_guesses_prove_nothing_among_many_numbers():
    """Wrong are 4 of 696 guesses about train and 6 of 174 about control, of 49 numbers."""
    harmless = [equivalent(0.0, 0.1, f"s{i}") for i in range(48)]
    few = replace(equivalent(0.81, 0.0), interval=Interval(0.4, 0.95, 0.95, "test"))
    assert leak_result([outcome(few)]).result is Result.FAIL
    assert leak_result([outcome(few, *harmless)]).result is Result.PASS
    many = replace(few, interval=Interval(0.7, 0.9, 0.95, "test"))
    assert leak_result([outcome(many, *harmless)]).result is Result.FAIL
    whole = replace(few, value=1.0)
    assert (
        leak_result([outcome(replace(whole, interval=Interval(0.9, 1.1, 0.95, "test")), *harmless)]).value
        > 0.8
    )


def test_only_sound_privacy_numbers_count():
    leak = equivalent(0.9, 0.01)
    assert leak_result([]).result is Result.PASS
    assert leak_result([outcome(leak, family="utility")]).result is Result.PASS
    assert leak_result([outcome(replace(leak, id=leak.id.derived_from))]).result is Result.PASS
    assert leak_result([outcome(replace(leak, n_achieved=3, n_minimum=100))]).result is Result.PASS
    assert leak_result([replace(outcome(leak), status=Status.ERROR)]).result is Result.PASS
    assert TOLERATED == 0.05


def test_what_an_audit_that_ran_out_of_time_would_prove_is_unknown():
    late = AuditOutcome("linkability", "privacy", Status.NOT_APPLICABLE, reason=OUT_OF_TIME)
    harmless, leak = outcome(equivalent(0.0, 0.1)), outcome(equivalent(0.3, 0.1))
    found = leak_result([harmless, late])
    assert found.result is Result.INSUFFICIENT
    assert found.blocking
    assert "linkability" in found.explanation
    assert leak_result([late]).result is Result.INSUFFICIENT
    assert leak_result([leak, late]).result is Result.FAIL, "what is proven stays proven"
    assert leak_result([harmless, replace(late, reason="needs a target")]).result is Result.PASS
    assert leak_result([harmless, replace(late, family="utility")]).result is Result.PASS


def test_so_is_what_an_audit_would_prove_whose_check_ran_out_of_time():
    measured = equivalent(0.0, 0.1).id.derived_from
    curve = SensitivityCurve(measured, Direction.LOWER, Sensitivity.INSENSITIVE, CHECK_CUT_SHORT, ())
    unchecked = replace(outcome(), responses=(curve,))
    assert leak_result([unchecked]).result is Result.INSUFFICIENT
    blind = replace(unchecked, responses=(replace(curve, reason="it sees nothing"),))
    assert leak_result([blind]).result is Result.PASS
