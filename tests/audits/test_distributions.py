"""Distances between two distributions, and sorted samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth_audit.audits.fidelity import _shared_cells as shared_cells
from synth_audit.stats.distributions import SortedNumbers, cell_codes, tellable_cells


def quantile_cells(anchor, most):
    return SortedNumbers.of(anchor).quantile_cells(most)


SAMPLE = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=40).map(np.array)
WEIGHTS = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any).map(lambda w: np.array(w) / sum(w))


@given(p=WEIGHTS, q=WEIGHTS)
def test_total_variation_and_hellinger_are_distances(p, q):
    tv, h = float(shared_cells.total_variation(p, q)), float(shared_cells.hellinger(p, q))
    assert tv == pytest.approx(sum(max(a - b, 0) for a, b in zip(p, q, strict=True)))
    assert h == pytest.approx(np.sqrt(max(0.0, 1 - np.sqrt(p * q).sum())), abs=1e-7)
    assert h**2 - 1e-9 <= tv <= h * np.sqrt(2) + 1e-9
    assert tv == shared_cells.total_variation(q, p)
    assert shared_cells.total_variation(p, p) == shared_cells.hellinger(p, p) == 0


def test_disjoint_shares_are_at_distance_one():
    p, q = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.2, 0.8])
    assert shared_cells.total_variation(p, q) == pytest.approx(1)
    assert shared_cells.hellinger(p, q) == pytest.approx(1)


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
    assert shared_cells.shares(cell_codes(smooth, quantile_cells(smooth, 10)), 11)[:10] == pytest.approx(
        0.1, abs=0.002
    )
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
    scaled = shared_cells.in_deviations(values, anchor)
    if len(np.unique(anchor)) == 1:
        assert scaled is None
    else:
        assert scaled == pytest.approx((values - anchor.min()) / anchor.std())


def test_deviations_of_huge_and_of_missing_values_are_finite():
    huge = np.array([-1.7e308, 1.7e308, 0.0, np.nan])
    assert shared_cells.in_deviations(huge, huge)[:3] == pytest.approx(np.array([0, 2, 1]) * np.sqrt(1.5))
    assert np.isnan(shared_cells.in_deviations(huge, huge)[3])
    assert shared_cells.in_deviations(np.array([1.7e308]), np.array([0.0, 1e-300])) == shared_cells.FARTHEST
    assert shared_cells.in_deviations(huge, np.array([np.nan])) is None
    assert shared_cells.in_deviations(huge, np.array([0.1, 0.1, 0.1, np.nan])) is None
    dates = 1.6e15 + np.array([0.0, 1.0, 2.0])  # microseconds apart
    assert shared_cells.in_deviations(dates, dates) == pytest.approx(np.array([0, 1, 2]) * np.sqrt(1.5))


@settings(deadline=None)
@given(p=WEIGHTS, q=WEIGHTS, n=st.integers(1, 500))
def test_inverted_chi_square_agrees_with_scipy(p, q, n):
    seen = p > 0
    found = float(shared_cells.inverted_chi_square(q, p, n))
    if q[~seen].any():
        assert found == 1
    elif seen.sum() == 1:
        assert found == 0
    else:
        expected = stats.chisquare(n * q[seen], n * p[seen] * q[seen].sum() / p[seen].sum())
        assert found == pytest.approx(1 - expected.pvalue, abs=1e-9)


def test_inverted_chi_square_grows_with_the_rows_while_the_distance_stands_still():
    p, q = np.array([0.5, 0.5]), np.array([0.55, 0.45])
    assert [round(float(shared_cells.inverted_chi_square(q, p, n)), 3) for n in (10, 100, 1000)] == [
        0.248,
        0.683,
        0.998,
    ]
    both = shared_cells.inverted_chi_square(np.array([q, p]), np.array([p, p]), 100)
    assert both.tolist() == [float(shared_cells.inverted_chi_square(q, p, 100)), 0.0]


def test_missing_is_no_part_of_a_distribution_function():
    drawn = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    assert shared_cells.distribution_functions(drawn).tolist() == [[0.4, 1.0], [0.0, 0.0]]
    assert shared_cells.spread(drawn, np.array([0.0, 1.0])) == pytest.approx([np.sqrt(0.24), 0])


@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e300, 1.7e308])
def test_spread_knows_no_unit(unit):
    drawn = np.array([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])
    assert shared_cells.spread(drawn, np.array([-unit, unit])) / unit == pytest.approx([1, 0.6])


@pytest.mark.parametrize("n", [50, 3 * shared_cells.GROUPS + 7])
def test_resampled_shares_have_the_right_mean_and_spread(n):
    p = np.array([0.7, 0.2, 0.1])
    codes = np.repeat([0, 1, 2], (p * n).astype(int).tolist())
    p = shared_cells.shares(codes, 3)
    draws = shared_cells.Resamples.of(len(codes), 4000, np.random.default_rng(0)).shares(codes, 3)
    assert draws.sum(axis=1) == pytest.approx(1)
    assert draws.mean(axis=0) == pytest.approx(p, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(np.sqrt(p * (1 - p) / n), rel=0.1)


def test_columns_share_their_resamples():
    codes = np.arange(300) % 2
    drawn = shared_cells.Resamples.of(300, 100, np.random.default_rng(0))
    assert np.array_equal(drawn.shares(codes, 2), drawn.shares(1 - codes, 2)[:, ::-1])
    again = shared_cells.Resamples.of(300, 100, np.random.default_rng(0)).shares(codes, 2)
    assert np.array_equal(drawn.shares(codes, 2), again)


def test_no_interval_is_without_width():
    wide = shared_cells.distance_interval(0.5, np.array([0.4, 0.6]), 0.95, 0.01)
    assert wide.high - wide.low == pytest.approx(2 * 1.96 * 0.1414, rel=1e-3)
    flat = shared_cells.distance_interval(1.0, np.ones(5), 0.95, 0.01)
    assert (flat.low, flat.high) == pytest.approx((0.99, 1.01))


COUNTS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=2, max_size=8)


@given(rows=COUNTS, fewest=st.integers(1, 10), ordered=st.booleans())
def test_joined_cells_hold_enough_real_rows_or_none(rows, fewest, ordered):
    counts = list(np.array(rows).T)
    numbers, k = shared_cells.joined_cells(counts, fewest, ordered=ordered)
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
    assert shared_cells.joined_cells([train, control], 10, ordered=True)[0].tolist() == [0, 1, 2, 2, 2, 3]
    assert tellable_cells([np.array([50, 30, 0])], 10, ordered=True) == [0, 1]
    assert tellable_cells([np.array([50, 30, 0]), np.array([40, 9, 0])], 10, ordered=True) == []
    assert tellable_cells([np.array([90, 3, 11])], 10, ordered=True) == [2]
    assert tellable_cells([np.array([30, 30, 30, 1])], 10, ordered=True) == [1, 2]
    assert tellable_cells([np.array([30, 30, 30, 1])], 10, ordered=False) == []


VALUES = st.integers(-4, 4).map(float)
VALUED = st.lists(VALUES, min_size=1, max_size=40).map(np.array)
GAPPY = st.lists(VALUES | st.just(np.nan), max_size=40).map(lambda x: np.array(x, dtype=np.float64))


def pair(a, b):
    return shared_cells.SortedPair.of(SortedNumbers.of(a), SortedNumbers.of(b))


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
    p, q = (shared_cells.shares(cell_codes(x, edges), len(edges) + 2) for x in (a, b))
    gaps = np.abs(shared_cells.distribution_functions(p) - shared_cells.distribution_functions(q))
    assert gaps.max() == pytest.approx(found.kolmogorov_smirnov(), abs=0.01)
    places = found.cell_places(edges, found.values, edges)
    assert gaps[:-1] @ np.diff(places) == pytest.approx(found.wasserstein(found.values), rel=0.01)
    assert shared_cells.spread(p, places) == pytest.approx(a.std(), rel=0.01)
