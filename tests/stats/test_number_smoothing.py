"""Rare numbers: which are, and that what is drawn instead tells of the group and not of one of them."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.stats.trees import bandwidths, rare_numbers, smoothed


def test_rare_is_what_few_people_have_whose_rows_count_once():
    numbers = np.array([1.0] * 6 + [2.0] * 6 + [3.0])
    weights = np.array([1.0] * 6 + [1 / 6] * 6 + [1.0])
    assert list(rare_numbers(numbers, weights, 5)) == [False] * 6 + [True] * 7
    assert not rare_numbers(numbers, weights, 1)[:6].any()


def test_windows_are_as_wide_as_silverman_says_and_never_narrower_than_asked():
    rng = np.random.default_rng(0)
    levels = np.append(0.5 + 0.01 * rng.normal(size=1000), rng.random(3))
    group = np.append(np.zeros(1000, dtype=np.intp), np.full(3, 7))
    shuffled = rng.permutation(1003)
    found = np.empty(1003)
    found[shuffled] = bandwidths(levels[shuffled], group[shuffled], least=1e-6)
    assert found[:1000] == pytest.approx(np.sqrt(3) * 1.06 * 0.01 * 1000**-0.2, rel=0.1)
    assert (found[1000:] == 1).all(), "three numbers tell no spread"
    assert bandwidths(levels, group, least=0.2)[0] == 0.2
    assert bandwidths(np.full(9, 0.3), np.zeros(9, dtype=np.intp), least=0.01) == pytest.approx(0.01)


def test_levels_stay_levels_and_a_uniform_group_stays_uniform():
    rng = np.random.default_rng(0)
    levels = rng.random(50_000)
    drawn = smoothed(levels, np.full(50_000, 0.3), rng.random(50_000))
    assert 0 <= drawn.min() < drawn.max() <= 1
    assert np.histogram(drawn, 10, (0, 1))[0] / 50_000 == pytest.approx(0.1, abs=0.01)
    assert np.isnan(smoothed(np.array([np.nan]), np.ones(1), np.zeros(1))).all()
