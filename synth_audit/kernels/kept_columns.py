"""Which columns rows keep of people: sets in which people and rows are near together oftener than two people.

Of all pairs of a person and a row those are looked at that are near in four numbers or more, which pairs
that keep so many are and few others. Of all triples of numbers those are followed in which most of them are
beyond what as many pairs of two people would be, and columns added one by one that go with the pairs at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Floats, Integers, Positions
from synth_audit.kernels.agreement_columns import AgreementColumn, Packed, summed

MOST_COLUMNS = 64
"""Columns of which any may be kept: one bit of a number each."""

_NEAR, _LEAST = 4.0, 0.5
"""Bits by which two numbers are near; equal ones, and labels, need no more than these."""

FEWEST_NUMBERS = 4
"""Numbers in which a pair must be near to be looked at."""

_MOST_BITS = 6.0
"""Bits that a value tells at most: noise leaves no more."""

_SEEDS, _BEAM, _BRANCHES, _MOST_KEPT = 200, 100, 3, 8
"""Triples, and sets of each size, that are followed, by so many columns each, and columns of a set."""

_AT_ONCE = 2**16
"""Pairs counted at once."""

_CLEARLY = 2.0
"""Standard errors by which a column goes with a set."""

_ALIKE = 0.6
"""Share of two sets' columns in both from which they are one."""


class _KeptSet(NamedTuple):
    """Pairs near in some columns, of a person and a row and of two people.

    Attributes:
        score: standard errors. columns: in order. pairs, among: places of the pairs.
    """

    score: float
    columns: tuple[int, ...]
    pairs: Positions
    among: Positions


def kept_sets(columns: Sequence[AgreementColumn], some: Positions, most: int) -> list[tuple[int, ...]]:
    """Sets of four columns and more that rows seem to keep of people together, the surest first.

    Args:
        columns: as many as :data:`MOST_COLUMNS` at most. some: people who are looked at.
        most: sets.
    """
    asked = [replace(c, people=c.people[some]) for c in columns]
    numbers = [k for k, c in enumerate(columns) if c.bits.ndim == 2]
    release = _NearPairs.of(asked, numbers)
    people = _NearPairs.of([replace(c, release=c.people) for c in asked], numbers, others=True)
    return _distinct(_grown(release, people, numbers), most)


def kept_bits(columns: Sequence[AgreementColumn], sets: Sequence[tuple[int, ...]]) -> Floats:
    """Most bits that a row tells of each person by being near in a set of columns.

    Returns:
        shape (n, sets); 0 where there is no such row.
    """
    told = np.zeros((len(columns[0].people), len(sets)))
    keys = [_key(x) for x in sets]
    for person, masks in enumerate(summed(columns, _tables(columns))):
        for k, (kept, key) in enumerate(zip(sets, keys, strict=True)):
            rows = np.flatnonzero((masks & key) == key)
            if len(rows):
                pairs = np.full(len(rows), person), rows
                bits = [np.minimum(_MOST_BITS, columns[c].of_pairs(*pairs)) for c in kept]
                told[person, k] = np.sum(bits, axis=0).max()
    return told


def _tables(columns: Sequence[AgreementColumn]) -> list[Packed]:
    """One bit for each column in which two cells are near."""
    tables = []
    for k, c in enumerate(columns):
        near = c.bits >= _LEAST
        if c.bits.ndim == 2:
            near &= (c.bits >= _NEAR) | (c.bits >= np.diagonal(c.bits)[:, None])
        tables.append(near.astype(np.uint64) << np.uint64(k))
    return tables


def _key(columns: Sequence[int]) -> np.uint64:
    return np.uint64(sum(1 << c for c in columns))


