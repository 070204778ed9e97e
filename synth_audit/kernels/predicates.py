"""Predicates on mixed tables, and how many rows each of them matches.

Every condition is a range of small integers: the distinct values of a column, over all tables together, are
numbered in order from 1, and 0 stands for missing. ``x >= v``, ``x <= v``, ``x == v``, "x is missing" and
"x lies in this bin" are then the same comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes32, Counts32, Integers, Positions
from synth_audit.core.kind import Domain

ABSENT = 0
"""Code of a missing value."""

_BITS = 2**22
"""Outcomes of conditions held at a time, a byte each."""

_FIRST = 64
"""Rows looked at for each predicate before it is asked whether they are enough; then eight times as many."""

_PAIRS = 2**20
"""Pairs of a predicate and a row looked at at a time."""


@dataclass(frozen=True, eq=False)
class ColumnCodebook:
    """What the codes of each column stand for.

    Attributes:
        names: of the columns, in the order in which predicates number them.
        numeric: whether each holds numbers.
        domains: what may occur in each.
        values: the distinct values of each column over all tables: numbers ascending, or labels in any
            order. The code of ``values[j][i]`` is i + 1.
    """

    names: tuple[str, ...]
    numeric: tuple[bool, ...]
    domains: tuple[Domain, ...]
    values: tuple[npt.NDArray[np.generic], ...]

    def __len__(self) -> int:
        return len(self.values)

    def last(self, j: int) -> int:
        """The largest code of column j; 0 when all its values are missing."""
        return len(self.values[j])

    @property
    def lasts(self) -> list[int]:
        """The largest code of every column."""
        return [self.last(j) for j in range(len(self))]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """A table prepared for conjunctions of ranges: for each column also its rows in the order of their codes.

    Attributes:
        codes: shape (d, n).
        order: row positions by ascending code, shape (d, n).
        starts: for each column, how many rows have a code below 0, 1, … last + 1, shape (last + 2,); a column
            may have as many codes as there are rows.
    """

    codes: Codes32
    order: Codes32
    starts: tuple[Counts32, ...]

    @classmethod
    def of(cls, codes: Codes32, lasts: Sequence[int]) -> CodedRows:
        """Sort each column once."""
        order = np.empty_like(codes)
        for j, (column, last) in enumerate(zip(codes, lasts, strict=True)):
            # Two bytes are sorted digit by digit, several times as fast and into the same order.
            short = column.astype(np.uint16) if last < 2**16 else column
            order[j] = np.argsort(short, kind="stable")
        return cls(codes, order, tuple(map(_starts, codes, lasts)))

    def __len__(self) -> int:
        return int(self.codes.shape[1])


@dataclass(frozen=True, eq=False)
class Predicates:
    """Conjunctions of k conditions ``low <= code <= high``, shape (p, k) each.

    A conjunction of fewer conditions repeats one of its own. One with an empty range matches nothing.
    """

    columns: Codes32
    low: Codes32
    high: Codes32

    @classmethod
    def none(cls, k: int) -> Predicates:
        """No predicate of k conditions."""
        return cls(*np.empty((3, 0, k), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def widths(self) -> Integers:
        """How many columns each one asks about, shape (p,)."""
        ordered = np.sort(self.columns, axis=1)
        return np.asarray(1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1), dtype=np.int64)

    def take(self, which: Positions | Bools) -> Predicates:
        """The predicates at these positions, or where the mask is true."""
        return Predicates(self.columns[which], self.low[which], self.high[which])

    def joined(self, other: Predicates) -> Predicates:
        """These, then the others."""
        return Predicates(
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )

    def ordered(self) -> Predicates:
        """The same with the conditions of each sorted, so that equal predicates look alike."""
        place = np.lexsort((self.high, self.low, self.columns), axis=1)
        return Predicates(
            *(np.take_along_axis(x, place, axis=1) for x in (self.columns, self.low, self.high))
        )

    def keys(self) -> list[bytes]:
        """One key each, equal exactly for equal predicates; call on :meth:`ordered` ones."""
        joint = np.ascontiguousarray(np.hstack([self.columns, self.low, self.high]))
        rows: list[bytes] = joint.view(f"V{joint.itemsize * joint.shape[1]}").ravel().tolist()
        return rows


@dataclass(frozen=True, eq=False)
class Matches:
    """What predicates match in one table, shape (p,) each.

    Attributes:
        counts: rows matched; where counting stopped early, at least the limit.
        rows: position of one matching row, -1 where there is none.
    """

    counts: Integers
    rows: Positions

    @property
    def single(self) -> Bools:
        """True where exactly one row is matched."""
        return np.equal(self.counts, 1)


def match(rows: CodedRows, predicates: Predicates, limit: int = 2) -> Matches:
    """Count the rows that each predicate matches, up to ``limit``.

    Only the rows that meet the most selective condition are looked at, a slice of the sorted column: of all
    predicates at once its first rows, then more of it for those that have not matched enough.

    Args:
        limit: counting may stop there; exact below it.
    """
    reach = _reach(rows, predicates)
    by_reach = np.argsort(reach, axis=1, kind="stable")
    columns, low, high = (
        np.take_along_axis(x, by_reach, axis=1) for x in (predicates.columns, predicates.low, predicates.high)
    )
    begin = _start_of(rows, columns[:, 0], low[:, 0])
    end = begin + reach.min(axis=1, initial=len(rows))
    counts, found = np.zeros(len(reach), dtype=np.int64), np.full(len(reach), -1, dtype=np.intp)
    if reach.shape[1] == 1:  # the slice itself is the answer
        some = np.flatnonzero(end > begin)
        counts, found[some] = end - begin, rows.order[columns[some, 0], begin[some]]
        return Matches(counts, found)
    alive, most = np.flatnonzero(end > begin), _FIRST
    while len(alive):
        for some in np.array_split(alive, -(-len(alive) * min(most, len(rows)) // _PAIRS)):
            stop = np.minimum(end[some], begin[some] + most)
            which, hits = _hits(rows, (columns[some], low[some], high[some]), begin[some], stop)
            counts[some] += np.bincount(which, minlength=len(some))
            first = np.flatnonzero(np.diff(which, prepend=-1))
            unfound = first[found[some[which[first]]] < 0]
            found[some[which[unfound]]] = hits[unfound]
            begin[some] = stop
        alive, most = alive[(counts[alive] < limit) & (begin[alive] < end[alive])], most * 8
    return Matches(counts, found)


def fresh(predicates: Predicates, seen: set[bytes]) -> Predicates:
    """Those not seen before, each once, in their order; they are added to ``seen``."""
    alike = predicates.ordered()
    keep = np.zeros(len(alike), dtype=bool)
    for i, key in enumerate(alike.keys()):
        if key not in seen:
            seen.add(key)
            keep[i] = True
    return alike.take(keep)


def crowded(rows: CodedRows, some: Positions, predicates: Predicates) -> Bools:
    """True where at least two of some rows are matched, shape (p,): a cheap sieve before :func:`match`.

    Each distinct condition becomes one bit per row, and a conjunction is the "and" of its conditions' bits.
    """
    sample = rows.codes[:, some]
    size = max(len(starts) for starts in rows.starts) + 1
    keys = (predicates.columns.astype(np.int64) * size + predicates.low + 1) * size + predicates.high + 1
    _, first, condition = np.unique(keys, return_index=True, return_inverse=True)
    columns, low, high = (x.ravel()[first] for x in (predicates.columns, predicates.low, predicates.high))
    bits = np.zeros((len(first), -(-len(some) // 64) * 8), dtype=np.uint8)
    for j in np.unique(columns):
        of_column = np.flatnonzero(columns == j)
        for here in np.array_split(of_column, -(-len(of_column) * len(some) // _BITS)):
            inside = (sample[j] >= low[here, None]) & (sample[j] <= high[here, None])
            bits[here, : -(-len(some) // 8)] = np.packbits(inside, axis=1)
    condition = condition.reshape(keys.shape)
    words = bits.view(np.uint64)
    together = words[condition[:, 0]]
    for i in range(1, keys.shape[1]):
        together &= words[condition[:, i]]
    return np.asarray(np.bitwise_count(together).sum(axis=1) > 1, dtype=np.bool_)


def _hits(
    rows: CodedRows, conditions: tuple[Codes32, Codes32, Codes32], begin: Integers, end: Integers
) -> tuple[Positions, Codes32]:
    """Which predicate is met by which row, of those that stand at ``begin`` … ``end`` − 1 in the order of its
    first column and so meet its first condition; ascending by predicate, then in that order."""
    columns, low, high = conditions
    length = end - begin
    which = np.repeat(np.arange(len(length)), length)
    place = np.arange(len(which)) + np.repeat(begin - (np.cumsum(length) - length), length)
    hits = rows.order[columns[which, 0], place]
    for i in range(1, columns.shape[1]):
        codes = rows.codes[columns[which, i], hits]
        inside = (codes >= low[which, i]) & (codes <= high[which, i])
        which, hits = which[inside], hits[inside]
    return which, hits


def _starts(codes: Codes32, last: int) -> Counts32:
    """How many of these codes are below 0, 1, … last + 1, shape (last + 2,)."""
    starts = np.zeros(last + 2, dtype=np.int32)
    np.cumsum(np.bincount(codes, minlength=last + 1), dtype=np.int32, out=starts[1:])
    return starts


def _start_of(rows: CodedRows, columns: Codes32, low: Codes32) -> Integers:
    """How many rows of a column have a code below ``low``, shape (p,)."""
    start = np.zeros(len(columns), dtype=np.int64)
    for j in np.unique(columns):
        here = columns == j
        start[here] = rows.starts[j][low[here]]
    return start


def _reach(rows: CodedRows, predicates: Predicates) -> Integers:
    """How many rows meet each condition alone, shape (p, k)."""
    reach = np.zeros(predicates.columns.shape, dtype=np.int64)
    for j in np.unique(predicates.columns):
        here = predicates.columns == j
        starts = rows.starts[j]
        reach[here] = starts[predicates.high[here] + 1] - starts[predicates.low[here]]
    return np.maximum(reach, 0)
