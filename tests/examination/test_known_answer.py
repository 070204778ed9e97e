"""What follows from the answers to planted leaks."""

from statistics import NormalDist

import numpy as np
import pytest

from synth_audit.errors import OUT_OF_TIME
from synth_audit.examination.known_answer import (
    Ends,
    leak_equivalent,
    minimum_detectable,
    oriented,
    separated,
    with_answers,
)
from synth_audit.findings.measurement import (
    Direction,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
)
from synth_audit.findings.sensitivity import CHECK_CUT_SHORT, PlantedLeaks, Sensitivity
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Status
from synth_audit.stats.proportions import proportion_interval
from synth_audit.verdict.judge import sensitivity_checked_rows

PLANTING = PlantedLeaks(500, 100, 500, (0.0, 0.01, 1.0))
INFO = AuditInfo(
    title="t",
    question="q",
    threat_model="m",
    not_covered="n",
    quantities=(Quantity("risk", "R"), Quantity("middle", "M", proportional=False), Quantity("plain", "P")),
    risk="inference",
)


def number(value, half=0.01, quantity="risk", *, setting="", direction=Direction.LOWER, null=None):
    return Measurement(
        MeasurementId("probe", quantity, setting),
        value,
        interval=None if half is None else Interval(value - half, value + half, 0.95, "test"),
        direction=direction,
        reference=None if null is None else Reference(null, "known"),
        n_achieved=300,
    )


def outcome(*measurements):
    return AuditOutcome("probe", "privacy", Status.MEASURED, INFO, measurements=measurements)


def checked(candidate, clean, small, full, planting=PLANTING):
    answers = [outcome(m) if m else outcome() for m in (clean, small, full)]
    return with_answers(outcome(candidate), planting, answers)


def test_what_tells_a_copy_from_new_people_sees():
    found = checked(number(0.1, null=0.0), number(0.0), number(0.02), number(0.8))
    [response] = found.responses
    assert response.sensitivity is Sensitivity.SENSITIVE
    assert response.null == 0.0
    assert [response.flags(a) for a in response.answers] == [False, True, True]
    assert response.minimum_detectable == pytest.approx((1 + 1.6449 / 1.95996) * 0.01 / 0.8, rel=1e-4)
    restated = found.measurements[-1]
    assert restated.value == pytest.approx(0.125)
    assert str(restated.id) == "probe.leak_equivalent[of risk]"
    assert restated.id.derived_from == found.measurements[0].id


def test_higher_is_safer_is_turned_round():
    up = {"direction": Direction.HIGHER}
    found = checked(number(0.9, **up), number(1.0, **up), number(0.99, **up), number(0.0, **up))
    assert found.responses[0].sensitivity is Sensitivity.SENSITIVE
    assert found.measurements[-1].value == pytest.approx(0.1)
    assert found.responses[0].null == 1.0


def test_overlapping_intervals_are_blind():
    found = checked(number(0.1), number(0.0, 0.3), number(0.0, 0.3), number(0.4, 0.2))
    assert found.responses[0].sensitivity is Sensitivity.INSENSITIVE
    assert len(found.measurements) == 1, "what is blind has no leak-equivalent"
    assert sensitivity_checked_rows(found)[0].blind


def test_a_copy_that_looks_better_is_blind():
    assert (
        checked(number(0.1), number(0.5), number(0.5), number(0.0)).responses[0].sensitivity
        is Sensitivity.INSENSITIVE
    )


@pytest.mark.parametrize("lost", range(3))
def test_what_cannot_be_measured_on_a_planted_leak_is_blind(lost):
    answers = [number(0.0), number(0.02), number(0.8)]
    answers[lost] = None
    [response] = checked(number(0.1), *answers).responses
    assert response.sensitivity is Sensitivity.INSENSITIVE
    assert "every planted leak" in response.reason


def test_a_check_that_was_cut_short_says_so():
    late = AuditOutcome("probe", "privacy", Status.NOT_APPLICABLE, reason=OUT_OF_TIME)
    found = with_answers(outcome(number(0.9)), PLANTING, [outcome(number(0.0)), outcome(number(0.1)), late])
    assert found.responses[0].reason == CHECK_CUT_SHORT
    assert found.cut_short, "so no sweep keeps it"


def test_a_number_that_is_not_finite_is_blind():
    assert (
        checked(number(0.1), number(0.0), number(0.0), number(float("nan"))).responses[0].sensitivity
        is Sensitivity.INSENSITIVE
    )


def test_no_ground_is_blind():
    found = with_answers(outcome(number(0.1)), PlantedLeaks(reason="there are too few rows"), [])
    assert "too few rows" in found.responses[0].reason


