"""In how many columns do two records disagree? A distance that no single column can dominate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Floats32, Integers, Positions
from synth_audit.neighbours.coordinates import side_by_side
from synth_audit.neighbours.gower import MISSING, Mixed, nearest, nearest_other
from synth_audit.neighbours.repeats import row_kinds
from synth_audit.neighbours.search import Nearest

NEAR = 30
"""Two numbers wholly disagree when they differ by 1/30 of the column's range in train, or more."""

FAR, MISSING_NUMBER = 1e6, 1e9
"""Where values far outside train's range, and missing ones, are put: in agreement only with themselves."""

_BLOCK = 2**17
"""Rows of the reference that are in a tree at a time."""

_APART, _ROUNDING = 4.0, 1e-5
"""Distance between rows whose labels differ, more than what counts as near; rounding of single precision."""


@dataclass(frozen=True, eq=False)
class MixedCells:
    """Rows prepared for comparison with other rows of the same preparation.

    Attributes:
        numbers: numeric columns in units of what counts as near, shape (n, p).
        labels: shared codes of discrete columns, in a type that holds them, shape (n, q).
        weights: the most that each number, then each label, adds to a disagreement, shape (p + q,).
    """

    numbers: Floats32
    labels: npt.NDArray[Any]
    weights: Floats32

    @classmethod
    def of(
        cls,
        n: int,
        numbers: Sequence[Floats32],
        labels: Sequence[npt.NDArray[Any]],
        weights: Sequence[float],
    ) -> Self:
        """Rows of one table from columns of shape (n,)."""
        dense = np.empty((n, len(numbers)), np.float32)
        for j, column in enumerate(numbers):
            dense[:, j] = column
        return cls(dense, side_by_side(labels, n), np.array(weights, np.float32))

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Positions) -> MixedCells:
        """The rows at these positions."""
        return MixedCells(self.numbers[rows], self.labels[rows], self.weights)

    @cached_property
    def searchable(self) -> Mixed:
        """The rows for a search by Gower's distance: the weighted mean over the columns of disagreements."""
        numbers = self.numbers.astype(np.float64)
        numbers[self.numbers >= MISSING_NUMBER] = MISSING
        return Mixed.of(numbers, self.labels, self.weights.astype(np.float64))


def least_disagreement(queries: MixedCells, reference: MixedCells) -> Floats:
    """For each query the smallest sum over columns of the disagreement with one reference row.

    ``Σ_j w_j min(1, |a_j − b_j| · 30 / range_j)`` for numbers and ``w_j [a_j ≠ b_j]`` for labels: no column
    adds more than its weight, and numbers within 1/30 of the range add a part, so that rows of a narrow table
    do not all agree. Missing agrees with missing. Shape (n,), 0 for a copy, rounded to six decimals.
    """
    return _summed(nearest(queries.searchable, reference.searchable), reference)


def least_disagreement_among(cells: MixedCells, rows: Positions, persons: Integers | None) -> Floats:
    """The same of some rows with the others, or with those of other persons, shape (rows,)."""
    return _summed(nearest_other(cells.searchable, rows, persons), cells)


def _summed(found: Nearest, reference: MixedCells) -> Floats:
    return np.round(found.first * float(reference.weights.sum()), 6)


def nearly_copied(queries: MixedCells, reference: MixedCells) -> Bools:
    """Whether some reference row agrees with a query in every label and, nearly, in every number, shape (n,).

    Nearly is within 1/30 of the column's range in train. Missing agrees with missing only. All labels
    together are one more coordinate in which different rows are too far apart, so that a tree under the
    largest difference of coordinates answers exactly; block by block of the reference, of which only rows
    with the labels of some query get into a tree.
    """
    found = np.zeros(len(queries), dtype=np.bool_)
    for start in range(0, len(reference), _BLOCK):
        asked = np.flatnonzero(~found)
        block = reference.take(np.arange(start, min(start + _BLOCK, len(reference))))
        found[asked] = _near_some(queries.take(asked), block)
    return found


def _near_some(queries: MixedCells, reference: MixedCells) -> Bools:
    from scipy.spatial import cKDTree  # here, since a code location must not load it

    groups = row_kinds(np.concatenate([queries.labels, reference.labels]))
    asked, known = np.split(groups, [len(queries)])
    met = np.isin(known, asked)
    if not met.any():
        return np.zeros(len(queries), dtype=np.bool_)
    # Neither balanced nor compact: many equal rows would make either costly.
    tree = cKDTree(
        np.column_stack([reference.numbers[met].astype(np.float64), known[met] * _APART]),
        balanced_tree=False,
        compact_nodes=False,
    )
    places = np.column_stack([queries.numbers.astype(np.float64), asked * _APART])
    distance, _ = tree.query(places, p=np.inf, distance_upper_bound=1 + _ROUNDING)
    return np.asarray(np.isfinite(distance))
