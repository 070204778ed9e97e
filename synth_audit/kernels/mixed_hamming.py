"""In how many columns do two records disagree? A distance that no single column can dominate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes, Floats, Floats32, Positions
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
        weights: the most that each number, then each label, adds to a disagreement, shape (p + q,).
    """

    numbers: Floats32
    labels: npt.NDArray[np.int32]
    weights: Floats32

    @classmethod
    def of(cls, n: int, numbers: Sequence[Floats], labels: Sequence[Codes], weights: Sequence[float]) -> Self:
        """Rows of one table from columns of shape (n,)."""
        return cls(
            np.array(numbers, np.float32).reshape(-1, n).T.copy(),
            np.array(labels, np.int32).reshape(-1, n).T.copy(),
            np.array(weights, np.float32),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Positions) -> MixedCells:
        """The rows at these positions."""
        return MixedCells(self.numbers[rows], self.labels[rows], self.weights)


def least_disagreement(queries: MixedCells, reference: MixedCells) -> Floats:
    """For each query the smallest sum over columns of the disagreement with one reference row.

    ``Σ_j w_j min(1, |a_j − b_j| · 30 / range_j)`` for numbers and ``w_j [a_j ≠ b_j]`` for labels: no column
    adds more than its weight, and numbers within 1/30 of the range add a part, so that rows of a narrow table
    do not all agree. Missing agrees with missing. Shape (n,), 0 for a copy, rounded to six decimals.
    """
    least = nearest(_as_mixed(queries), _as_mixed(reference)).first * float(reference.weights.sum())
    return np.round(least, 6)


def _as_mixed(rows: MixedCells) -> Mixed:
    """The rows for a search by Gower's distance, the weighted mean over the columns of what they disagree."""
    numbers = rows.numbers.astype(np.float64)
    numbers[rows.numbers >= MISSING_NUMBER] = MISSING
    return Mixed.of(numbers, rows.labels.astype(np.int64), rows.weights.astype(np.float64))


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
