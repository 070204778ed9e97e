"""Rare numbers: what counts as rare, and from among how many people another one is drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.kernels.number_smoothing import RareNumbers


def test_values_of_enough_people_are_not_rare_and_rows_of_one_person_count_once():
    numbers = np.array([1.0] * 6 + [2.0] * 6 + [3.0])
    weights = np.array([1.0] * 6 + [1 / 6] * 6 + [1.0])
    rare = RareNumbers.of(numbers, weights, fewest=5)
    assert list(rare.values) == [2, 3]
    assert list(rare.holds(numbers)) == [False] * 6 + [True] * 7
    windows = rare.windows(numbers, np.zeros(13, dtype=np.intp))
    assert np.isnan(windows[:6]).all()
    assert np.isfinite(windows[6:]).all()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), min_size=1, max_size=80),
    st.integers(1, 12),
)
def test_a_number_is_drawn_among_enough_people_and_up_to_its_neighbours_in_the_leaf(pairs, fewest):
    numbers, leaf = np.array(pairs, dtype=float)[:, 0], np.array(pairs, dtype=np.intp)[:, 1]
    rare = RareNumbers.of(numbers, np.ones(len(numbers)), fewest)
    windows = rare.windows(numbers, leaf)
    for i, (x, low, high) in enumerate(zip(numbers, *windows.T, strict=True)):
        if (numbers == x).sum() >= fewest:
            assert np.isnan(low)
            continue
        ends = rare.levels[0], rare.levels[-1]
        assert ends[0] <= low <= rare.levels[rare.values == x][0] <= high <= ends[1]
        assert high - low >= min(fewest, ends[1] - ends[0]) - 1e-9
        fellows = [y for y in numbers[leaf == leaf[i]] if y != x and y in rare.values]
        for y in [max(y for y in fellows if y < x)] if any(y < x for y in fellows) else []:
            assert low <= rare.levels[rare.values == y][0]
        for y in [min(y for y in fellows if y > x)] if any(y > x for y in fellows) else []:
            assert high >= rare.levels[rare.values == y][0]
    drawn = rare.drawn(windows, np.random.default_rng(0).random(len(numbers)))
    assert np.array_equal(np.isnan(drawn), ~rare.holds(numbers))
    assert not (drawn < numbers.min()).any()
    assert not (drawn > numbers.max()).any()


def test_an_outlier_is_hardly_ever_drawn_and_the_rest_keep_their_distribution():
    rng = np.random.default_rng(0)
    numbers = np.append(rng.normal(size=2000), 1e6)
    rare = RareNumbers.of(numbers, np.ones(2001), fewest=20)
    windows = rare.windows(numbers, rng.integers(0, 40, 2001))
    rows = rng.integers(0, 2001, 20_000)
    drawn = rare.drawn(windows[rows], rng.random(20_000))
    assert not np.isin(drawn, numbers).any()
    assert (drawn > 10).mean() < 2e-3
    assert np.abs(np.quantile(drawn, [0.1, 0.5, 0.9]) - np.quantile(numbers, [0.1, 0.5, 0.9])).max() < 0.08
