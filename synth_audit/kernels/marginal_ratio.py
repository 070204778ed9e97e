"""How much commoner than in the population the cells of one record are in a release that keeps marginals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synth_audit.core.arrays import Codes, Floats

Pair = tuple[int, int]
"""Positions of two columns."""


@dataclass(frozen=True, eq=False)
class MarginalRatios:
    """Log ratios of the counts of records' cells, release over population, for sets of columns.

    Attributes:
        release: the cell of every row and column of the release, shape (n, d). pool: of the real rows, shape
            (N, d); the first of them are the records asked about, and none counts itself.
        sizes: cells of every column, shape (d,).
        tested: how many records are asked about.
    """

    release: Codes
    pool: Codes
    sizes: Sequence[int]
    tested: int

    def of(self, *columns: int) -> Floats:
        """``log((s + 1) / (n r / (N − 1) + 1))`` of each record, shape (tested,).

        s is the number of release rows in the record's cell of these columns, r that of real rows but
        itself: a cell that neither table has says nothing, and one that both have equally often neither.
        """
        made, real = (_keys(rows, self.sizes, columns) for rows in (self.release, self.pool))
        asked = real[: self.tested]
        expected = (_counts(real, asked) - 1) * len(made) / (len(real) - 1)
        ratio: Floats = np.log((_counts(made, asked) + 1) / (expected + 1))
        return ratio

    def of_tree(self, edges: Sequence[Pair]) -> Floats:
        """Log ratio of the densities of each record under a tree of columns, shape (tested,).

        ``Σ_edges log r_ij − Σ_i (degree_i − 1) log r_i``: the density of a tree is the product of its pairs
        over that of the columns they share.
        """
        degree = np.bincount(np.array(edges, dtype=np.intp).ravel(), minlength=len(self.sizes))
        shared = [(degree[i] - 1) * self.of(i) for i in range(len(self.sizes)) if degree[i] != 1]
        density = np.zeros(self.tested)
        for edge in edges:
            density += self.of(*edge)
        for ratio in shared:
            density -= ratio
        return density

    def mean_of(self, pairs: Sequence[Pair]) -> Floats:
        """Mean over pairs of columns, shape (tested,)."""
        mean: Floats = np.mean([self.of(*pair) for pair in pairs], axis=0)
        return mean


def dependence_tree(codes: Codes, sizes: Sequence[int]) -> tuple[Pair, ...]:
    """The spanning tree of columns with the highest mutual information.

    Of a large table drawn from the distribution of a tree it is that tree.

    Mutual information of a pair is taken less ``(k − 1)(l − 1) / 2n``, what chance puts into k × l cells.
    Pairs that tell alike are taken in the order of the columns.

    Args:
        codes: the cell of every row and column, shape (n, d), n ≥ 1. sizes: cells of every column.

    Source: Chow & Liu 1968; Miller 1955 (chance).
    """
    entropies = [_entropy(_keys(codes, sizes, (i,))) for i in range(len(sizes))]
    told: dict[Pair, float] = {}
    for i, j in combinations(range(len(sizes)), 2):
        chance = (sizes[i] - 1) * (sizes[j] - 1) / (2 * len(codes))
        told[i, j] = entropies[i] + entropies[j] - _entropy(_keys(codes, sizes, (i, j))) - chance
    part, tree = list(range(len(sizes))), []
    for i, j in sorted(told, key=lambda pair: -told[pair]):
        if part[i] != part[j]:
            tree.append((i, j))
            part = [part[i] if p == part[j] else p for p in part]
    return tuple(tree)


def _keys(codes: Codes, sizes: Sequence[int], columns: Sequence[int]) -> Codes:
    """One number for each row's cell of these columns."""
    keys = np.zeros(len(codes), dtype=np.int64)
    for c in columns:
        keys = keys * sizes[c] + codes[:, c]
    return keys


def _counts(keys: Codes, asked: Codes) -> Floats:
    """How many of ``keys`` equal each of those asked about."""
    ordered = np.sort(keys)
    found: Floats = (
        np.searchsorted(ordered, asked, "right") - np.searchsorted(ordered, asked, "left")
    ).astype(np.float64)
    return found


def _entropy(keys: Codes) -> float:
    counts = np.unique(keys, return_counts=True)[1] / len(keys)
    return float(-(counts * np.log(counts)).sum())
