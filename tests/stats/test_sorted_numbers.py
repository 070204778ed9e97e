"""Numbers that are sorted once, against definitions and peers that sort them anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth_audit.stats.distributions import (
    SortedNumbers,
    SortedPair,
    cell_codes,
    distribution_functions,
    shares,
    spread,
)

VALUES = st.integers(-4, 4).map(float)
SAMPLE = st.lists(VALUES, min_size=1, max_size=40).map(np.array)
GAPPY = st.lists(VALUES | st.just(np.nan), max_size=40).map(lambda x: np.array(x, dtype=np.float64))


def pair(a, b):
    return SortedPair.of(SortedNumbers.of(a), SortedNumbers.of(b))


@settings(deadline=None)
@given(a=SAMPLE, b=SAMPLE)
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
@given(a=SAMPLE, b=SAMPLE, most=st.integers(2, 12))
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
