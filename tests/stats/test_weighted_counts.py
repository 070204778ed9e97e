"""Sums of weights as counts."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.stats.proportions import Proportion


def test_weights_of_one_are_a_plain_count():
    assert Proportion.of_weights(np.ones(7), 40) == Proportion(7, 40)
    assert Proportion.of_weights(np.empty(0), 40) == Proportion(0, 40)


def test_the_count_is_as_uncertain_as_the_sum():
    weights = np.random.default_rng(1).uniform(size=500)
    found = Proportion.of_weights(weights, 1_000)
    assert found.share == pytest.approx(weights.sum() / 1_000)
    assert found.successes / found.trials**2 == pytest.approx(np.square(weights).sum() / 1_000**2, rel=0.01)
