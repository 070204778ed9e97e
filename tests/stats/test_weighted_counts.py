"""Sums of weights as counts."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.stats.proportions import WeightedCount


def test_weights_of_one_are_a_plain_count():
    assert WeightedCount.of(np.ones(7), 40) == (7, 40)
    assert WeightedCount.of(np.empty(0), 40) == (0, 40)


def test_the_count_is_as_uncertain_as_the_sum():
    weights = np.random.default_rng(1).uniform(size=500)
    found = WeightedCount.of(weights, 1_000)
    assert found.share == pytest.approx(weights.sum() / 1_000)
    assert found.met / found.trials**2 == pytest.approx(np.square(weights).sum() / 1_000**2, rel=0.01)
