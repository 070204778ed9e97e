"""Poisson batches pass; batches of one size and shuffled ones do not."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.mechanism_test.white_box import largest_by_chance, recurrence_distance, sizes_distance


def test_poisson_batches_are_within_what_chance_allows():
    rng = np.random.default_rng(0)
    far = [
        sizes_distance(rng.binomial(50, 0.2, 400), 50, 0.2) > largest_by_chance(400, 0.05) for _ in range(300)
    ]
    assert np.mean(far) <= 0.05  # conservative, since sizes are whole
    drawn = rng.random(4000) < 0.2
    assert recurrence_distance(drawn, 0.2) < largest_by_chance(800, 1e-4)


def test_distances_are_exact_for_a_small_case():
    assert sizes_distance(np.array([1, 1]), 2, 0.5) == pytest.approx(0.25)
    assert recurrence_distance(np.array([True, False] * 10), 0.5) == pytest.approx(0.25)


def test_batches_of_one_size_and_shuffled_ones_are_seen():
    shuffled = np.zeros((200, 5), dtype=bool)
    shuffled[np.arange(200), np.random.default_rng(0).integers(0, 5, 200)] = True
    assert recurrence_distance(shuffled.ravel(), 0.2) > largest_by_chance(200, 1e-4)
    assert sizes_distance(np.full(200, 10), 50, 0.2) > largest_by_chance(200, 1e-4)
