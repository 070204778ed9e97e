"""Leaves: rows that lie close together, and boxes around them that rule most of them out for a query."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Integers, Positions, Scores

LEAF, _LARGEST = 3.0, 600
"""Most rows of a leaf over the root of all, where making leaves, visiting them and scoring their rows take
least together: of 40,000 rows two thirds to four fifths of the time that leaves of 200 take. But no more than
600: in larger ones of large tables too many rows are near too many queries."""

_LOOK = 256
"""Rows of a node by which its split is chosen."""

_LABELS = 1024
"""Labels of a column told apart; of more, those with the same remainder are taken for one."""

Apart = Callable[[Positions, Positions], Floats]
"""How far pairs of rows are from each other in each column, numbers first; shape (pairs, columns)."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """The rows of a table, leaf by leaf.

    Attributes:
        order: positions of the rows, shape (n,).
        starts: where in ``order`` each leaf begins, then n; shape (leaves + 1,).
    """

    order: Positions
    starts: Positions

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Positions:
        """Rows of each leaf."""
        sizes: Positions = np.diff(self.starts)
        return sizes

    @classmethod
    def of(cls, numbers: Floats, labels: Integers, apart: Apart) -> Self:
        """Halve the rows, again and again, by the column in which they lie furthest apart.

        A look at some of the rows chooses the column and the value, so that it takes little more than reading
        each row once on every level. The same rows always fall into the same leaves.

        Args:
            numbers: shape (n, p). labels: shape (n, q).
        """
        rng = np.random.default_rng(0)
        most = min(max(1, round(LEAF * len(numbers) ** 0.5)), _LARGEST)
        waiting, found = [np.arange(len(numbers))], []
        while waiting:
            rows = waiting.pop()
            left = _left(rows, numbers, labels, apart, rng) if len(rows) > most else None
            if left is None:
                found += [rows[start : start + most] for start in range(0, len(rows), most)]
            else:
                waiting += [rows[~left], rows[left]]
        return cls(np.concatenate(found), np.cumsum([0, *map(len, found)]))


def _left(
    rows: Positions, numbers: Floats, labels: Integers, apart: Apart, rng: np.random.Generator
) -> Bools | None:
    """Which rows of a node go to its left; None where a look at some finds no two that differ."""
    few = rows if len(rows) <= _LOOK else rows[rng.integers(len(rows), size=_LOOK)]
    apart_by = apart(few, np.roll(few, 1)).mean(axis=0)
    if not len(apart_by) or not apart_by.max() > 0:
        return None
    column, p = int(apart_by.argmax()), numbers.shape[1]
    if column < p:
        middle = np.median(numbers[few, column])
        values = numbers[rows, column]
        left = values <= middle
        if left.all():
            left = values < middle
    else:
        used, counts = np.unique(labels[few, column - p], return_counts=True)
        falling = np.argsort(-counts, kind="stable")
        share = np.cumsum(counts[falling])[:-1] / len(few)  # as near to a half as the commonest labels come
        common = used[falling[: 1 + int(np.abs(share - 0.5).argmin())]]
        left = np.isin(labels[rows, column - p], common)
    return None if left.all() or not left.any() else left


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of the leaves of a reference, as its scores see them.

    Attributes:
        low, high: least and largest numbers, shape (p, leaves).
        missed: what a label costs in leaves which do not hold it, of each label column (labels, leaves).
    """

    low: Scores
    high: Scores
    missed: tuple[Scores, ...]

    @classmethod
    def of(cls, leaves: Leaves, numbers: Scores, labels: npt.NDArray[Any], unlike: tuple[float, ...]) -> Self:
        """Boxes of rows that stand leaf by leaf.

        Args:
            numbers: shape (p, m). labels: not negative, shape (q, m). unlike: what an unlike label adds to a
                score, length q.
        """
        of_row, missed = np.repeat(np.arange(len(leaves)), leaves.sizes), []
        for column, cost in zip(labels, unlike, strict=True):
            k = min(int(column.max(initial=0)) + 2, _LABELS)
            lacking = np.full((k, len(leaves)), cost, numbers.dtype)
            lacking[_remainder(column, k), of_row] = 0
            missed.append(lacking)
        low, high = (end.reduceat(numbers, leaves.starts[:-1], axis=1) for end in (np.minimum, np.maximum))
        return cls(low, high, tuple(missed))

    def bounds(
        self, numbers: Scores, labels: npt.NDArray[Any], added: Callable[[int, Scores], Scores]
    ) -> Scores:
        """What no row of a leaf scores less than, shape (leaves, n).

        Args:
            numbers: of n queries, shape (p, n). labels: shape (q, n).
            added: what a distance in a column, by its position, adds to a score.
        """
        total = np.zeros((self.low.shape[1], labels.shape[1]), self.low.dtype)
        for j, (x, low, high) in enumerate(zip(numbers, self.low, self.high, strict=True)):
            total += added(j, x - np.clip(x, low[:, None], high[:, None]))
        for codes, missed in zip(labels, self.missed, strict=True):
            total += missed[_remainder(codes, len(missed))].T
        return total


def _remainder(labels: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """``labels mod k``, also where k does not fit into their type."""
    return labels if k > np.iinfo(labels.dtype).max else labels % k
