"""Cells that are divided where rows are, shares from noisy counts, and offsets that set shares right."""

import numpy as np
import pytest

from synth_audit.generators._deep.transforms import label_offsets, rank_knots
from synth_audit.generators._marginal.binning import MarginCells, adaptive_cells, rounds, settled


def test_an_atom_gets_a_cell_of_its_own_and_the_empty_end_one_cell():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(5000) < 0.7, 12_345, rng.integers(0, 1000, 5000)) + rng.random(5000)
    asked = []

    def noisy(counts):
        asked.append(counts.sum())
        return counts + rng.normal(0, 5, counts.shape)

    cells = adaptive_cells(values, 100_000, noisy, 20)
    assert len(asked) == rounds(100_000) == 4
    assert max(asked) <= 5000, "no row is counted twice in one round"
    at = int(np.searchsorted(cells.edges, 12_345))
    assert cells.edges[at : at + 2].tolist() == [12_345, 12_346]
    assert cells.shares[at] == pytest.approx(0.7, abs=0.02)
    assert cells.shares[cells.edges[:-1] > 13_000].sum() < 0.02
    assert cells.places(cells.ranks(np.array([12_345.5]))) == pytest.approx(12_345.5)
    assert np.all(cells.shares > 0)
    assert cells.shares.sum() == pytest.approx(1)


def test_all_places_are_covered_whatever_their_number():
    for places in (1, 2, 5, 33, 74, 4096):
        cells = adaptive_cells(np.full(50, 0.5), places, lambda counts: counts, 10)
        assert (cells.edges[0], cells.edges[-1]) == (0, places)
        assert np.all(np.diff(cells.edges) > 0)


@pytest.mark.parametrize("most", [1, 2, 5, 20])
def test_groups_are_few_and_a_large_cell_is_one_alone(most):
    shares = np.array([0.6, *np.full(40, 0.004), 0.2, *np.full(8, 0.005)])
    cells = MarginCells(np.arange(len(shares) + 1.0), shares)
    first = cells.grouped(most)
    assert first[0] == 0
    assert np.all(np.diff(first) > 0)
    assert len(first) <= most
    if most >= 5:
        assert {0, 1, 41, 42} <= set(first.tolist())
        assert max(np.add.reduceat(shares, first)) == 0.6


def test_nothing_counted_is_everything_alike():
    assert settled(np.array([-3.0, 1.0, -np.inf]), 5.0).tolist() == [0.5, 0.5, 0.0]
    assert settled(np.array([90.0, 4.0, 6.0]), 10.0).tolist() == [0.9, 0.05, 0.05]


def test_offsets_tell_rare_labels_apart_where_a_network_is_sure():
    """As on Adult's countries: steps of one length for all labels left a tenth of the rows wrong."""
    scores = np.random.default_rng(0).normal(scale=0.01, size=(4000, 40))
    scores[:, 0] += 0.8
    shares = np.append(0.9, np.full(39, 0.1 / 39))
    drawn = (scores + label_offsets(scores, shares)).argmax(axis=1)
    assert np.abs(np.bincount(drawn, minlength=40) / 4000 - shares).sum() / 2 < 0.005


def test_offsets_and_knots_set_margins_right():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(5000, 4)).astype(np.float32) * [1, 2, 0.1, 1] + [0, 1, 3, -5]
    shares = np.array([0.5, 0.25, 0.05, 0.2])
    drawn = (scores + label_offsets(scores, shares)).argmax(axis=1)
    assert np.abs(np.bincount(drawn, minlength=4) / 5000 - shares).max() < 0.002
    values = rng.exponential(size=5000).astype(np.float32)
    knots = rank_knots(values)
    ranks = np.interp(values, knots, np.linspace(0, 1, len(knots)))
    assert np.abs(np.quantile(ranks, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.01
    assert np.all(np.diff(rank_knots(np.zeros(10, dtype=np.float32))) > 0)
