"""In how many columns do two records disagree? A distance that no single column can dominate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Floats32, Positions
from synth_audit.kernels.gower import MISSING, Mixed, nearest

NEAR = 30
"""Two numbers wholly disagree when they differ by 1/30 of the column's range in train, or more."""

FAR, MISSING_NUMBER = 1e6, 1e9
"""Where values far outside train's range, and missing ones, are put: in agreement only with themselves."""

_APART, _ROUNDING = 4.0, 1e-5
"""Distance between rows whose labels differ, more than what counts as near; rounding of single precision."""


@dataclass(frozen=True, eq=False)
class MixedCells:
    """Rows prepared for comparison with other rows of the same preparation.

    Attributes:
        numbers: numeric columns in units of what counts as near, shape (n, p).
        labels: shared codes of discrete columns, shape (n, q).
    """

    numbers: Floats32
    labels: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Positions) -> MixedCells:
        """The rows at these positions."""
        return MixedCells(self.numbers[rows], self.labels[rows])


def least_disagreement(queries: MixedCells, reference: MixedCells) -> Floats:
    """For each query the smallest sum over columns of the disagreement with one reference row.

    ``Σ_j min(1, |a_j − b_j| · 30 / range_j)`` for numbers and ``[a_j ≠ b_j]`` for labels: no column adds more
    than 1, and numbers within 1/30 of train's range add a part, so that rows of a narrow table do not
    all agree. Missing agrees with missing. Shape (n,), 0 for a copy, rounded to six decimals.
    """
    here, there = _weighted(queries), _weighted(reference)
    return np.round(nearest(here, there).first * len(here.weights), 6)


def _weighted(rows: MixedCells) -> Mixed:
    """The rows for a search by Gower's distance, which is the mean over the columns of what they disagree."""
    numbers = rows.numbers.astype(np.float64)
    numbers[rows.numbers >= MISSING_NUMBER] = MISSING
    return Mixed.of(numbers, rows.labels, np.ones(numbers.shape[1] + rows.labels.shape[1]))


def nearly_copied(queries: MixedCells, reference: MixedCells) -> Bools:
    """Whether some reference row agrees with a query in every label and, nearly, in every number, shape (n,).

    Nearly is within 1/30 of the column's range in train. Missing agrees with missing only. All labels
    together are one more coordinate in which different rows are too far apart, so that one tree under the
    largest difference of coordinates answers exactly.
    """
    from scipy.spatial import cKDTree  # here, since a code location must not load it

    groups = _row_numbers(np.concatenate([queries.labels, reference.labels]))
    kept = np.concatenate([queries.numbers, reference.numbers]).astype(np.float64)
    places = np.column_stack([kept, groups * _APART])
    # Neither balanced nor compact: many equal rows would make either costly.
    tree = cKDTree(places[len(queries) :], balanced_tree=False, compact_nodes=False)
    distance, _ = tree.query(places[: len(queries)], p=np.inf, distance_upper_bound=1 + _ROUNDING)
    return np.asarray(np.isfinite(distance))


def _row_numbers(labels: npt.NDArray[np.int32]) -> Positions:
    """Numbers that rows share exactly when all their labels agree, shape (n,)."""
    numbers = np.zeros(len(labels), dtype=np.intp)
    for column in labels.T.astype(np.int64):
        code = column - column.min(initial=0)
        numbers = np.unique(numbers * (code.max(initial=0) + 1) + code, return_inverse=True)[1]
    return numbers