class _NearPairs(NamedTuple):
    """In which columns pairs are near that are near in several numbers, one bit each.

    Attributes:
        near, person, row: of each such pair. pairs: all that were looked at. d: columns.
    """

    near: Packed
    person: Positions
    row: Positions
    pairs: int
    d: int

    @classmethod
    def of(
        cls, columns: Sequence[AgreementColumn], numbers: Sequence[int], *, others: bool = False
    ) -> _NearPairs:
        """All pairs near in so many numbers.

        Args:
            others: rows are the same people, of whom nobody is beside himself.
        """
        key = _key(numbers)
        near, rows = [], []
        for person, masks in enumerate(summed(columns, _tables(columns))):
            if others:
                masks[person] = 0
            rows.append(np.flatnonzero(np.bitwise_count(masks & key) >= FEWEST_NUMBERS))
            near.append(masks[rows[-1]])
        whose = np.repeat(np.arange(len(rows)), [len(x) for x in rows])
        pairs = len(rows) * (len(columns[0].release) - others)
        return cls(np.concatenate(near), whose, np.concatenate(rows), pairs, len(columns))

    def counts(self, pairs: Positions) -> Integers:
        """How many of the pairs are near in each column."""
        found: Integers = self._bits(pairs).sum(axis=0, dtype=np.int64)
        return found

    def counts_of_two(self, column: int) -> Integers:
        """How many pairs near in a column are near in each two, shape (columns, columns)."""
        total = np.zeros((self.d, self.d))
        near = self.within(np.arange(len(self.near)), [column])
        for part in np.split(near, np.arange(_AT_ONCE, len(near), _AT_ONCE)):
            bits = self._bits(part).astype(np.float32)  # exact up to 2²⁴ pairs
            total += bits.T @ bits
        found: Integers = total.astype(np.int64)
        return found

    def _bits(self, pairs: Positions) -> npt.NDArray[np.uint8]:
        """Zeros and ones, shape (pairs, columns)."""
        bits = np.unpackbits(self.near[pairs].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        return bits[:, : self.d]

    def within(self, pairs: Positions, columns: Sequence[int]) -> Positions:
        """Those near in some columns."""
        key = _key(columns)
        found: Positions = pairs[(self.near[pairs] & key) == key]
        return found

    def different(self, pairs: Positions) -> int:
        """Pairs of which no two share a person or a row, at most: a crowd of one is one."""
        return min(int(np.count_nonzero(np.bincount(of[pairs]))) for of in (self.person, self.row))


def _grown(release: _NearPairs, people: _NearPairs, numbers: Sequence[int]) -> Iterator[_KeptSet]:
    """Triples of numbers and what they grow into."""
    times = release.pairs / max(1, people.pairs)

    def score(found: Integers | int, usual: Integers | int) -> Floats:
        errors: Floats = (found - usual * times) / np.sqrt(usual * times * (1 + times) + 4)
        return errors

    triples: list[tuple[float, tuple[int, int, int]]] = []
    for x in numbers:
        errors = score(release.counts_of_two(x), people.counts_of_two(x))
        above = [k for k in numbers if k > x]
        triples += [(float(errors[y, z]), (x, y, z)) for y, z in combinations(above, 2)]
        triples = sorted(triples, key=lambda f: -f[0])[:_SEEDS]
    first = {f[1][0] for f in triples}
    of = {x: [m.within(np.arange(len(m.near)), [x]) for m in (release, people)] for x in first}
    at_hand = [
        _KeptSet(errors, (x, y, z), release.within(of[x][0], [y, z]), people.within(of[x][1], [y, z]))
        for errors, (x, y, z) in triples
    ]
    for _ in range(4, _MOST_KEPT + 1):
        grown: dict[tuple[int, ...], _KeptSet] = {}
        for f in at_hand:
            errors = score(release.counts(f.pairs), people.counts(f.among))
            errors[list(f.columns)] = 0
            for k in np.argsort(-errors, kind="stable")[:_BRANCHES].tolist():
                columns = tuple(sorted((*f.columns, k)))
                if errors[k] > _CLEARLY and columns not in grown:
                    pairs, among = release.within(f.pairs, [k]), people.within(f.among, [k])
                    errors_of_all = score(release.different(pairs), people.different(among))
                    grown[columns] = _KeptSet(float(errors_of_all), columns, pairs, among)
        at_hand = sorted(grown.values(), key=lambda f: -f.score)[:_BEAM]
        yield from at_hand


def _distinct(found: Iterator[_KeptSet], most: int) -> list[tuple[int, ...]]:
    kept: list[tuple[int, ...]] = []
    for f in sorted(found, key=lambda f: -f.score):
        if all(len({*f.columns} & {*k}) < _ALIKE * len({*f.columns} | {*k}) for k in kept):
            kept.append(f.columns)
            if len(kept) == most:
                break
    return kept
