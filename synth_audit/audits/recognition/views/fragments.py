"""Fragments: does a row hold a rare combination of a few of the person's values?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Positions
from synth_audit.audits.recognition.people import SAMPLE, PooledColumn, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo

_WIDTHS = (0.0, 0.02, 0.06)
"""Shares of the rows that are near a number: equal, moved a little, or swapped with a neighbour."""

_LARGEST = 8
"""Columns of a set."""

_SETS = 24
"""Sets of each size that are followed, and grown ones, and random ones, that give scores for each width."""

_COUNTED, _MOST_COUNTED = (2, 3, 4), 400
"""Sizes of the sets in which matches by rows alone are counted, and sets of a size, drawn at random."""

_TELLING = 8.0
"""Bits that the columns of a random set tell together: fewer single nobody out among some hundred people."""

_PAIRS = 2**21
"""Pairs of records and rows, or records, that are compared at once in one column: 2 MiB, and less packed."""

Packed = npt.NDArray[np.uint64]
"""Rows that are near a record, 64 in a word."""


@dataclass(frozen=True, kw_only=True)
class Fragments:
    """Combinations of a person's values in sets of two to eight columns.

    A row matches a person in a set of columns if it is near in each: equal labels, or one of the w nearest
    rows by number. Numbers are equal as far as the release has digits. The score is
    ``log2(people / (1 + other people who match))`` where some row matches, and nothing is said where none
    does: rare combinations that a row repeats tell most.

    Sets are grown without a word on sides. ``k_i`` rows and other people match person i. If the release
    were more of the same people, all of them would be rows with probability ``p^k_i``, and all of them people
    with ``(1 - p)^k_i``. Sets with most people of the first kind beyond that, in standard errors, are kept.
    Random sets are added, those of telling columns more often. Further scores count in how many sets of
    two, three and four columns a row matches a person and no other person does: what several rows hold of
    one person adds up.

    Source: ours; beam search over itemsets as in Agrawal & Srikant 1994.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Rare combinations of a few values",
        finds="a row that shares a rare combination of values",
        random=True,
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score grown and random sets of columns for each width."""
        columns = [c for c in pool.columns if _bits(c) > 0]
        if len(columns) < 2:
            return
        told = np.array([_bits(c) for c in columns])
        some = np.sort(rng.permutation(pool.records)[:SAMPLE])
        rows = np.sort(rng.permutation(pool.rows)[: 4 * SAMPLE])
        sampled = [_PlacedColumn.of(c, rows) for c in columns]
        placed = [_PlacedColumn.of(c, np.arange(pool.rows)) for c in columns]
        at_once = max(1, _PAIRS // max(pool.rows, pool.records))
        share = len(rows) / (len(rows) + pool.records - 1)
        for width in _WIDTHS:
            sets = _grown([c.near(pool.person, some, width) for c in sampled], share)
            sets = list(dict.fromkeys([*sets, *_random(told, rng)]))
            counted = [(k, _some_sets(len(columns), k, rng)) for k in _COUNTED if width == _WIDTHS[0]]
            matches = np.empty((2, len(sets), pool.records))
            alone = np.zeros((len(counted), pool.records))
            for start in range(0, pool.records, at_once):
                block = np.arange(start, min(start + at_once, pool.records))
                near = [c.near(pool.person, block, width) for c in placed]
                for i, s in enumerate(sets):
                    matches[:, i, block] = [_counts(_all([near[j][side] for j in s])) for side in (0, 1)]
                for of_size, (_, some_sets) in zip(alone, counted, strict=True):
                    for s in some_sets:
                        by_rows, by_people = (_all([near[j][side] for j in s]).any(axis=1) for side in (0, 1))
                        of_size[block] += by_rows & ~by_people
            for s, release, people in zip(sets, *matches, strict=True):
                rare = np.log2(pool.records / (1 + people))
                values = np.where(release > 0, rare + 1e-3 * np.minimum(release, 100), -np.inf)
                names = tuple(columns[j].name for j in s)
                yield Score(f"{', '.join(names)} within {width:g}", values, names)
            for of_size, (size, _) in zip(alone, counted, strict=True):
                yield Score(f"any {size} columns", of_size)


def _some_sets(d: int, size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All sets of so many of d columns, or some at random."""
    if comb(d, size) <= _MOST_COUNTED:
        return list(combinations(range(d), size))
    drawn = (rng.choice(d, size, replace=False).tolist() for _ in range(_MOST_COUNTED))
    return list({tuple(sorted(s)) for s in drawn})


def _bits(column: PooledColumn) -> float:
    """Entropy of the cells of a column among people, in bits."""
    share = np.unique(np.nan_to_num(column.people, nan=-np.inf), return_counts=True)[1] / len(column.people)
    return float(-(share * np.log2(share)).sum())


