"""Exact nearest neighbours in blocks: distances, indices and ties, in memory that does not grow with n²."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats, Integers, Positions
from synth_audit.kernels.encode import Coordinates
from synth_audit.kernels.parallel import over_blocks

_BLOCK = 2**21
"""Distances held at a time by one thread: 16 MiB."""

_NOISE = 1e-12
"""Rounding of a squared distance computed from products, relative to the squared norms."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest reference rows of each query, shape (n,) each.

    Attributes:
        first: distance to the nearest reference row; exactly 0 for an equal row.
        second: distance to the next one (equal to ``first`` when tied; inf when there is no second row).
        index: position of a nearest reference row.
        ties: number of reference rows at that distance, at least 1.
    """

    first: Floats
    second: Floats
    index: Positions
    ties: Integers


def nearest(queries: Coordinates, reference: Coordinates) -> Nearest:
    """Find the nearest reference rows by Euclidean distance.

    A query is never taken for "itself": a row that also stands in the reference is at distance 0.
    Rows that differ by less than about 1e-6 of a standard deviation count as tied.

    Args:
        queries: n rows; reference: m rows of the same space, m ≥ 1.
    """
    return _search_all(queries, reference, None)


def nearest_other(table: Coordinates, rows: Positions) -> Nearest:
    """For the table's rows at these positions, the nearest of its other rows, duplicates included."""
    return _search_all(table.take(rows), table, rows)


@dataclass(frozen=True, eq=False)
class _PreparedRows:
    """Reference rows with what every block needs of them: −2 bᵀ, shape (width, m), and |b|², shape (m,)."""

    rows: Coordinates
    turned: Floats
    squared: Floats

    @classmethod
    def of(cls, rows: Coordinates) -> _PreparedRows:
        return cls(rows, -2.0 * rows.dense.T, np.einsum("ij,ij->i", rows.dense, rows.dense))


def _search_all(queries: Coordinates, reference: Coordinates, own: Positions | None) -> Nearest:
    prepared = _PreparedRows.of(reference)

    def search(block: slice) -> _Found:
        rows = np.arange(block.start, block.stop)
        return _search(queries.take(rows), prepared, None if own is None else own[rows])

    found = over_blocks(len(queries), max(1, _BLOCK // max(1, len(reference))), search)
    first, second, index, ties = (np.concatenate(part) for part in zip(*found, strict=True))
    return Nearest(first, second, index, ties)


_Found = tuple[Floats, Floats, Positions, Integers]


def _search(block: Coordinates, reference: _PreparedRows, own: Positions | None) -> _Found:
    squared, offset = _squared_distances(block, reference)
    here = np.arange(len(block))
    if own is not None:
        squared[here, own] = np.inf
    index = squared.argmin(axis=1)
    least = np.maximum(squared[here, index] + offset, 0.0)
    noise = _NOISE * (1.0 + offset + least)
    ties = np.count_nonzero(squared <= (least + noise - offset)[:, None], axis=1)
    squared[here, index] = np.inf
    next_index = squared.argmin(axis=1)
    alone = np.isinf(squared[here, next_index])
    first = np.where(np.isinf(least), np.inf, _distance(block, reference.rows, index))
    second = np.where(alone, np.inf, _distance(block, reference.rows, next_index))
    return first, np.maximum(first, second), index, ties


def _squared_distances(block: Coordinates, reference: _PreparedRows) -> tuple[Floats, Floats]:
    """−2ab + |b|² by one matrix product, shape (n, m), and |a|², shape (n,), which makes it |a − b|².

    Rounding grows with |a|² + |b|². Only rows b near a can be nearest, and |b|² ≤ 2|a|² + 2|a − b|²: what is
    allowed for it is one of the query, so that no outlier in the reference makes all other rows look tied.
    """
    squared = block.dense @ reference.turned
    squared += reference.squared
    for column in range(block.labels.shape[1]):
        squared += 2.0 * (block.labels[:, column, None] != reference.rows.labels[None, :, column])
    return squared, np.einsum("ij,ij->i", block.dense, block.dense)


def _distance(block: Coordinates, reference: Coordinates, index: Positions) -> Floats:
    """Distances recomputed from differences, so that equal rows are at exactly 0, and rounded to nine
    decimals, so that distances which are equal in exact arithmetic compare as equal."""
    apart = block.dense - reference.dense[index]
    unlike = np.count_nonzero(block.labels != reference.labels[index], axis=1)
    distance: Floats = np.round(np.sqrt(np.einsum("ij,ij->i", apart, apart) + 2.0 * unlike), 9)
    return distance
