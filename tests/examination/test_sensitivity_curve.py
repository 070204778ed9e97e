"""Leak-equivalents and the smallest leak that shows."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from synth_audit.examination.known_answer import (
    Ends,
    leak_equivalent,
    minimum_detectable,
    oriented,
    separated,
)
from synth_audit.findings.measurement import Direction
from synth_audit.stats.proportions import proportion_interval

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