@dataclass(frozen=True, eq=False)
class _PlacedValues:
    """The values of one column on one side.

    Attributes:
        known: those that are not missing, in order. place: of each value among them, -1 where missing.
    """

    known: Floats = field(repr=False)
    place: npt.NDArray[np.signedinteger[Any]] = field(repr=False)
    numeric: bool

    @classmethod
    def of(cls, values: Floats, numeric: bool) -> _PlacedValues:
        able = np.isfinite(values) & ((values >= 0) | numeric)
        known = np.sort(values[able])
        place = np.where(able, np.searchsorted(known, values, "left"), -1)
        return cls(known, place.astype(np.int16 if len(known) < 2**15 else np.int32), numeric)

    def near(self, mine: Floats, width: float, grain: float) -> Packed:
        """Which are near each of mine: equal labels, or numbers of that share next to it by rank.

        Args:
            grain: difference of two numbers of the release, half of which may be lost by rounding.
        """
        known = self.known
        lost = np.maximum(grain / 2, np.abs(mine) * np.finfo(np.float32).eps) if self.numeric else 0.0
        first, last = (
            np.searchsorted(known, mine - lost, "left"),
            np.searchsorted(known, mine + lost, "right"),
        )
        if self.numeric and width and len(known):
            reach = max(1, round(width * len(known) / 2))
            first = np.searchsorted(known, known[np.maximum(first - reach, 0)], "left")
            last = np.searchsorted(known, known[np.minimum(last + reach, len(known)) - 1], "right")
        last[np.isnan(mine)] = 0
        first, last = (ends.astype(self.place.dtype)[:, None] for ends in (first, last))
        packed = np.packbits((self.place >= first) & (self.place < last), axis=1, bitorder="little")
        return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)


@dataclass(frozen=True, eq=False)
class _PlacedColumn:
    """One column of the people's records and of some rows of the release."""

    column: PooledColumn
    release: _PlacedValues
    people: _PlacedValues
    grain: float

    @classmethod
    def of(cls, column: PooledColumn, rows: Positions) -> _PlacedColumn:
        release, people = (_PlacedValues.of(x, column.numeric) for x in (column.release[rows], column.people))
        return cls(column, release, people, column.grain)

    def near(self, person: Positions, asked: Positions, width: float) -> tuple[Packed, Packed]:
        """Which rows of the release, and which other people's records, are near each record asked about."""
        of_rows, of_people = (
            side.near(self.column.people[asked], width, self.grain) for side in (self.release, self.people)
        )
        first, last = (np.searchsorted(person, person[asked], side) for side in ("left", "right"))
        for k in range(int((last - first).max(initial=0))):  # nobody matches a record of their own
            i = np.flatnonzero(first + k < last)
            own = first[i] + k
            of_people[i, own // 64] &= ~(np.uint64(1) << (own % 64).astype(np.uint64))
        return of_rows, of_people


def _all(near: Sequence[Packed]) -> Packed:
    """Which match in all columns."""
    both = near[0]
    for more in near[1:]:
        both = both & more
    return both


def _grown(near: Sequence[tuple[Packed, Packed]], share: float) -> list[tuple[int, ...]]:
    """Sets in which most people are matched by rows alone, the surest first.

    Args:
        share: of the rows among all rows and other people that are compared.
    """
    d = len(near)
    beam: list[tuple[float, tuple[int, ...], Packed, Packed]] = [
        (0.0, (j,), release, people) for j, (release, people) in enumerate(near)
    ]
    found: list[tuple[float, tuple[int, ...]]] = []
    for _ in range(min(_LARGEST, d) - 1):
        seen: set[tuple[int, ...]] = set()
        larger: list[tuple[float, tuple[int, ...], Packed, Packed]] = []
        for _, columns, release, people in beam:
            for j in range(d):
                key = tuple(sorted({*columns, j}))
                if len(key) > len(columns) and key not in seen:
                    seen.add(key)
                    both = release & near[j][0], people & near[j][1]
                    larger.append((_surprise(_counts(both[0]), _counts(both[1]), share), key, *both))
        beam = sorted(larger, key=lambda x: -x[0])[:_SETS]
        found += [(z, key) for z, key, _, _ in beam]
    return [key for _, key in sorted(found, key=lambda x: -x[0])[:_SETS]]


def _counts(near: Packed) -> Positions:
    found: Positions = np.bitwise_count(near).sum(axis=1, dtype=np.intp)
    return found


def _surprise(release: Positions, people: Positions, share: float) -> float:
    """Standard errors by which more records are matched by rows alone than by chance."""
    total = release + people
    usual = np.where(total > 0, share**total, 0.0)
    alone = (release > 0) & (people == 0)
    return float((alone - usual).sum() / np.sqrt(1 + (usual * (1 - usual)).sum()))


def _random(told: Floats, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Random sets of telling columns."""
    weight = told / told.sum()
    found: list[tuple[int, ...]] = []
    for _ in range(20 * _SETS):
        size = int(rng.integers(2, min(_LARGEST, len(told)) + 1)) if len(told) > 2 else 2
        s = tuple(sorted(rng.choice(len(told), size, replace=False, p=weight).tolist()))
        if told[list(s)].sum() > _TELLING and s not in found:
            found.append(s)
        if len(found) == _SETS:
            break
    return found
