"""Who shares several telling values with one release row, whichever values these are: arrays only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Self

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.measurement import Estimate
from synth_audit.kernels.held_out import mean_of_halves
from synth_audit.kernels.proportion_interval import proportion_difference
from synth_audit.kernels.shared_windows import shared_windows, window_width

LARGEST = 5
"""Columns of a set at most."""

_LEAST_BITS = 3.0
"""A value that every eighth row shares, or more of them, tells too little to be looked at."""

_MOST_BITS = 9.0
"""What one value tells at most: an exact number alone, which smooth generators repeat, recognises nobody."""

_ROOM_PAIR, _ROOM = 4.0, 8.0
"""Bits that two, or more, shared values tell beyond those that single a row of the release out."""

_COLUMNS, _ROWS, _SHARED = 60, 8, 7
"""Columns looked at, release rows of each person, and shared values of each such row, at most."""

_FEWEST, _CANDIDATES, _CHOSEN = 3, 2000, 60
"""Train people whom a set must recognise, sets that are looked at, and sets that are joined, at most."""

_LEAST_DETERMINANT = 2.0**-60
"""What a determinant of correlations counts as at least: columns that are functions of one another."""

FEWEST_STRANGERS = 400
"""Control people of whom half say which sets recognise strangers; with fewer, two thirds of a half do too."""

_PARTS = 3
"""Parts that each half of few people is judged in."""

_CAUTION, _LESS_CAUTION = 2.5, 1.5
"""Standard errors by which a set must add people of train beyond those of control; and where people are few,
or it is one of a few sets that nobody's side led to."""


@dataclass(frozen=True, eq=False)
class SharedSets:
    """Which sets of columns somebody shares with one release row.

    Attributes:
        sets: of columns, each ascending.
        who, which: person and position in ``sets``, a pair for each; shape (pairs,).
        able: which sets each half of the people may choose, shape (2, sets).
        asked: who was looked up, shape (people,).
        caution: standard errors by which each must add people of train, shape (sets,).
    """

    sets: Sequence[tuple[int, ...]]
    who: Positions
    which: Positions
    able: Bools
    asked: Bools
    caution: Floats

    def beside(
        self,
        sets: Sequence[tuple[int, ...]],
        hits: Sequence[Positions],
        able: Bools,
        *,
        sideless: bool = False,
    ) -> SharedSets:
        """With other sets, and the people whom each of them recognises.

        Args:
            able: as above, shape (2, other sets). sideless: they are few, and nobody's side led to them.
        """
        which = np.repeat(np.arange(len(sets)), [len(hit) for hit in hits]) + len(self.sets)
        return SharedSets(
            [*self.sets, *sets],
            np.concatenate([self.who, *hits]),
            np.concatenate([self.which, which]),
            np.hstack([self.able, able]),
            self.asked,
            np.append(self.caution, np.full(len(sets), _LESS_CAUTION if sideless else _CAUTION)),
        )

    def united(self, member: Bools, second: Bools, level: float) -> tuple[Estimate, list[tuple[int, ...]]]:
        """Share of train people recognised by any of several sets, less that of control.

        The sets are joined one by one on one half of the people while they add more of train than of control,
        and judged on the other half, both ways. With few control people each half is judged in thirds, the
        other two of which choose with the other half: half of few people is too few to choose on.

        Args:
            member: who is in train; second: who is in the second half; shape (people,).

        Returns:
            The estimate, and the sets that were joined on either half.
        """
        few = (~member & self.asked).sum() < FEWEST_STRANGERS
        part = _parts(member, second, _PARTS if few else 1)
        caution = np.minimum(self.caution, _LESS_CAUTION) if few else self.caution
        halves, named = [], []
        for half in (0, 1):
            hit = np.zeros(len(self.asked), dtype=bool)
            for judged in (part == p for p in np.unique(part[second == bool(half)])):
                chosen = self._chosen(member, ~judged, self.able[1 - half], caution)
                named += chosen
                hit[self.who[np.isin(self.which, chosen) & judged[self.who]]] = True
            sides = [hit[(second == bool(half)) & side & self.asked] for side in (member, ~member)]
            (a, n), (b, k) = ((float(side.sum()), len(side)) for side in sides)
            halves.append(Estimate(a / n - b / k, proportion_difference(a, n, b, k, level)))
        return mean_of_halves(halves, level), [self.sets[i] for i in dict.fromkeys(named)]

    def _chosen(self, member: Bools, asked: Bools, able: Bools, caution: Floats) -> list[int]:
        """Positions of the sets that are joined on some of the people."""
        half = asked & self.asked
        inside = (member & half)[self.who] & able[self.which]
        counts = np.bincount(self.which[inside], minlength=len(self.sets))
        order = np.argsort(-counts, kind="stable")[:_CANDIDATES]
        candidates = order[counts[order] >= _FEWEST]
        if not len(candidates):
            return []
        place = np.full(len(self.sets), -1)
        place[candidates] = np.arange(len(candidates))
        kept = place[self.which] >= 0
        hits = np.zeros((len(candidates), len(self.asked)), dtype=bool)
        hits[place[self.which[kept]], self.who[kept]] = True
        sides = hits[:, member & half], hits[:, ~member & half]
        return [int(candidates[i]) for i in _joined(*sides, caution[candidates])]


