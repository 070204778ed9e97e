"""Exact nearest neighbours by Euclidean distance, found by matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Floats, Positions
from synth_audit.kernels.coordinates import Coordinates
from synth_audit.kernels.labels import count_unlike, small_codes
from synth_audit.kernels.neighbours import Nearest, Scores, search
from synth_audit.kernels.repeats import Repeats, search_once

_LONG = 1e3
"""Rows longer than this lie too far out for products in single precision to tell their neighbours apart."""

_FAR = 1e140
"""Where coordinates beyond all reason are put, so that no product overflows."""

_TIED = 1e-9
"""Distances are rounded to this."""

_QUERIES, _REFERENCES = 256, 2**14  # 16 MiB of scores, each product long enough for the library's own blocks


def nearest(queries: Coordinates, reference: Coordinates) -> Nearest:
    """Find the nearest reference rows by Euclidean distance, exactly.

    A query is never taken for "itself": a row that also stands in the reference is at distance 0. Distances
    are rounded to nine decimals, so that those which are equal in exact arithmetic compare as equal.

    Args:
        queries: n rows; reference: m rows of the same space, m ≥ 1.
    """
    return search_once(queries, reference, Repeats.of(reference.dense, reference.labels), _Products.of)


def nearest_other(table: Coordinates, rows: Positions) -> Nearest:
    """For the table's rows at these positions, the nearest of its other rows, duplicates included."""
    return search(_Products.of(table.take(rows), table), own=rows)


@dataclass(frozen=True, eq=False)
class _Products:
    """Queries a and reference b, scored by ``|b|² − 2ab + 2·[labels unlike]``, which is ``|a − b|² − |a|²``.

    Attributes:
        turned: (a, 1), shape (n, width + 1). factors: (−2b, |b|²)ᵀ, shape (width + 1, m).
        query_labels, reference_labels: shape (q, n) and (q, m).
        norms: |a|, shape (n,).
    """

    queries: Coordinates
    reference: Coordinates
    turned: Scores
    factors: Scores
    query_labels: npt.NDArray[Any]
    reference_labels: npt.NDArray[Any]
    norms: Floats

    @classmethod
    def of(cls, queries: Coordinates, reference: Coordinates) -> _Products:
        a, b = (np.clip(rows.dense, -_FAR, _FAR) for rows in (queries, reference))
        mine, theirs = (np.einsum("ij,ij->i", x, x) for x in (a, b))
        short = max(mine.max(initial=0.0), theirs.max(initial=0.0)) <= _LONG**2
        dtype = np.dtype(np.float32 if short else np.float64)
        labels, others = small_codes(queries.labels, reference.labels)
        return cls(
            queries,
            reference,
            np.hstack([a, np.ones((len(a), 1))]).astype(dtype),
            np.ascontiguousarray(np.hstack([-2.0 * b, theirs[:, None]]).T, dtype),
            labels,
            others,
            np.sqrt(mine),
        )

    @property
    def size(self) -> tuple[int, int]:
        return len(self.queries), len(self.reference)

    @property
    def block(self) -> tuple[int, int]:
        return _QUERIES, _REFERENCES

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.turned.dtype

    def scores(self, rows: slice, columns: slice, out: Scores) -> None:
        np.matmul(self.turned[rows], self.factors[:, columns], out=out)
        for count in count_unlike(self.query_labels[:, rows], self.reference_labels[:, columns]):
            out += count * out.dtype.type(2)

    def slack(self, rows: slice, limit: Floats) -> Floats:
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
        unlike = np.count_nonzero(self.queries.labels[rows] != self.reference.labels[columns], axis=1)
        distance: Floats = np.round(np.sqrt(np.einsum("ij,ij->i", apart, apart) + 2.0 * unlike), 9)
        return distance
