"""Which columns, telling or not, do train people share with single rows of a release more than strangers do?

Two numbers and three answers of yes or no single somebody out together where no two of them do, and where the
answers are too common to be looked at alone. Sets of columns grow here one column at a time, by whom they
recognise of those who may choose: arrays only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.kernels.shared_windows import shared_windows

Packed = npt.NDArray[np.uint64]

LARGEST = 7
"""Columns of a set at most."""

_COMPARED, _FEWEST_TRIED, _MOST_TRIED = 2e8, 100, 800
"""Bytes that are compared for all sets of one size, and how many sets these are, at least and at most."""

_STRANGERS, _MOST_STRANGERS, _ERROR = 0.03, 0.15, 0.0225
"""Share of strangers whom a set may recognise of few control people, and at most; between, so many that the
standard error of their share is the third."""

_CAUTION, _CLEARLY = 4.0, 8.0
"""Standard errors by which a set must recognise more of train than of strangers to be told of, and those from
which on it is told of whatever share of strangers it recognises."""

_LARGEST_RARE, _TRIED_RARE, _SURE = 9, 100, 3.0
"""Columns of a set that rows and people share alone, how many sets of one size are tried, and standard errors
by which one is told of."""

_SEEN_MOSTLY = 0.84
"""Further standard errors by which a set must stand out on average to do so in four draws of five."""


def grown_blocks(
    release: Floats, people: Floats, member: Bools, chosen: Bools, step: float, most: int, width: int
) -> list[tuple[int, ...]]:
    """At most so many sets of two to seven columns, each ascending, those that stand out most first.

    A set recognises who has a row that shares all its values: equal labels, or numbers near in rank. From
    all pairs on, the best of each size grow by each further column. What counts is how much more of train a
    set recognises than of strangers, in standard errors of two shares to which half a success and half a
    failure were added.

    Args:
        release: shape (m, d), people: shape (n, d), none NaN. member: who is in train, shape (n,).
        chosen: who is asked whether he is recognised, shape (n,). step: what lies further apart is not the
            same label. width: rows that share a number with somebody, where no more are equal.
    """
    search = _GrowthSearch.of(release, people, member, chosen, step, width)
    best: dict[tuple[int, ...], float] = {}
    d = release.shape[1]
    room = _room(int((chosen & ~member).sum()))
    level: list[tuple[int, ...]] = [(i, j) for i in range(d) for j in range(i + 1, d)]
    for _ in range(2, min(LARGEST, d) + 1):
        found = {s: search.apart(s) for s in level}
        best |= {s: z for s, (z, usual) in found.items() if z > (_CAUTION if usual <= room else _CLEARLY)}
        grown = sorted(found, key=lambda s: (-found[s][0], s))[: search.affordable // d]
        level = _with_one_more(grown, d)
    return sorted(best, key=lambda s: (-best[s], s))[:most]


def rare_blocks(
    release: Floats, people: Floats, step: float, most: int
) -> list[tuple[tuple[int, ...], Positions]]:
    """At most so many sets of two to nine columns that people share with rows of the release alone.

    A person shares all values of a set (equal labels, or the number next in rank) with t rows of the release
    and of other people together. Were the release people like others, all of these would be its own with the
    chance ``ρ^t``, ρ its share of all rows; what counts is by how many standard errors more people have all
    there, so that a set whose values many share counts as well as one that singles people out. Nobody's side
    is looked at. From all pairs on, the best of each size grow by each further column; of two sets of which
    one holds the other the surer is told of.

    Args:
        release: shape (m, d), people: shape (n, d), none NaN. step: what lies further apart is not the same
            label.

    Returns:
        each set, ascending, and the positions of the people who share it with the release alone.
    """
    everybody = np.ones(len(people), dtype=bool)
    search = _GrowthSearch.of(release, people, everybody, everybody, step, 1)
    sure: dict[tuple[int, ...], float] = {}
    d = release.shape[1]
    level: list[tuple[int, ...]] = [(i, j) for i in range(d) for j in range(i + 1, d)]
    for _ in range(2, min(_LARGEST_RARE, d) + 1):
        found = {s: search.beyond_people(s) for s in level}
        sure |= {s: z for s, z in found.items() if z > _SURE}
        level = _with_one_more(sorted(found, key=lambda s: (-found[s], s))[: _TRIED_RARE // d], d)
    chosen: list[tuple[int, ...]] = []
    for s in sorted(sure, key=lambda s: (-sure[s], s)):
        if not any(set(s) <= set(t) or set(t) <= set(s) for t in chosen):
            chosen.append(s)
    return [(s, np.flatnonzero(search.in_release_alone(s))) for s in chosen[:most]]


def _with_one_more(sets: Sequence[tuple[int, ...]], d: int) -> list[tuple[int, ...]]:
    """Each with every further one of d columns."""
    return sorted({tuple(sorted((*s, j))) for s in sets for j in range(d) if j not in s})


def smallest_seen(train: int, control: int) -> float:
    """Share of train people whom a set must recognise to be told of in four draws of five.

    Of so many people who are asked, by a set that recognises 3 % of strangers.
    """
    for share in np.arange(0.005, 1.0, 0.005):
        error = _error(min(1.0, share + _STRANGERS), train, _STRANGERS, train + control)
        if share > (_CAUTION + _SEEN_MOSTLY) * error:
            return float(round(share, 3))
    return 1.0


def _room(strangers: int) -> float:
    """Share of strangers whom a set may recognise, of so many asked: t with ``t (1 − t) / k = _ERROR²``, or a
    bound. What is copied of coarse columns is shared by many who are nobody's copy."""
    square = max(0.0, 1 - 4 * strangers * _ERROR**2)
    return min(_MOST_STRANGERS, max(_STRANGERS, (1 - math.sqrt(square)) / 2))


