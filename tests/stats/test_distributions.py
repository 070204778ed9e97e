"""Distances between two distributions, sorted samples, and a scale that extremes do not move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth_audit.stats.distributions import (
    FARTHEST,
    FIRST_LABEL,
    GROUPS,
    MISSING,
    NEAR,
    REGULAR,
    Resamples,
    RobustScale,
    SortedNumbers,
    SortedPair,
    cell_codes,
    distance_interval,
    distribution_functions,
    hellinger,
    in_deviations,
    inverted_chi_square,
    joined_cells,
    quantile_cells,
    shares,
    spread,
    tellable_cells,
    total_variation,
)

SAMPLE = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=40).map(np.array)
WEIGHTS = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any).map(lambda w: np.array(w) / sum(w))


@given(p=WEIGHTS, q=WEIGHTS)
def test_total_variation_and_hellinger_are_distances(p, q):
    tv, h = float(total_variation(p, q)), float(hellinger(p, q))
    assert tv == pytest.approx(sum(max(a - b, 0) for a, b in zip(p, q, strict=True)))
    assert h == pytest.approx(np.sqrt(max(0.0, 1 - np.sqrt(p * q).sum())), abs=1e-7)
    assert h**2 - 1e-9 <= tv <= h * np.sqrt(2) + 1e-9
    assert tv == total_variation(q, p)
    assert total_variation(p, p) == hellinger(p, p) == 0


def test_disjoint_shares_are_at_distance_one():
    p, q = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.2, 0.8])
    assert total_variation(p, q) == pytest.approx(1)
    assert hellinger(p, q) == pytest.approx(1)


@settings(deadline=None)
@given(values=SAMPLE, most=st.integers(2, 12))
def test_every_value_has_one_cell_in_order(values, most):
    edges = quantile_cells(values, most)
    cells = cell_codes(values, edges)
    assert (np.diff(edges) > 0).all()
    assert cells.min() >= 0
    assert cells.max() <= len(edges)
    order = np.argsort(values, kind="stable")
    assert (np.diff(cells[order]) >= 0).all()


def test_cells_have_equal_mass_and_a_spike_has_one_of_its_own():
    rng = np.random.default_rng(0)
    smooth = rng.normal(size=1000)
    assert shares(cell_codes(smooth, quantile_cells(smooth, 10)), 11)[:10] == pytest.approx(0.1, abs=0.002)
    spiky = np.concatenate([np.zeros(500), rng.exponential(size=500)])
    cells = cell_codes(spiky, quantile_cells(spiky, 10))
    assert len(np.unique(cells[:500])) == 1
    assert cells[0] not in cells[500:]


def test_missing_is_the_last_cell_and_leaves_the_others_alone():
    anchor = np.array([1.0, 2.0, 3.0, 4.0, np.nan])
    edges = quantile_cells(anchor, 4)
    assert np.array_equal(edges, quantile_cells(anchor[:4], 4))
    assert cell_codes(np.array([np.nan, -1e9, 1e9]), edges).tolist() == [len(edges) + 1, 0, len(edges)]
    assert len(quantile_cells(np.array([np.nan]), 4)) == 0


@given(values=SAMPLE, anchor=SAMPLE)
def test_deviations_are_those_of_the_anchor(values, anchor):
    scaled = in_deviations(values, anchor)
    if len(np.unique(anchor)) == 1:
        assert scaled is None
    else:
        assert scaled == pytest.approx((values - anchor.min()) / anchor.std())


def test_deviations_of_huge_and_of_missing_values_are_finite():
    huge = np.array([-1.7e308, 1.7e308, 0.0, np.nan])
    assert in_deviations(huge, huge)[:3] == pytest.approx(np.array([0, 2, 1]) * np.sqrt(1.5))
    assert np.isnan(in_deviations(huge, huge)[3])
    assert in_deviations(np.array([1.7e308]), np.array([0.0, 1e-300])) == FARTHEST
    assert in_deviations(huge, np.array([np.nan])) is None
    assert in_deviations(huge, np.array([0.1, 0.1, 0.1, np.nan])) is None
    dates = 1.6e15 + np.array([0.0, 1.0, 2.0])  # microseconds apart
    assert in_deviations(dates, dates) == pytest.approx(np.array([0, 1, 2]) * np.sqrt(1.5))


@settings(deadline=None)
@given(p=WEIGHTS, q=WEIGHTS, n=st.integers(1, 500))
def test_inverted_chi_square_agrees_with_scipy(p, q, n):
    seen = p > 0
    found = float(inverted_chi_square(q, p, n))
    if q[~seen].any():
        assert found == 1
    elif seen.sum() == 1:
        assert found == 0
    else:
        expected = stats.chisquare(n * q[seen], n * p[seen] * q[seen].sum() / p[seen].sum())
        assert found == pytest.approx(1 - expected.pvalue, abs=1e-9)


def test_inverted_chi_square_grows_with_the_rows_while_the_distance_stands_still():
    p, q = np.array([0.5, 0.5]), np.array([0.55, 0.45])
    assert [round(float(inverted_chi_square(q, p, n)), 3) for n in (10, 100, 1000)] == [0.248, 0.683, 0.998]
    both = inverted_chi_square(np.array([q, p]), np.array([p, p]), 100)
    assert both.tolist() == [float(inverted_chi_square(q, p, 100)), 0.0]


def test_missing_is_no_part_of_a_distribution_function():
    drawn = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    assert distribution_functions(drawn).tolist() == [[0.4, 1.0], [0.0, 0.0]]
    assert spread(drawn, np.array([0.0, 1.0])) == pytest.approx([np.sqrt(0.24), 0])


@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e300, 1.7e308])
def test_spread_knows_no_unit(unit):
    drawn = np.array([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])
    assert spread(drawn, np.array([-unit, unit])) / unit == pytest.approx([1, 0.6])


@pytest.mark.parametrize("n", [50, 3 * GROUPS + 7])
def test_resampled_shares_have_the_right_mean_and_spread(n):
    p = np.array([0.7, 0.2, 0.1])
    codes = np.repeat([0, 1, 2], (p * n).astype(int).tolist())
    p = shares(codes, 3)
    draws = Resamples.of(len(codes), 4000, np.random.default_rng(0)).shares(codes, 3)
    assert draws.sum(axis=1) == pytest.approx(1)
    assert draws.mean(axis=0) == pytest.approx(p, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(np.sqrt(p * (1 - p) / n), rel=0.1)


def test_columns_share_their_resamples():
    codes = np.arange(300) % 2
    drawn = Resamples.of(300, 100, np.random.default_rng(0))
    assert np.array_equal(drawn.shares(codes, 2), drawn.shares(1 - codes, 2)[:, ::-1])
    again = Resamples.of(300, 100, np.random.default_rng(0)).shares(codes, 2)
    assert np.array_equal(drawn.shares(codes, 2), again)


def test_no_interval_is_without_width():
    wide = distance_interval(0.5, np.array([0.4, 0.6]), 0.95, 0.01)
    assert wide.high - wide.low == pytest.approx(2 * 1.96 * 0.1414, rel=1e-3)
    flat = distance_interval(1.0, np.ones(5), 0.95, 0.01)
    assert (flat.low, flat.high) == pytest.approx((0.99, 1.01))


COUNTS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=2, max_size=8)


@given(rows=COUNTS, fewest=st.integers(1, 10), ordered=st.booleans())
def test_joined_cells_hold_enough_real_rows_or_none(rows, fewest, ordered):
    counts = list(np.array(rows).T)
    numbers, k = joined_cells(counts, fewest, ordered=ordered)
    train, control = (np.bincount(numbers, n, minlength=k) for n in counts)
    assert train[-1] == control[-1] == 0
    assert (numbers[np.sum(counts, axis=0) == 0] == k - 1).all()
    if k == 2:  # all real rows are in one
        return
    assert (train[: k - 2] >= fewest).all()
    assert (train[k - 2] >= fewest) or train[k - 2] == control[k - 2] == 0
    assert all(n == 0 or n >= fewest for n in control)
    rest = np.flatnonzero(numbers[:-1] == k - 2)
    assert all(n[rest].sum() == 0 or n[rest].sum() >= fewest for n in counts)


@given(rows=COUNTS, fewest=st.integers(1, 10), ordered=st.booleans())
def test_cells_told_of_two_tables_are_among_those_of_the_first(rows, fewest, ordered):
    counts = list(np.array(rows).T)
    told, alone = (tellable_cells(c, fewest, ordered=ordered) for c in (counts, counts[:1]))
    assert set(told) <= set(alone)


@given(rows=COUNTS, fewest=st.integers(1, 10), seed=st.integers(0, 99))
def test_the_order_of_cells_decides_nothing(rows, fewest, seed):
    order = np.append(np.random.default_rng(seed).permutation(len(rows) - 1), len(rows) - 1)
    counts = list(np.array(rows).T)
    told = tellable_cells([n[order] for n in counts], fewest, ordered=False)
    assert sorted(order[told]) == tellable_cells(counts, fewest, ordered=False)


def test_cells_are_joined_by_hand():
    train, control = np.array([50, 20, 12, 3, 0, 0]), np.array([30, 15, 12, 0, 4, 0])
    assert tellable_cells([train], 10, ordered=True) == [0, 1]
    assert tellable_cells([train, control], 10, ordered=True) == [0, 1]
    assert joined_cells([train, control], 10, ordered=True)[0].tolist() == [0, 1, 2, 2, 2, 3]
    assert tellable_cells([np.array([50, 30, 0])], 10, ordered=True) == [0, 1]
    assert tellable_cells([np.array([50, 30, 0]), np.array([40, 9, 0])], 10, ordered=True) == []
    assert tellable_cells([np.array([90, 3, 11])], 10, ordered=True) == [2]
    assert tellable_cells([np.array([30, 30, 30, 1])], 10, ordered=True) == [1, 2]
    assert tellable_cells([np.array([30, 30, 30, 1])], 10, ordered=False) == []


@pytest.fixture
def normal():
    return np.random.default_rng(0).normal(50.0, 10.0, 4000)


def test_a_uniform_column_has_its_range():
    assert RobustScale.of(np.linspace(3.0, 7.0, 1001)).span == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("share", [0.001, 0.005, 0.05, 0.3, 0.7])
@pytest.mark.parametrize("code", [9999.0, -999.0])
def test_a_code_for_unknown_moves_nothing_however_frequent_it_is(normal, share, code):
    spoilt = normal.copy()
    spoilt[: round(share * len(normal))] = code
    expected, found = RobustScale.of(normal[spoilt != code]), RobustScale.of(spoilt)
    assert found.labels.tolist() == [code]
    assert (found.centre, found.span) == (expected.centre, expected.span)


def test_rare_extremes_are_numbers_far_away_and_hide_no_code_behind_them(normal):
    spoilt = normal.copy()
    spoilt[:3] = 1e5, 1e7, 1e9
    spoilt[3:9] = 9999.0
    found = RobustScale.of(spoilt)
    assert found.labels.tolist() == [9999.0]
    assert found.span == pytest.approx(RobustScale.of(normal).span, rel=0.02)
    numbers, what = found.read(np.array([1e9, 9999.0, 50.0]))
    assert what.tolist() == [REGULAR, FIRST_LABEL, REGULAR]
    assert numbers[0] > 1e6
    assert abs(numbers[2]) < 0.1


def test_a_value_that_most_rows_share_is_a_label_and_the_others_set_the_scale():
    rng = np.random.default_rng(0)
    gains = np.where(rng.random(5000) < 0.92, 0.0, rng.uniform(1000.0, 9000.0, 5000))
    found = RobustScale.of(gains)
    assert found.labels.tolist() == [0.0]
    assert found.span == pytest.approx(8000.0, rel=0.1)


def test_a_column_of_few_numbers_keeps_their_range():
    found = RobustScale.of(np.tile([0.0, 1.0], 50))
    assert found.span == 1.0
    assert not len(found.labels)


def test_a_code_for_unknown_that_was_moved_is_that_code_still(normal):
    spoilt = np.concatenate([normal, np.full(30, 9999.0)])
    found = RobustScale.of(spoilt)
    what = found.read(np.array([9990.0, 10_050.0, 6000.0, 200.0, np.nan]))[1]
    assert what.tolist() == [FIRST_LABEL, FIRST_LABEL, FIRST_LABEL, REGULAR, MISSING]


def test_levels_far_apart_are_told_apart_with_noise_on_them():
    rng = np.random.default_rng(0)
    levels = 3.0 ** rng.integers(0, 9, 500)
    found = RobustScale.of(levels)
    assert len(found.labels) > 3
    assert np.array_equal(found.read(levels * rng.uniform(0.95, 1.05, 500))[1], found.read(levels)[1])


def test_a_shared_value_ends_within_a_thirtieth_of_the_range():
    gains = np.concatenate([np.zeros(900), np.linspace(1000.0, 9000.0, 100)])
    found = RobustScale.of(gains)
    reach = found.span / NEAR
    assert found.read(np.array([0.9, 1.1]) * reach)[1].tolist() == [FIRST_LABEL, REGULAR]


def test_two_labels_never_reach_each_other():
    found = RobustScale.of(np.array([0.0] * 97 + [5.0] * 3))
    assert found.labels.tolist() == [0.0, 5.0]
    assert found.reach.max() < 2.5
    assert found.read(np.array([2.4, 2.5, 2.6, 9.0]))[1].tolist() == [
        FIRST_LABEL,
        REGULAR,
        FIRST_LABEL + 1,
        REGULAR,
    ]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [np.nan] * 4,
        [7.0] * 4,
        [1.7e308, -1.7e308, 0.0, 1.0],
        [5e-324, 1e-323, *[0.0] * 40],
        [-1.5e308, np.nan] * 3,
    ],
)
def test_no_value_is_nowhere(values):
    scale = RobustScale.of(np.array(values, dtype=float))
    numbers, what = scale.read(np.array([1.7e308, -1.7e308, 5e-324, 0.0, np.nan]))
    assert np.isfinite(numbers).all()
    assert what[-1] == MISSING
    assert scale.span > 0


def test_neither_order_nor_unit_moves_a_place(normal):
    values = np.concatenate([normal, np.full(20, 9999.0), [np.nan]])
    numbers, what = RobustScale.of(values).read(values)
    for other in (values * 1000.0, values / 7.0 - 3.0):
        moved, same = RobustScale.of(np.random.default_rng(1).permutation(other)).read(other)
        assert np.array_equal(same, what)
        assert moved == pytest.approx(numbers, abs=1e-9)


VALUES = st.integers(-4, 4).map(float)
VALUED = st.lists(VALUES, min_size=1, max_size=40).map(np.array)
GAPPY = st.lists(VALUES | st.just(np.nan), max_size=40).map(lambda x: np.array(x, dtype=np.float64))


def pair(a, b):
    return SortedPair.of(SortedNumbers.of(a), SortedNumbers.of(b))


@settings(deadline=None)
@given(a=VALUED, b=VALUED)
def test_distances_are_those_of_the_distribution_functions(a, b):
    points = np.unique(np.concatenate([a, b]))
    gaps = np.array([np.mean(a <= x) - np.mean(b <= x) for x in points])
    found = pair(a, b)
    assert found.values[found.last].tolist() == points.tolist()
    assert found.gaps == pytest.approx(gaps, abs=1e-12)
    assert found.kolmogorov_smirnov() == pytest.approx(np.abs(gaps).max(), abs=1e-12)
    assert found.wasserstein(found.values) == pytest.approx(np.abs(gaps[:-1]) @ np.diff(points), abs=1e-12)
    again = pair(a, np.sort(a)[::-1])
    assert again.kolmogorov_smirnov() == again.wasserstein(again.values) == 0


def test_distances_agree_with_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(size=301), np.round(rng.lognormal(0.3, 1.2, 200), 1)
    found = pair(a, b)
    assert found.kolmogorov_smirnov() == pytest.approx(stats.ks_2samp(a, b).statistic, abs=1e-12)
    assert found.wasserstein(found.values) == pytest.approx(stats.wasserstein_distance(a, b), rel=1e-12)


@given(values=GAPPY, most=st.integers(2, 12))
def test_counts_are_those_of_the_rows(values, most):
    numbers = SortedNumbers.of(values)
    edges = numbers.quantile_cells(most)
    counts = np.bincount(cell_codes(values, edges), minlength=len(edges) + 2)
    assert numbers.cell_counts(edges).tolist() == counts.tolist()
    assert numbers.held(np.arange(-5.0, 6.0)).tolist() == [int(np.sum(values == x)) for x in range(-5, 6)]
    distinct, often = np.unique(values[~np.isnan(values)], return_counts=True)
    usual, held = numbers.most_frequent()
    assert held == often.max(initial=0)
    assert usual.tolist() == distinct[often == held].tolist()


@settings(deadline=None)
@given(a=VALUED, b=VALUED, most=st.integers(2, 12))
def test_few_values_have_fine_cells_of_their_own(a, b, most):
    coarse, found, both = SortedNumbers.of(a).quantile_cells(most), pair(a, b), np.concatenate([a, b])
    edges = found.fine_cells(coarse)
    assert set(coarse) <= set(edges)
    cells = cell_codes(both, edges)
    assert len(np.unique(cells)) == len(np.unique(both))
    places = found.cell_places(edges, 3 * found.values, 3 * edges)
    assert places[cells] == pytest.approx(3 * both)
    assert (np.diff(places) >= 0).all()


def test_a_cell_lies_at_the_mean_of_its_values_or_at_its_edge():
    found = pair(np.array([0.0, 1.0, 5.0]), np.array([1.0, 7.0]))
    places = found.cell_places(np.array([1.0, 3.0, 4.0]), found.values, np.array([1.0, 3.0, 4.0]))
    assert places.tolist() == [pytest.approx(2 / 3), 3.0, 4.0, 6.0]
    assert found.cell_places(np.empty(0), found.values, np.empty(0)).tolist() == [2.8]


def test_distances_of_fine_cells_stand_for_those_of_values():
    rng = np.random.default_rng(0)
    a, b = np.exp(rng.normal(size=3000)), np.exp(rng.normal(0.2, 1.1, 2000))
    found = pair(a, b)
    edges = found.fine_cells(SortedNumbers.of(a).quantile_cells(10))
    assert len(edges) < 200
    p, q = (shares(cell_codes(x, edges), len(edges) + 2) for x in (a, b))
    gaps = np.abs(distribution_functions(p) - distribution_functions(q))
    assert gaps.max() == pytest.approx(found.kolmogorov_smirnov(), abs=0.01)
    places = found.cell_places(edges, found.values, edges)
    assert gaps[:-1] @ np.diff(places) == pytest.approx(found.wasserstein(found.values), rel=0.01)
    assert spread(p, places) == pytest.approx(a.std(), rel=0.01)
