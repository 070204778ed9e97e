"""Exact nearest neighbours in blocks: distances, indices and ties, in memory that does not grow with n²."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.kernels.encode import Coordinates

Floats = npt.NDArray[np.float64]

_BLOCK = 2**23
"""Distances held at a time: 64 MiB."""

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
    index: npt.NDArray[np.intp]
    ties: npt.NDArray[np.int64]


def nearest(queries: Coordinates, reference: Coordinates) -> Nearest:
    """Find the nearest reference rows by Euclidean distance.

    A query is never taken for "itself": a row that also stands in the reference is at distance 0.
    Rows that differ by less than about 1e-6 of a standard deviation count as tied.

    Args:
        queries: n rows; reference: m rows of the same space, m ≥ 1.
    """
    return _search_all(queries, reference, None)


def nearest_other(table: Coordinates, rows: npt.NDArray[np.intp]) -> Nearest:
    """For the table's rows at these positions, the nearest of its other rows, duplicates included."""
    return _search_all(table.take(rows), table, rows)


def _search_all(queries: Coordinates, reference: Coordinates, own: npt.NDArray[np.intp] | None) -> Nearest:
    size = max(1, _BLOCK // max(1, len(reference)))
    found = []
    for start in range(0, len(queries), size):
        rows = np.arange(start, min(start + size, len(queries)))
        found.append(_search(queries.take(rows), reference, None if own is None else own[rows]))
    first, second, index, ties = (np.concatenate(part) for part in zip(*found, strict=True))
    return Nearest(first, second, index, ties)


def _search(
    block: Coordinates, reference: Coordinates, own: npt.NDArray[np.intp] | None
) -> tuple[Floats, Floats, npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    squared, noise = _squared_distances(block, reference)
    here = np.arange(len(block))
    if own is not None:
        squared[here, own] = np.inf
    index = squared.argmin(axis=1)
    least = squared[here, index]
    ties = np.count_nonzero(squared <= (least * (1.0 + _NOISE) + noise)[:, None], axis=1)
    squared[here, index] = np.inf
    next_index = squared.argmin(axis=1)
    alone = np.isinf(squared[here, next_index])
    first = np.where(np.isinf(least), np.inf, _distance(block, reference, index))
    second = np.where(alone, np.inf, _distance(block, reference, next_index))
    return first, np.maximum(first, second), index, ties


def _squared_distances(block: Coordinates, reference: Coordinates) -> tuple[Floats, Floats]:
    """|a|² − 2ab + |b|² by one matrix product, and how far rounding may have moved each row of it.

    Rounding grows with |a|² + |b|². Only rows b near a can be nearest, and |b|² ≤ 2|a|² + 2|a − b|²: the
    allowance is one of the query, so that no outlier in the reference makes all other rows look tied.
    """
    of_block = np.einsum("ij,ij->i", block.dense, block.dense)
    of_reference = np.einsum("ij,ij->i", reference.dense, reference.dense)
    squared = block.dense @ (-2.0 * reference.dense.T)
    squared += of_reference
    squared += of_block[:, None]
    for column in range(block.labels.shape[1]):
        squared += 2.0 * (block.labels[:, column, None] != reference.labels[None, :, column])
    np.maximum(squared, 0.0, out=squared)
    return squared, _NOISE * (1.0 + of_block)


def _distance(block: Coordinates, reference: Coordinates, index: npt.NDArray[np.intp]) -> Floats:
    """Distances recomputed from differences, so that equal rows are at exactly 0, and rounded to nine
    decimals, so that distances which are equal in exact arithmetic compare as equal."""
    apart = block.dense - reference.dense[index]
    unlike = np.count_nonzero(block.labels != reference.labels[index], axis=1)
    distance: Floats = np.round(np.sqrt(np.einsum("ij,ij->i", apart, apart) + 2.0 * unlike), 9)
    return distance
