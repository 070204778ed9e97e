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

_WORK = 2.5e11
"""Sets of a size, times records, times rows of the release, that are counted at most: beyond some hundred
thousand rows fewer sets are drawn."""

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
        cost="minutes",
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
        of_sample = [(_NearCells.of(c, c.release[rows]), _NearCells.of(c, c.people)) for c in columns]
        near = [
            (_NearCells.of(c, c.release), people) for c, (_, people) in zip(columns, of_sample, strict=True)
        ]
        most = int(np.clip(_WORK / (pool.records * pool.rows), _SETS, _MOST_COUNTED))
        for w, width in enumerate(_WIDTHS):
            sampled = [
                (release.packed(w, some), people.packed(w, some, person=pool.person))
                for release, people in of_sample
            ]
            sets = list(dict.fromkeys([*_grown(sampled, share), *_random(told, rng)]))
            counted = [(k, _some_sets(len(columns), k, most, rng)) for k in _COUNTED if not w]
            every = dict.fromkeys([*sets, *(s for _, some_sets in counted for s in some_sets)])
            matches = _matches(near, list(every), w, pool)
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
    near: Sequence[tuple[_NearCells, _NearCells]], sets: Sequence[_Set], w: int, pool: PooledPeople
) -> dict[_Set, tuple[Counts32, Counts32]]:
    """How many rows, and how many records of other people, are near each record in all columns of a set.

    Once rows were replaced, they alone are counted in sets that were counted before.
    """
    memory, name = pool.memory, f"fragments within {_WIDTHS[w]:g}"
    known = (memory and memory.known(name)) or {}
    old, new = ([s for s in sets if (s in known) is before] for before in (True, False))
    release, people = zip(*near, strict=True)
    sides = _counts(release, w, new), _counts(people, w, new, pool.person)
    found = {s: (rows, others) for s, rows, others in zip(new, *sides, strict=True)}
    if memory and memory.keeps:
        memory.found[name] = found
    if memory and old:
        before = [_NearCells.of(c, c.release) for c in memory.columns if _bits(c) > 0]
        gone, came = (
            _counts([replace(n, code=n.code[memory.replaced]) for n in of_release], w, old)
            for of_release in (before, release)
        )
        for s, less, more in zip(old, gone, came, strict=True):
            found[s] = np.maximum(0, known[s][0] - less + more), known[s][1]
    return found


def _some_sets(d: int, size: int, most: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All sets of so many of d columns, or some at random."""
    if comb(d, size) <= most:
        return list(combinations(range(d), size))
    drawn = (rng.choice(d, size, replace=False).tolist() for _ in range(most))
    return list({tuple(sorted(s)) for s in drawn})


def _bits(column: PooledColumn) -> float:
    """Entropy of the cells of a column among people, in bits."""
    share = np.unique(np.nan_to_num(column.people, nan=-np.inf), return_counts=True)[1] / len(column.people)
    return float(-(share * np.log2(share)).sum())


@dataclass(frozen=True, eq=False)
class _NearCells:
    """Which rows of a table are near each record in one column, for each width.

    The near values of a record are an interval. The ends of all intervals are numbered in order: a row has
    code 2 i + 1 at end i, and an even one between two ends.

    Attributes:
        code: of each row; -1 where missing, shape (rows,).
        first, last: codes that are near each different value of the records, shape (widths, values).
        value: of each record, as a position in these, shape (records,).
    """

    code: npt.NDArray[Any] = field(repr=False)
    first: npt.NDArray[Any] = field(repr=False)
    last: npt.NDArray[Any] = field(repr=False)
    value: Positions = field(repr=False)

    @classmethod
    def of(cls, column: PooledColumn, rows: Floats) -> Self:
        """Equal labels are near, and numbers of that share of the rows next to it by rank."""
        able = np.isfinite(rows) & ((rows >= 0) | column.numeric)
        known = np.sort(rows[able])
        mine, value = np.unique(column.people, return_inverse=True)
        # Half of a difference of two numbers of the release may be lost by rounding.
        lost = (
            np.maximum(column.grain / 2, np.abs(mine) * np.finfo(np.float32).eps) if column.numeric else 0.0
        )
        least, most = (np.tile(end, (len(_WIDTHS), 1)) for end in (mine - lost, mine + lost))
        if column.numeric and len(known):
            first = np.searchsorted(known, mine - lost, "left")
            last = np.searchsorted(known, mine + lost, "right")
            for w, width in enumerate(_WIDTHS):
                if width:
                    reach = max(1, round(width * len(known) / 2))
                    least[w] = known[np.maximum(first - reach, 0)]
                    most[w] = known[np.minimum(last + reach, len(known)) - 1]
        ends = np.unique(np.concatenate([least, most]))
        place = np.searchsorted(ends, rows, "right")
        code = 2 * place - (np.append(ends, np.nan)[place - 1] == rows)
        first, last = (2 * np.searchsorted(ends, end) + 1 for end in (least, most))
        last[:, np.isnan(mine)] = -1
        kind = "int16" if 2 * len(ends) < 2**15 else "int32"
        return cls(np.where(able, code, -1).astype(kind), first.astype(kind), last.astype(kind), value)

    def packed(
        self, w: int, asked: Positions, block: slice = slice(None), person: Positions | None = None
    ) -> Packed:
        """Which rows of a block are near each record asked about by one width, 64 in a word.

        Args:
            person: given where the rows are the people's own records: nobody matches a record of their own.
        """
        code, first, last = self.code[block], self.first[w, :, None], self.last[w, :, None]
        bits = np.packbits((code >= first) & (code <= last), axis=1, bitorder="little")
        found = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)[self.value[asked]]
        if person is not None:
            first, last = (np.searchsorted(person, person[asked], side) for side in ("left", "right"))
            for k in range(int((last - first).max(initial=0))):
                own = first + k - (block.start or 0)
                i = np.flatnonzero((first + k < last) & (own >= 0) & (own < len(code)))
                found[i, own[i] // 64] &= ~(np.uint64(1) << (own[i] % 64).astype(np.uint64))
        return found


def _counts(
    near: Sequence[_NearCells], w: int, sets: Sequence[_Set], person: Positions | None = None
) -> Counts32:
    """How many rows are near each record in all columns of a set, shape (sets, records)."""
    n, m = len(near[0].value), len(near[0].code)
    found, size = np.zeros((len(sets), n), np.int32), max(64, _CELLS // n // 64 * 64)
    used = sorted({j for s in sets for j in s})
    for start in range(0, m if sets else 0, size):
        block = slice(start, min(start + size, m))
        bits = {j: near[j].packed(w, np.arange(n), block, person) for j in used}
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
