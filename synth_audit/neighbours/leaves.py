"""Leaves: rows that lie close together, and boxes around them that rule most of them out for a query."""

from collections.abc import Callable, Sequence
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

_CHOOSING, _BLOCK = 2**17, 2**14
"""Rows by which all splits are chosen, ten for each of the leaves of 8,000,000; and rows that follow them
together: those of 20 columns fit a core's cache."""

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

        Rows spread evenly choose all splits, a few of each node its column and value; the others follow them.
        The same rows always fall into the same leaves.

        Args:
            numbers: shape (n, p). labels: shape (n, q).
        """
        rng, n = np.random.default_rng(0), len(numbers)
        most = min(max(1, round(LEAF * n**0.5)), _LARGEST)
        choosing = np.arange(0, n, max(1, -(-n // _CHOOSING)))
        fewest = most * len(choosing) // max(n, 1)
        waiting, found, splits = [(choosing, -1, 0)], list[Positions](), list[_Split]()
        while waiting:
            rows, above, side = waiting.pop()
            split = _split(rows, numbers, labels, apart, rng) if len(rows) > max(1, fewest) else None
            if above >= 0:
                splits[above].sides[side] = len(splits) if split else ~len(found)
            if split is None:
                found.append(rows)
            else:
                left = split.left(rows, numbers, labels)
                waiting += [(rows[~left], len(splits), 1), (rows[left], len(splits), 0)]
                splits.append(split)
        if len(choosing) < n and splits:
            leaf = _leaf_of(numbers, labels, splits)
            order = np.argsort(leaf.astype(np.min_scalar_type(len(found))), kind="stable")
            found = np.split(order, np.cumsum(np.bincount(leaf, minlength=len(found)))[:-1])
        elif len(choosing) < n:
            found = [np.arange(n)]
        parts = [rows[start : start + most] for rows in found for start in range(0, len(rows), most)]
        parts = parts or [np.arange(0)]
        return cls(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))


@dataclass(frozen=True, eq=False)
class _Split:
    """Rows whose number, or code of a label, is at most ``cut`` go left.

    Attributes:
        column: numbers first, then labels.
        sides: the split that follows on the left and on the right, or ``~leaf``.
    """

    column: int
    cut: float
    sides: list[int]

    def left(self, rows: Positions, numbers: Floats, labels: Integers) -> Bools:
        p = numbers.shape[1]
        table, column = (numbers, self.column) if self.column < p else (labels, self.column - p)
        values: Bools = table[rows, column] <= self.cut
        return values


def _split(
    rows: Positions, numbers: Floats, labels: Integers, apart: Apart, rng: np.random.Generator
) -> _Split | None:
    """A split of a node; None where a look at some of its rows finds no two that differ."""
    few = rows if len(rows) <= _LOOK else rows[rng.integers(len(rows), size=_LOOK)]
    apart_by = apart(few, np.roll(few, 1)).mean(axis=0)
    if not len(apart_by) or not apart_by.max() > 0:
        return None
    column, p = int(apart_by.argmax()), numbers.shape[1]
    values = np.sort(numbers[few, column] if column < p else labels[few, column - p])
    # The middle value goes to the side that is then nearer to a half, as far as both have rows.
    middle = values[len(values) // 2]
    below, upto = np.searchsorted(values, middle), np.searchsorted(values, middle, "right")
    nearer = below + upto <= len(values) and upto < len(values)
    cut = middle if nearer or not below else values[below - 1]
    return _Split(column, float(cut), [0, 0])


def _leaf_of(numbers: Floats, labels: Integers, splits: Sequence[_Split]) -> Positions:
    """The leaf that each row falls into, shape (n,), by blocks that a processor's cache holds."""
    column, cut, sides = (np.array([getattr(s, name) for s in splits]) for name in ("column", "cut", "sides"))
    leaf = np.empty(len(numbers), dtype=np.intp)
    for start in range(0, len(numbers), _BLOCK):
        values = np.hstack([x[start : start + _BLOCK] for x in (numbers, labels)])
        at, going = leaf[start : start + _BLOCK], np.arange(len(values))
        at[:] = 0
        while len(going):
            here = at[going]
            at[going] = after = sides[here, (values[going, column[here]] > cut[here]).astype(np.intp)]
            going = going[after >= 0]
    return ~leaf


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
