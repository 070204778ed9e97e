"""Rows of a table in leaves that lie close together, so that a search can rule out whole leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Integers, Positions

LEAF, _LARGEST = 3.0, 600
"""Most rows of a leaf over the root of all, where making leaves, visiting them and scoring their rows take
least together: of 40,000 rows two thirds to four fifths of the time that leaves of 200 take. But no more than
600: in larger ones of large tables too many rows are near too many queries."""

_LOOK = 256
"""Rows of a node by which its split is chosen."""

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
    def of(cls, numbers: Floats, labels: Integers, apart: Apart) -> Leaves:
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
        values, common = labels[rows, column - p], _commonest(labels[few, column - p])
        left = values == common[0] if len(common) == 1 else np.isin(values, common)
    return None if left.all() or not left.any() else left


def _commonest(labels: Integers) -> Integers:
    """The commonest labels, as many as come nearest to half of the rows, but not all."""
    used, counts = np.unique(labels, return_counts=True)
    falling = np.argsort(-counts, kind="stable")
    share = np.cumsum(counts[falling])[:-1] / len(labels)
    return used[falling[: 1 + int(np.abs(share - 0.5).argmin())]]