def test_settings_are_kept_apart():
    measured = [outcome(number(v, setting="a"), number(0.5, setting="b")) for v in (0.0, 0.1, 0.9)]
    found = with_answers(outcome(number(0.2, setting="a"), number(0.5, setting="b")), PLANTING, measured)
    assert [(r.id.setting, r.sensitivity) for r in found.responses] == [
        ("a", Sensitivity.SENSITIVE),
        ("b", Sensitivity.INSENSITIVE),
    ]
    assert found.measurements[-1].id.derived_from == found.measurements[0].id


def test_a_median_has_no_leak_equivalent():
    found = checked(*(number(v, quantity="middle") for v in (0.1, 0.0, 0.0, 1.0)))
    assert found.responses[0].sensitivity is Sensitivity.SENSITIVE
    assert len(found.measurements) == 1


def test_descriptions_and_counts_are_not_tried():
    described = number(0.1, direction=Direction.NEUTRAL)
    counted = number(0.1, None, "plain")
    found = with_answers(outcome(described, counted), PLANTING, [outcome()] * 3)
    assert found.responses == ()
    assert all(row.blind for row in sensitivity_checked_rows(found))


def test_a_null_above_what_a_clean_release_shows_does_not_hide_leaks():
    """A planted clean release shows -0.2: read from a null of 0, a leak of 20 % would look like none."""
    found = checked(number(0.0, null=0.0), number(-0.2), number(-0.19), number(0.8))
    assert found.measurements[-1].value == pytest.approx(0.19 / 0.99)


NONE, ALL = Ends(0.0, 0.0, 0.0), Ends(1.0, 1.0, 1.0)


def test_on_the_scale_from_none_to_all_a_value_is_its_own_equivalent():
    assert leak_equivalent(Ends(0.3, 0.2, 0.45), NONE, ALL) == pytest.approx((0.3, 0.2, 0.45))


def test_a_poor_generator_is_below_zero_and_not_clipped():
    assert leak_equivalent(Ends(-0.015, -0.016, -0.014), NONE, ALL).high < 0


def test_uncertain_ends_widen_it():
    sure = leak_equivalent(Ends(0.1, 0.08, 0.12), NONE, ALL)
    unsure = leak_equivalent(Ends(0.1, 0.08, 0.12), Ends(0.0, -0.05, 0.05), Ends(1.0, 0.9, 1.1))
    assert unsure.low < sure.low < sure.high < unsure.high
    assert unsure.value == sure.value


def test_orientation():
    assert oriented(0.4, 0.3, 0.6, Direction.HIGHER) == (-0.4, -0.6, -0.3)
    assert separated(oriented(0.9, 0.8, 1.0, Direction.HIGHER), oriented(0.1, 0.0, 0.2, Direction.HIGHER))
    assert not separated(Ends(0.1, 0.0, 0.3), Ends(0.4, 0.2, 0.6))


def test_the_minimum_is_where_the_probability_is_reached():
    span, half_width, z = 0.8, 0.02, NormalDist().inv_cdf(0.975)
    least = minimum_detectable(span, half_width, 0.95)
    assert least is not None
    value = NormalDist(least * span, half_width / z)
    assert 1 - value.cdf(half_width) == pytest.approx(0.95)
    assert minimum_detectable(0.8, 0.7, 0.95) is None
    assert minimum_detectable(0.8, 0.0, 0.95) == 0.0


@pytest.mark.slow
def test_a_leak_of_the_minimum_size_shows_as_often_as_stated():
    rng, n = np.random.default_rng(0), 4000
    clean = 0.1
    around = proportion_interval(clean * n, n, 0.95)
    least = minimum_detectable(1 - clean, (around.high - around.low) / 2, 0.95)
    counts = rng.binomial(n, clean + least * (1 - clean), 4000)
    shown = np.mean([proportion_interval(int(s), n, 0.95).low > clean for s in counts])
    assert shown == pytest.approx(0.95, abs=0.02)


@pytest.mark.slow
def test_coverage_of_the_leak_equivalent():
    rng, n, leak = np.random.default_rng(1), 800, 0.07
    clean, full = 0.05, 0.7
    hits = 0
    for _ in range(4000):
        value, low, high = (
            Ends(s / n, (i := proportion_interval(int(s), n, 0.95)).low, i.high)
            for s in rng.binomial(n, [clean + leak * (full - clean), clean, full])
        )
        found = leak_equivalent(value, low, high)
        hits += found.low <= leak <= found.high
    assert hits / 4000 == pytest.approx(0.95, abs=0.02)
