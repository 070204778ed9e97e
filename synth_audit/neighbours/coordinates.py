"""Where rows lie: coordinates, labels compared as bytes, and boxes around leaves of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Counts8, Floats, Integers, Positions, Scores
from synth_audit.neighbours import memory
from synth_audit.neighbours.search import Leaves

_BYTE = 255
"""As many unlike labels as a byte can count."""

Indicators = npt.NDArray[np.int32]

NOWHERE = -1
"""Place of what has no coordinate: one more than there are, and cut off."""

MISSING = -1
"""Code of a missing value."""

MOST_ONE_HOT = 64
"""A column with more categories keeps its codes, so that memory does not grow with the categories."""

FAR = 10.0
"""Standard deviations beyond which only the logarithm grows."""

_LABELS = 1024
"""Labels of a column told apart; of more, those with the same remainder are taken for one."""


def told_apart(labels: Integers, others: Integers) -> Bools:
    """The columns in which not all rows of two tables agree, shape (q,); what is the same adds nothing."""
    [first] = labels[:1] if len(labels) else others[:1]
    told: Bools = (labels != first).any(axis=0) | (others != first).any(axis=0)
    return told


def smallest_type(codes: npt.NDArray[Any]) -> np.dtype[Any]:
    """The smallest type of whole numbers that holds these codes, of which missing ones are negative."""
    most, least = int(codes.max(initial=0)), int(codes.min(initial=0))
    return np.result_type(np.min_scalar_type(-1 - most), np.min_scalar_type(min(least, -1)))


def side_by_side(columns: Sequence[npt.NDArray[Any]], n: int) -> npt.NDArray[Any]:
    """Columns of n codes beside one another, shape (n, q), in the smallest of their types that holds all."""
    found = np.empty((n, len(columns)), np.result_type(np.int8, *(c.dtype for c in columns)))
    for j, column in enumerate(columns):
        found[:, j] = column
    return found


def small_codes(labels: Integers, others: Integers) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Codes of two tables, shape (n, q) and (m, q), column by column in the smallest type that holds them."""
    most = max(int(labels.max(initial=0)), int(others.max(initial=0))) + 1
    small = np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int64
    return _shrunk(labels, small), _shrunk(others, small)


