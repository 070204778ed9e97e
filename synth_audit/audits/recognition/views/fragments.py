"""Fragments: does a row hold a rare combination of a few of the person's values?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Counts32, Floats, Positions
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

_CELLS = 2**22
"""Pairs of records and rows that are compared at once in one column: 512 KiB, one bit each."""

_Set = tuple[int, ...]
"""Columns of a set, as positions, ascending."""

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
        share = len(rows) / (len(rows) + pool.records - 1)
        for width in _WIDTHS:
            sampled = [
                (
                    _NearCells.of(c, c.release[rows], width).packed(some),
                    _NearCells.of(c, c.people, width).packed(some, person=pool.person),
                )
                for c in columns
            ]
            sets = list(dict.fromkeys([*_grown(sampled, share), *_random(told, rng)]))
            counted = [(k, _some_sets(len(columns), k, rng)) for k in _COUNTED if width == _WIDTHS[0]]
            every = dict.fromkeys([*sets, *(s for _, some_sets in counted for s in some_sets)])
            matches = _matches(columns, list(every), width, pool)
            for s in sets:
                release, people = matches[s]
                rare = np.log2(pool.records / (1 + people))
                values = np.where(release > 0, rare + 1e-3 * np.minimum(release, 100), -np.inf)
                names = tuple(columns[j].name for j in s)
                yield Score(f"{', '.join(names)} within {width:g}", values, names)
            for size, some_sets in counted:
                alone = [(matches[s][0] > 0) & (matches[s][1] == 0) for s in some_sets]
                yield Score(f"any {size} columns", np.sum(alone, axis=0, dtype=np.float64))


def _matches(
    columns: Sequence[PooledColumn], sets: Sequence[_Set], width: float, pool: PooledPeople
) -> dict[_Set, tuple[Counts32, Counts32]]:
    """How many rows, and how many records of other people, are near each record in all columns of a set.

    Once rows were replaced, they alone are counted in sets that were counted before.
    """
    memory, name = pool.memory, f"fragments within {width:g}"
    known = (memory and memory.known(name)) or {}
    old, new = ([s for s in sets if (s in known) is before] for before in (True, False))
    release = [_NearCells.of(c, c.release, width) for c in columns]
    people = [_NearCells.of(c, c.people, width) for c in columns]
    sides = _counts(release, new), _counts(people, new, pool.person)
    found = {s: (rows, others) for s, rows, others in zip(new, *sides, strict=True)}
    if memory and memory.keeps:
        memory.found[name] = found
    if memory and old:
        before = [_NearCells.of(c, c.release, width) for c in memory.columns if _bits(c) > 0]
        gone, came = (
            _counts([replace(n, place=n.place[memory.replaced]) for n in near], old)
            for near in (before, release)
        )
        for s, less, more in zip(old, gone, came, strict=True):
            found[s] = np.maximum(0, known[s][0] - less + more), known[s][1]
    return found


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
class _NearCells:
    """Which rows of a table are near each record in one column.

    Attributes:
        place: of each row among the values that are not missing, in order; -1 where missing, shape (rows,).
        first, last: places that are near each different value of the records, the last one excluded.
        value: of each record, as a position in these, shape (records,).
    """

    place: npt.NDArray[Any] = field(repr=False)
    first: npt.NDArray[Any] = field(repr=False)
    last: npt.NDArray[Any] = field(repr=False)
    value: Positions = field(repr=False)

    @classmethod
    def of(cls, column: PooledColumn, rows: Floats, width: float) -> Self:
        """Equal labels are near, and numbers of that share of the rows next to it by rank."""
        able, grain = np.isfinite(rows) & ((rows >= 0) | column.numeric), column.grain
        known = np.sort(rows[able])
        mine, value = np.unique(column.people, return_inverse=True)
        # Half of a difference of two numbers of the release may be lost by rounding.
        lost = np.maximum(grain / 2, np.abs(mine) * np.finfo(np.float32).eps) if column.numeric else 0.0
        first, last = (
            np.searchsorted(known, mine - lost, "left"),
            np.searchsorted(known, mine + lost, "right"),
        )
        if column.numeric and width and len(known):
            reach = max(1, round(width * len(known) / 2))
            first = np.searchsorted(known, known[np.maximum(first - reach, 0)], "left")
            last = np.searchsorted(known, known[np.minimum(last + reach, len(known)) - 1], "right")
        last[np.isnan(mine)] = 0
        kind = "int16" if len(known) < 2**15 else "int32"
        place = np.where(able, np.searchsorted(known, rows, "left"), -1)
        return cls(place.astype(kind), first.astype(kind), last.astype(kind), value)

    def packed(self, asked: Positions, block: slice = slice(None), person: Positions | None = None) -> Packed:
        """Which rows of a block are near each record asked about, 64 in a word.

        Args:
            person: given where the rows are the people's own records: nobody matches a record of their own.
        """
        place, first, last = self.place[block], self.first[:, None], self.last[:, None]
        bits = np.packbits((place >= first) & (place < last), axis=1, bitorder="little")
        found = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)[self.value[asked]]
        if person is not None:
            first, last = (np.searchsorted(person, person[asked], side) for side in ("left", "right"))
            for k in range(int((last - first).max(initial=0))):
                own = first + k - (block.start or 0)
                i = np.flatnonzero((first + k < last) & (own >= 0) & (own < len(place)))
                found[i, own[i] // 64] &= ~(np.uint64(1) << (own[i] % 64).astype(np.uint64))
        return found


def _counts(near: Sequence[_NearCells], sets: Sequence[_Set], person: Positions | None = None) -> Counts32:
    """How many rows are near each record in all columns of a set, shape (sets, records)."""
    n, m = len(near[0].value), len(near[0].place)
    found, size = np.zeros((len(sets), n), np.int32), max(64, _CELLS // n // 64 * 64)
    used = sorted({j for s in sets for j in s})
    for start in range(0, m if sets else 0, size):
        block = slice(start, min(start + size, m))
        bits = {j: near[j].packed(np.arange(n), block, person) for j in used}
        for of_set, s in zip(found, sets, strict=True):
            of_set += _number(_all([bits[j] for j in s]))
    return found


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
                    larger.append((_surprise(_number(both[0]), _number(both[1]), share), key, *both))
        beam = sorted(larger, key=lambda x: -x[0])[:_SETS]
        found += [(z, key) for z, key, _, _ in beam]
    return [key for _, key in sorted(found, key=lambda x: -x[0])[:_SETS]]


def _number(near: Packed) -> Positions:
    bits = np.bitwise_count(near).astype(np.float32)  # their sums are exact, and the product is fast
    found: Positions = (bits @ np.ones(bits.shape[1], np.float32)).astype(np.intp)
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
