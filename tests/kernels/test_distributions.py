"""Distances between distributions against peers and definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth_audit.kernels.distributions import (
    cell_codes,
    hellinger,
    kolmogorov_smirnov,
    quantile_cells,
    resampled_shares,
    shares,
    total_variation,
)

SAMPLE = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=40).map(np.array)
WEIGHTS = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any).map(lambda w: np.array(w) / sum(w))


@pytest.mark.filterwarnings("ignore:ks_2samp")  # about its p-value, which is not used
@settings(deadline=None)
@given(a=SAMPLE, b=SAMPLE)
def test_ks_agrees_with_scipy(a, b):
    assert kolmogorov_smirnov(a, b) == pytest.approx(stats.ks_2samp(a, b, method="exact").statistic)


@given(p=WEIGHTS, q=WEIGHTS)
def test_total_variation_and_hellinger_are_distances(p, q):
    tv, h = float(total_variation(p, q)), hellinger(p, q)
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


def test_resampled_shares_have_the_right_mean_and_spread():
    p = np.array([0.7, 0.2, 0.1])
    draws = resampled_shares(p, 50, 4000, np.random.default_rng(0))
    assert draws.sum(axis=1) == pytest.approx(1)
    assert draws.mean(axis=0) == pytest.approx(p, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(np.sqrt(p * (1 - p) / 50), rel=0.08)
