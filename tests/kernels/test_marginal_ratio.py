"""Ratios of counts against a slow twin, and trees that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from synth_audit.kernels.marginal_ratio import MarginalRatios, dependence_tree

SIZES = (3, 4, 2, 3)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, size, n) for size in SIZES])


def slow(made, pool, who, columns):
    def same(table):
        return sum(all(row[c] == pool[who][c] for c in columns) for row in table)

    expected = (same(pool) - 1) * len(made) / (len(pool) - 1)
    return math.log((same(made) + 1) / (expected + 1))


def test_a_ratio_is_that_of_the_counts_without_oneself():
    made, pool = rows(30, 0), rows(20, 1)
    ratios = MarginalRatios(made, pool, SIZES, 12)
    for columns in ((0,), (1, 3), (3, 1, 0)):
        twin = [slow(made, pool, who, columns) for who in range(12)]
        assert ratios.of(*columns) == pytest.approx(twin)
    pairs = [(0, 1), (2, 3)]
    assert ratios.mean_of(pairs) == pytest.approx((ratios.of(0, 1) + ratios.of(2, 3)) / 2)


def test_the_density_of_a_tree_divides_by_what_its_pairs_share():
    ratios = MarginalRatios(rows(30, 0), rows(20, 1), SIZES, 20)
    chain = ratios.of_tree([(0, 1), (1, 2), (2, 3)])
    pairs = ratios.of(0, 1) + ratios.of(1, 2) + ratios.of(2, 3)
    assert chain == pytest.approx(pairs - ratios.of(1) - ratios.of(2))
    star = ratios.of_tree([(0, 1), (0, 2), (0, 3)])
    pairs = ratios.of(0, 1) + ratios.of(0, 2) + ratios.of(0, 3)
    assert star == pytest.approx(pairs - 2 * ratios.of(0))


def test_a_column_of_no_edge_counts_by_itself():
    ratios = MarginalRatios(rows(30, 0), rows(20, 1), SIZES, 20)
    alone = ratios.of_tree([(0, 1)])
    assert alone == pytest.approx(ratios.of(0, 1) + ratios.of(2) + ratios.of(3))


def test_the_tree_that_rows_were_drawn_from_is_found():
    rng = np.random.default_rng(0)
    n, columns = 4000, [rng.integers(0, 4, 4000)]
    for parent in (0, 0, 1, 3):
        noise = rng.integers(0, 4, n)
        columns.append(np.where(rng.random(n) < 0.7, columns[parent], noise))
    found = dependence_tree(np.column_stack(columns), (4,) * 5)
    assert {tuple(sorted(edge)) for edge in found} == {(0, 1), (0, 2), (1, 3), (3, 4)}


def test_many_cells_do_not_look_like_dependence():
    rng = np.random.default_rng(0)
    n = 400
    first = rng.integers(0, 3, n)
    second = np.where(rng.random(n) < 0.4, first, rng.integers(0, 3, n))
    wide = [rng.integers(0, 60, n) for _ in range(2)]
    found = dependence_tree(np.column_stack([first, second, *wide]), (3, 3, 60, 60))
    assert found[0] == (0, 1)