def _error(s: float, n: float, t: float, k: float) -> float:
    """Standard error of the difference of two shares to which half a success and half a failure are added."""
    s, t = (n * s + 0.5) / (n + 1), (k * t + 0.5) / (k + 1)
    return math.sqrt(s * (1 - s) / n + t * (1 - t) / k)


def recognised(
    release: Floats, people: Floats, sets: Sequence[tuple[int, ...]], step: float, width: int
) -> list[Positions]:
    """For each set of columns the positions of the people who share all of it with one row.

    Args:
        release: shape (m, d), people: shape (n, d), none NaN. step, width: as in :func:`grown_blocks`.
    """
    bits = {j: _bits(release[:, j], people[:, j], step, width) for j in {j for s in sets for j in s}}
    return [np.flatnonzero(_shared(bits, s)) for s in sets]


@dataclass(frozen=True, eq=False)
class _GrowthSearch:
    """Which rows share which value with each person looked at, as bits.

    Attributes:
        release: of each column, rows of the release, shape (words of rows, people); train people first.
        others: the same of other people's rows.
        n_train: how many are in train. ratio: rows of the release for one of other people.
    """

    release: Sequence[Packed]
    others: Sequence[Packed]
    n_train: int
    ratio: float

    @classmethod
    def of(
        cls, release: Floats, people: Floats, member: Bools, chosen: Bools, step: float, width: int
    ) -> Self:
        m, n = len(release), len(people)
        sides = [np.flatnonzero(side & chosen) for side in (member, ~member)]
        asked = np.concatenate(sides)
        rows = np.unique(np.linspace(0, n - 1, min(m, n)).astype(np.intp))
        own = np.where(np.isin(asked, rows), np.searchsorted(rows, asked), -1)
        less = max(1, round(width * len(rows) / m))
        found: tuple[list[Packed], list[Packed]] = ([], [])
        for mine, values in zip(release.T, people.T, strict=True):
            found[0].append(_bits(mine, values[asked], step, width))
            found[1].append(_bits(values[rows], values[asked], step, less, own))
        return cls(*found, len(sides[0]), m / len(rows))

    @property
    def affordable(self) -> int:
        """Sets of one size that are tried."""
        bytes_each = self.release[0].nbytes + self.others[0].nbytes
        return int(np.clip(_COMPARED / bytes_each, _FEWEST_TRIED, _MOST_TRIED))

    def apart(self, columns: tuple[int, ...]) -> tuple[float, float]:
        """How much more of train a set recognises than of strangers, in standard errors; and of these.

        Strangers are control; and all people, to whom rows of others are as rows of the release are to
        strangers, whichever are recognised more.
        """
        hit = _shared(self.release, columns)
        n = self.n_train
        a, b = (float(side.mean()) for side in (hit[:n], hit[n:]))
        usual = max(b, 1 - (1 - float(_shared(self.others, columns).mean())) ** self.ratio)
        return (a - usual) / _error(a, n, usual, len(hit) / self.ratio), usual

    def in_release_alone(self, columns: tuple[int, ...]) -> Bools:
        """Who shares all of some columns with a row of the release and with no other person."""
        return _shared(self.release, columns) & ~_shared(self.others, columns)

    def beyond_people(self, columns: tuple[int, ...]) -> float:
        """How many more do than if the release were people like others, in standard errors."""
        rows, others = (
            np.bitwise_count(_rows(bits, columns)).sum(axis=0, dtype=np.int64)
            for bits in (self.release, self.others)
        )
        alone = (rows > 0) & (others == 0)
        usual = (rows + others > 0) * (self.ratio / (1 + self.ratio)) ** (rows + others)
        return float((alone - usual).sum() / np.sqrt(1 + (usual * (1 - usual)).sum()))


def _rows(bits: Sequence[Packed] | Mapping[int, Packed], columns: tuple[int, ...]) -> Packed:
    """Which rows share all of some columns with each person, as bits."""
    first, *others = (bits[j] for j in columns)
    rows: Packed = first & others[0] if others else first
    for more in others[1:]:
        np.bitwise_and(rows, more, out=rows)
    return rows


def _shared(bits: Sequence[Packed] | Mapping[int, Packed], columns: tuple[int, ...]) -> Bools:
    """Who shares all of some columns with one row, shape (people,)."""
    shared: Bools = np.bitwise_or.reduce(_rows(bits, columns), axis=0) != 0
    return shared


def _bits(mine: Floats, asked: Floats, step: float, width: int, own: Positions | None = None) -> Packed:
    """Which rows share a value with each person, 64 of them a word; but not a person's own, −1 for none."""
    there = 0 if own is None else (own >= 0).astype(np.intp)
    order, first, end = shared_windows(mine, asked, step, width, there)
    # Rows that share a value stand side by side by value: those up to the last but those before the first.
    up_to = np.zeros((len(mine) + 1, -(-len(mine) // 64)), np.uint64)
    up_to[np.arange(1, len(up_to)), order // 64] = _bit(order)
    np.bitwise_or.accumulate(up_to, axis=0, out=up_to)
    packed = up_to[end] ^ up_to[first]
    if own is not None:
        who = np.flatnonzero(own >= 0)
        packed[who, own[who] // 64] &= ~_bit(own[who])
    return np.ascontiguousarray(packed.T)


def _bit(rows: Positions) -> Packed:
    return np.uint64(1) << (rows % 64).astype(np.uint64)
