"""Exact nearest neighbours by Euclidean distance, found by matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Integers, Positions, Scores
from synth_audit.neighbours import memory
from synth_audit.neighbours.coordinates import Boxes, Coordinates, add_unlike, small_codes, told_apart
from synth_audit.neighbours.gpu_scores import TensorScores
from synth_audit.neighbours.repeats import Repeats, search_once
from synth_audit.neighbours.search import (
    Hidden,
    Leaves,
    Nearest,
    NearestK,
    search,
    search_nearest_k,
    worth_leaves,
)

_LONG = 1e3
"""Rows longer than this lie too far out for products in single precision to tell their neighbours apart."""

_FAR = 1e140
"""Where coordinates beyond all reason are put, so that no product overflows."""

_TIED = 1e-9
"""Distances are rounded to this."""


def nearest(queries: Coordinates, reference: Coordinates) -> Nearest:
    """Find the nearest reference rows by Euclidean distance, exactly.

    A query is never taken for "itself": a row that also stands in the reference is at distance 0. Distances
    are rounded to nine decimals, so that those which are equal in exact arithmetic compare as equal.

    Args:
        queries: n rows; reference: m rows of the same space, m ≥ 1.
    """
    return search_once(queries, reference, Repeats.of(reference.dense, reference.labels), _Products.of)


def nearest_other(table: Coordinates, rows: Positions, persons: Integers | None = None) -> Nearest:
    """For the table's rows at these positions, the nearest of its other rows, duplicates included.

    Args:
        persons: number of the person of each row of the table, shape (m,): rows of the same person are not
            looked at then. Infinitely far where there is no other row.
    """
    return search(_Products.of(table.take(rows), table), Hidden.own(rows, persons))


def nearest_others(table: Coordinates, rows: Positions, k: int) -> NearestK:
    """For the table's rows at these positions, the k nearest of its other rows, or all others."""
    return search_nearest_k(_Products.of(table.take(rows), table), min(k, len(table) - 1), own=rows)


@dataclass(frozen=True, eq=False)
class _Products:
    """Queries a and reference b, scored by ``|b|² − 2ab + Σ u [labels unlike]``, that is ``|a − b|² − |a|²``.

    Attributes:
        turned: (a, 1), shape (n, width + 1). factors: (−2b, |b|²)ᵀ, shape (width + 1, m).
        query_labels, reference_labels: of the columns in which rows differ, shape (q, n) and (q, m).
        unlike: u of these columns, length q.
        norms: |a|, shape (n,).
        leaves: in whose order the factors and the reference's labels stand.
    """

    queries: Coordinates
    reference: Coordinates
    turned: Scores
    factors: Scores
    query_labels: npt.NDArray[Any]
    reference_labels: npt.NDArray[Any]
    unlike: tuple[float, ...]
    norms: Floats
    leaves: Leaves | None
    boxes: Boxes | None

    @classmethod
    def of(cls, queries: Coordinates, reference: Coordinates) -> _Products:
        width = reference.dense.shape[1] + reference.labels.shape[1]
        leaves = reference.leaves if worth_leaves(len(queries), len(reference), width) else None
        put: slice | Positions = slice(None) if leaves is None else leaves.order
        mine, theirs = _squared_norms(queries), _squared_norms(reference)[put]
        short = max(mine.max(initial=0.0), theirs.max(initial=0.0)) <= _LONG**2
        dtype = np.dtype(np.float32 if short else np.float64)
        turned = np.ones((len(queries), queries.dense.shape[1] + 1), dtype)
        turned[:, :-1] = np.clip(queries.dense, -_FAR, _FAR)
        factors = np.empty((turned.shape[1], len(reference)), dtype)
        for row, column in zip(factors, reference.dense.T, strict=False):  # one by one: there may be millions
            row[:] = np.clip(column[put], -_FAR, _FAR) * -2.0
        factors[-1] = theirs
        told = told_apart(queries.labels, reference.labels)
        labels, others = small_codes(queries.labels[:, told], reference.labels[:, told])
        unlike = reference.unlike[told]
        others = (
            others if leaves is None else np.take(others, leaves.order, axis=1)
        )  # each column in one piece
        boxes = None if leaves is None else Boxes.of(factors[:-1], others, unlike, leaves, dtype).turned(-2.0)
        norms, costs = np.sqrt(mine), tuple(unlike.tolist())
        return cls(queries, reference, turned, factors, labels, others, costs, norms, leaves, boxes)

    @property
    def size(self) -> tuple[int, int]:
        return len(self.queries), len(self.reference)

    @property
    def block(self) -> tuple[int, int]:
        return max(1, memory.PRODUCTS // memory.TILE), memory.TILE

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.turned.dtype

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        np.matmul(self.turned[rows], self.factors[:, columns], out=out)
        if len(self.query_labels):
            labels, others = self.query_labels[:, rows], self.reference_labels[:, columns]
            add_unlike(out, self.unlike, labels, others)

    def on(self, device: str) -> TensorScores:
        labels = self.query_labels, self.reference_labels
        return TensorScores.products((self.turned, self.factors), labels, self.unlike, device)

    def bounds(self, rows: slice) -> Scores:
        assert self.boxes is not None
        numbers = self.turned[rows, :-1].T
        total = self.boxes.bounds(numbers, self.query_labels[:, rows], lambda _, apart: apart * apart)
        total -= (self.norms[rows] ** 2).astype(total.dtype)[:, None]
        return total

    def slack(self, rows: slice | Positions, limit: Floats) -> Floats:
        """Rounding of a product of w terms is at most about ``w u (|a| + |b|)²``, u the type's precision.

        Only rows b near a can be nearest, and |b| ≤ |a| + |a − b|: what is allowed for is one of the query,
        so that no outlier in the reference makes all other rows look tied.
        """
        norms = self.norms[rows]
        apart = np.sqrt(np.maximum(limit + norms**2, 0.0))
        terms = len(self.factors) + len(self.query_labels) + 8
        off = terms * float(np.finfo(self.dtype).eps) * (2.1 * norms + 1.1 * apart) ** 2
        slack: Floats = 2 * off + 4 * _TIED * (apart + _TIED)
        return slack

    def distances(self, rows: Positions, columns: Positions) -> Floats:
        apart = self.queries.dense[rows] - self.reference.dense[columns]
        unlike = self.queries.labels[rows] != self.reference.labels[columns]
        squared = np.einsum("ij,ij->i", apart, apart) + unlike @ self.reference.unlike
        distance: Floats = np.round(np.sqrt(squared), 9)
        return distance


def _squared_norms(rows: Coordinates) -> Floats:
    total = np.zeros(len(rows))
    for column in rows.dense.T:
        total += np.clip(column, -_FAR, _FAR) ** 2
    return total