def _shrunk(labels: Integers, small: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Column by column, so that no second table of large numbers is made on the way."""
    codes = np.empty(labels.shape[::-1], small)
    for place, column in zip(codes, labels.T, strict=True):
        np.add(column, 1, out=place, dtype=small, casting="unsafe")
    return codes


def add_unlike(
    out: npt.NDArray[Any], steps: Sequence[float], labels: npt.NDArray[Any], others: npt.NDArray[Any]
) -> None:
    """Add to each pair of rows what their unlike labels weigh; columns that weigh the same are counted first.

    Args:
        out: shape (n, m), of a type which holds every sum.
        steps: weight of each column, length q. labels, others: of :func:`small_codes`, shape (q, n) and
            (q, m); several times as fast where each column of the others lies in one piece.
    """
    alike = [(w, [j for j, step in enumerate(steps) if step == w]) for w in dict.fromkeys(steps)]
    at_once = min(len(out), max(1, memory.CACHE // max(1, out.shape[1])))
    # Small, and used again and again: new memory for all pairs takes as long as the counting.
    buffers = [np.empty((at_once, out.shape[1]), t) for t in (np.bool_, np.uint8, out.dtype)]
    for first in range(0, len(out), max(1, at_once)):
        part, mine = out[first : first + at_once], labels[:, first : first + at_once]
        differs, count, added = (x[: len(part)] for x in buffers)
        for weight, columns in alike:
            for start in range(0, len(columns), _BYTE):
                some = columns[start : start + _BYTE]
                _count_unlike(mine, others, some, differs, count)
                of_all = differs.view(np.uint8) if len(some) == 1 else count
                np.multiply(of_all, out.dtype.type(weight), out=added, dtype=out.dtype)
                part += added


def _count_unlike(
    labels: npt.NDArray[Any], others: npt.NDArray[Any], columns: Sequence[int], differs: Bools, count: Counts8
) -> None:
    """In how many of some columns each pair of rows differs, shape (n, m); of one column, in ``differs``."""
    unlike = differs.view(np.uint8)
    for place, j in enumerate(columns):
        np.not_equal(labels[j][:, None], others[j], out=differs)
        if place:
            count += unlike
        elif len(columns) > 1:
            count[:] = unlike


def drawn_in(values: Floats, far: float = FAR) -> Floats:
    """Numbers, those beyond ``far`` drawn in: ``sign(z) (far + log(|z| / far))``."""
    size = np.clip(np.abs(values), far, np.finfo(np.float64).max)
    return np.where(size > far, np.sign(values) * (far + np.log(size / far)), values)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where rows lie in a space that several tables share.

    ``|a − b|² = Σ_j (a_j − b_j)² + Σ_l u_l [code_l(a) ≠ code_l(b)]``

    Attributes:
        dense: real coordinates, shape (n, width).
        labels: codes of labels, −1 or more, equal for equal ones, in the smallest type that holds them,
            shape (n, m).
        unlike: u, what two different labels add to the squared distance, shape (m,).
    """

    dense: Floats
    labels: npt.NDArray[Any]
    unlike: Floats

    @classmethod
    def of(cls, dense: Floats, labels: npt.NDArray[Any] | None = None, unlike: Floats | None = None) -> Self:
        """Rows of one table.

        Args:
            dense: shape (n, width). labels: shape (n, m); none if left out.
            unlike: 2 for each column of labels if left out, which is how far two one-hot rows are apart.
        """
        codes = np.empty((len(dense), 0), np.int8) if labels is None else labels
        return cls(
            np.ascontiguousarray(dense, np.float64),
            np.ascontiguousarray(codes, smallest_type(codes)),
            np.full(codes.shape[1], 2.0) if unlike is None else np.asarray(unlike, np.float64),
        )

    def __len__(self) -> int:
        return len(self.dense)

    @cached_property
    def leaves(self) -> Leaves:
        """The rows in leaves that lie close together."""
        return Leaves.of(self.dense, self.labels, self._apart)

    def _apart(self, one: Positions, other: Positions) -> Floats:
        with np.errstate(over="ignore"):  # infinitely far is far
            numbers = (self.dense[one] - self.dense[other]) ** 2
        return np.hstack([numbers, (self.labels[one] != self.labels[other]) * self.unlike])

    def take(self, rows: Positions) -> Coordinates:
        """The rows at these positions."""
        return Coordinates(self.dense[rows], self.labels[rows], self.unlike)


@dataclass(frozen=True, eq=False)
class CoordinateRows:
    """A table read into the coordinates of a standardised coordinates, not yet spread out.

    Attributes:
        numbers: the first coordinates, shape (n, p).
        places: for each column the place of its one indicator, shape (n, q).
        weights: value of each indicator.
    """

    numbers: Floats
    places: Indicators
    weights: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def dense(self, rows: slice | Positions) -> Floats:
        """Coordinates of some rows, shape (m, width)."""
        numbers, places = self.numbers[rows], self.places[rows]
        found = np.zeros((len(numbers), len(self.weights)))
        found[np.arange(len(numbers))[:, None], places] = self.weights[places]
        found[:, : numbers.shape[1]] = numbers
        return found[:, :NOWHERE]


def one_hot(joint: Codes) -> Floats:
    """Indicator coordinates, missing as a category of its own; joint, so that unseen labels differ."""
    used, position = np.unique(joint, return_inverse=True)
    block = np.zeros((len(joint), len(used)))
    block[np.arange(len(joint)), position] = 1.0
    return block


def labels_that_fit(counts: Sequence[int], room: int, most: int) -> int:
    """The largest number of labels, at most ``most``, that every column can keep in ``room``; at least 1.

    Args:
        counts: labels of each column, of which it keeps all if it has no more.
    """
    kept = most
    while kept > 1 and sum(min(n, kept) for n in counts) > room:
        kept -= 1
    return max(kept, 1)


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