def shared_sets(release: Floats, people: Floats, step: float, most: int, least: int = 2) -> SharedSets:
    """Sets of ``least`` to five columns in which a person and one release row share values that tell enough.

    A value shared by c of m rows tells log2(m / c) bits; numbers are shared with the rows nearest in rank.
    What columns tell twice is deducted from their sum (:class:`_Dependence`): a radius and an area are one
    value. A set tells enough where its bits are 8 more than log2(m), 4 more where it is of two columns: so
    improbable is a stranger's row.

    Args:
        release: shape (m, d), people: shape (n, d), none NaN. step: what lies further apart is not the same
            label. most: people to look up, evenly taken. least: columns of a set; 2 or more.
    """
    kept = _telling(release)
    columns = [_Sharing.of(release[:, j], people[:, j], step) for j in kept]
    twice = _Dependence.of(people[:, kept])
    place: dict[tuple[int, ...], int] = {}
    who: list[int] = []
    which: list[int] = []
    asked = np.zeros(len(people), dtype=bool)
    asked[np.unique(np.linspace(0, len(people) - 1, min(most, len(people))).astype(np.intp))] = True
    for i in np.flatnonzero(asked):
        found = set(_sets_of(columns, twice, int(i), len(release), least))
        who += [int(i)] * len(found)
        which += [place.setdefault(s, len(place)) for s in sorted(found)]
    sets = [tuple(int(kept[j]) for j in s) for s in place]
    able, caution = np.ones((2, len(sets)), dtype=bool), np.full(len(sets), _CAUTION)
    return SharedSets(sets, np.array(who, np.intp), np.array(which, np.intp), able, asked, caution)


def _telling(release: Floats) -> Positions:
    """The columns with most different values, where there are many; ascending."""
    different = np.array([len(np.unique(column)) for column in release.T])
    return np.sort(np.argsort(-different, kind="stable")[:_COLUMNS])


def _parts(member: Bools, second: Bools, parts: int) -> Positions:
    """Which part of its half everybody is in, numbered through, train and control divided alike."""
    part = np.empty(len(member), dtype=np.intp)
    for half in (False, True):
        for side in (member, ~member):
            there = (second == half) & side
            part[there] = half * parts + np.arange(there.sum()) % parts
    return part


@dataclass(frozen=True, eq=False)
class _Sharing:
    """Which rows of the release share one column's value with each person.

    Attributes:
        order: rows of the release by value; place: of each row in it; shape (m,).
        first, end: where those that share it begin and end in ``order``, shape (people,).
        bits: what sharing it tells; 0 where it tells too little, shape (people,).
    """

    order: Positions
    place: Positions
    first: Positions
    end: Positions
    bits: Floats

    @classmethod
    def of(cls, mine: Floats, asked: Floats, step: float) -> Self:
        m = len(mine)
        order, first, end = shared_windows(mine, asked, step, window_width(m))
        there = end > first
        bits = np.minimum(np.log2(m / np.maximum(end - first, 1)), _MOST_BITS)
        place = np.empty(m, dtype=np.intp)
        place[order] = np.arange(m)
        return cls(order, place, first, end, np.where(there & (bits >= _LEAST_BITS), bits, 0.0))


