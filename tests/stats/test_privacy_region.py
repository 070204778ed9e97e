"""What a guarantee leaves an attacker, against mechanisms that reach it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from synth_audit.stats.epsilon import most_advantage, most_found, of_replacing


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_reaches_the_bound(epsilon):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert most_found(1 - truth, epsilon, 0) == pytest.approx(truth)
    assert most_advantage(epsilon, 0) == pytest.approx(2 * truth - 1)


def test_a_mechanism_that_tells_with_probability_delta_reaches_it():
    assert most_found(0, 0, 0.2) == pytest.approx(0.2)
    assert most_found(0.5, 0, 0.2) == pytest.approx(0.7)
    assert most_advantage(0, 0.2) == pytest.approx(0.2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (0.3, 0.01), (2, 1e-5), (1000, 0)])
def test_the_advantage_is_the_largest_difference_and_rates_stay_rates(epsilon, delta):
    grid = np.linspace(0, 1, 20001)
    found = np.array([most_found(x, epsilon, delta) for x in grid])
    assert (found >= grid - 1e-12).all()
    assert (found <= 1).all()
    assert (np.diff(found, 2) <= 1e-9).all()
    assert np.max(found - grid) == pytest.approx(most_advantage(epsilon, delta), abs=1e-3)


def test_one_row_in_the_place_of_another_is_two_steps():
    assert of_replacing(1.0, 1e-5) == (2.0, pytest.approx((1 + math.e) * 1e-5))
    assert of_replacing(900.0, 0.5) == (1800.0, 1.0)
