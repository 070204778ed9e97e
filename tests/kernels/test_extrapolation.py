"""The published size correction: its model, its fit, and where it goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.extrapolation import isolation_model, published_factor


@pytest.mark.parametrize(("n", "w"), [(10, 0.3), (200, 0.01), (5000, 0.0003)])
def test_the_model_is_the_integral(n, w):
    grid = np.linspace(0, w, 200_001)
    chance = n * grid * (1 - grid) ** (n - 1)
    by_hand = np.sum((chance[1:] + chance[:-1]) / 2) * (grid[1] - grid[0])
    assert isolation_model(n, np.array([w]))[0] == pytest.approx(by_hand, rel=1e-6)


def counts(weights, n, seed=0):
    return np.random.default_rng(seed).binomial(n, weights)


def test_it_recovers_what_it_assumes():
    weights = np.random.default_rng(1).uniform(0, 0.002, 20_000)
    truth = isolation_model(4000, np.array([0.002]))[0] / isolation_model(1000, np.array([0.002]))[0]
    assert published_factor(counts(weights, 1000), 1000, 4000) == pytest.approx(truth, rel=0.1)


def test_equal_sizes_need_no_correction():
    assert published_factor(counts(np.full(100, 0.001), 1000), 1000, 1000) == 1.0
    assert published_factor(np.zeros(50, dtype=np.int64), 1000, 4000) == 1.0


def test_many_light_predicates_mislead_it():
    """Weights even on a log scale are singled out about as often at both sizes; it claims far less often."""
    weights = 10 ** np.random.default_rng(2).uniform(-6, -1, 40_000)
    rates = [np.mean(counts(weights, n, 3) == 1) for n in (1000, 4000)]
    assert rates[1] / rates[0] > 0.9
    assert published_factor(counts(weights, 1000), 1000, 4000) < 0.5
