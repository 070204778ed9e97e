"""The least that a row of a leaf can score, by the box of the leaf's numbers and the set of its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Scores
from synth_audit.kernels.leaves import Leaves

_LABELS = 1024
"""Labels of a column told apart; of more, those with the same remainder are taken for one."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of the leaves of a reference.

    Attributes:
        low, high: least and largest coordinates, shape (p, leaves).
        missed: what a label costs in leaves which do not hold it, of each label column (k, leaves).
    """

    low: Scores
    high: Scores
    missed: tuple[Scores, ...]

    @classmethod
    def of(
        cls,
        numbers: Iterable[Scores],
        labels: npt.NDArray[Any],
        unlike: Floats,
        leaves: Leaves,
        dtype: np.dtype[Any],
    ) -> Boxes:
        """Boxes of rows that stand leaf by leaf.

        Args:
            numbers: p columns of shape (m,). labels: not negative, shape (q, m). unlike: what an unlike label
                adds to a score, shape (q,). dtype: of the scores.
        """
        starts = leaves.starts[:-1]
        ends = [[end.reduceat(x, starts) for end in (np.minimum, np.maximum)] for x in numbers]
        low, high = np.array(ends, dtype).reshape(-1, 2, len(leaves)).transpose(1, 0, 2)
        return cls(
            low,
            high,
            tuple(
                np.where(_absent(column, leaves), dtype.type(cost), dtype.type(0))
                for column, cost in zip(labels, unlike, strict=True)
            ),
        )

    def turned(self, factor: float) -> Boxes:
        """The boxes of coordinates of which these are so many times as large, a negative number of times."""
        return Boxes(
            self.high / self.high.dtype.type(factor), self.low / self.low.dtype.type(factor), self.missed
        )

    def bounds(
        self, numbers: Iterable[Scores], labels: npt.NDArray[Any], added: Callable[[int, Scores], Scores]
    ) -> Scores:
        """The least possible score of each query in each leaf, shape (n, leaves).

        Args:
            numbers: p columns of shape (n,). labels: shape (q, n).
            added: what a distance in a column, by its position, adds to a score; may change the distances.
        """
        dtype = self.low.dtype
        total = np.zeros((labels.shape[1], self.low.shape[1]), dtype)
        apart = np.empty_like(total)
        for j, (x, low, high) in enumerate(zip(numbers, self.low, self.high, strict=True)):
            np.clip(x[:, None], low, high, out=apart)
            np.subtract(x[:, None], apart, out=apart)
            total += added(j, apart)
        for codes, missed in zip(labels, self.missed, strict=True):
            total += missed[_remainder(codes, len(missed))]
        return total


def _absent(labels: npt.NDArray[Any], leaves: Leaves) -> Bools:
    """Which labels each leaf does not hold; shape (most + 2, leaves), or fewer rows, by the remainder."""
    k = min(int(labels.max(initial=0)) + 2, _LABELS)
    lacks = np.ones((k, len(leaves)), dtype=np.bool_)
    lacks[_remainder(labels, k), np.repeat(np.arange(len(leaves)), leaves.sizes)] = False
    return lacks


def _remainder(labels: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """``labels mod k``, also where k does not fit into their type."""
    return labels if k > np.iinfo(labels.dtype).max else labels % k