@dataclass(frozen=True, eq=False)
class _Dependence:
    """What sets of columns tell twice.

    Attributes:
        correlations: of the columns' normal scores, shape (d, d).
        known: bits of the sets that were asked for.
    """

    correlations: Floats
    known: dict[tuple[int, ...], float]

    @classmethod
    def of(cls, people: Floats) -> Self:
        """Of what people have, train and control alike; shape (n, d)."""
        scores = np.column_stack([_normal_scores(column) for column in people.T])
        length = np.sqrt((scores**2).sum(axis=0))
        scores /= np.where(length > 0, length, 1.0)
        return cls(scores.T @ scores, {})

    def bits(self, columns: tuple[int, ...]) -> float:
        """Total correlation in bits, as of normal columns: ``−log2(det R) / 2``; shape of R (k, k)."""
        if columns not in self.known:
            r = self.correlations[np.ix_(columns, columns)].copy()
            np.fill_diagonal(r, 1.0)
            self.known[columns] = -float(np.log2(max(np.linalg.det(r), _LEAST_DETERMINANT))) / 2
        return self.known[columns]


def _normal_scores(column: Floats) -> Floats:
    """Normal quantiles of mean ranks, which sum to 0; shape (n,)."""
    from scipy.special import ndtri  # here, since a code location must not load it

    _, place, times = np.unique(column, return_inverse=True, return_counts=True)
    each = ndtri((np.cumsum(times) - times / 2) / len(column))
    scores: Floats = (each - (each * times).sum() / len(column))[place]
    return scores


def _sets_of(
    columns: Sequence[_Sharing], twice: _Dependence, person: int, m: int, least: int
) -> Iterator[tuple[int, ...]]:
    """Sets that one person shares with single rows, of those rows with which most is shared."""
    telling = [(j, c.order[c.first[person] : c.end[person]]) for j, c in enumerate(columns) if c.bits[person]]
    if len(telling) < least:
        return
    bits = {j: float(columns[j].bits[person]) for j, _ in telling}
    rows = np.concatenate([found for _, found in telling])
    weights = np.repeat(list(bits.values()), [len(found) for _, found in telling])
    told, single = np.bincount(rows, weights, m), float(np.log2(m))
    near = np.flatnonzero(told >= single + (_ROOM_PAIR if least == 2 else _ROOM))
    near = near[np.argsort(-told[near], kind="stable")[:_ROWS]]
    for row in near:
        shared = [
            j for j in bits if columns[j].first[person] <= columns[j].place[row] < columns[j].end[person]
        ]
        shared = sorted(shared, key=lambda j: -bits[j])[:_SHARED]
        sets, member, room = _choices(len(shared), least)
        shared = sorted(shared)
        told_in_all = member @ np.array([bits[j] for j in shared])
        for i in np.flatnonzero(told_in_all >= single + room):
            s = tuple(shared[place] for place in sets[i])
            if told_in_all[i] - twice.bits(s) >= single + room[i]:
                yield s


@cache
def _choices(k: int, least: int) -> tuple[list[tuple[int, ...]], Floats, Floats]:
    """Sets of ``least`` to five of k columns, which are in them, shape (sets, k), and what they tell beyond
    one row, shape (sets,)."""
    sets = [s for size in range(least, min(LARGEST, k) + 1) for s in combinations(range(k), size)]
    member = np.array([[float(j in s) for j in range(k)] for s in sets]).reshape(len(sets), k)
    return sets, member, np.array([_ROOM_PAIR if len(s) == 2 else _ROOM for s in sets])


def _joined(train: Bools, control: Bools, caution: Floats) -> list[int]:
    """Sets joined one by one, each the one that adds most; rows of both are sets, columns people."""
    n, k = train.shape[1], control.shape[1]
    left, free = np.ones(n, dtype=bool), np.ones(k, dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(_CHOSEN, len(train)):
        a, b = train[:, left].sum(axis=1), control[:, free].sum(axis=1)
        s, t = (a + 0.5) / (n + 1), (b + 0.5) / (k + 1)
        gain = a / n - b / k - caution * np.sqrt(s * (1 - s) / n + t * (1 - t) / k)
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        chosen.append(best)
        left &= ~train[best]
        free &= ~control[best]
    return chosen
