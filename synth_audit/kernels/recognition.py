"""Who shares several telling values with one release row, whichever values these are: arrays only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.measurement import Estimate
from synth_audit.kernels.held_out import mean_of_halves
from synth_audit.kernels.proportion_interval import proportion_difference

LARGEST = 5
"""Columns of a set at most."""

_NEIGHBOURS = 4
"""Release rows to either side of a number that share it."""

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

_CAUTION = 2.5
"""Standard errors by which a set must add people of train beyond those of control."""


@dataclass(frozen=True, eq=False)
class SharedSets:
    """Which sets of columns somebody shares with one release row.

    Attributes:
        sets: of columns, each ascending.
        who, which: person and position in ``sets``, a pair for each; shape (pairs,).
        able: which sets each half of the people may choose, shape (2, sets).
        asked: who was looked up, shape (people,).
    """

    sets: Sequence[tuple[int, ...]]
    who: Positions
    which: Positions
    able: Bools
    asked: Bools

    def beside(self, sets: Sequence[tuple[int, ...]], hits: Sequence[Positions], able: Bools) -> SharedSets:
        """With other sets, and the people whom each of them recognises.

        Args:
            able: as above, shape (2, other sets).
        """
        which = np.repeat(np.arange(len(sets)), [len(hit) for hit in hits]) + len(self.sets)
        return SharedSets(
            [*self.sets, *sets],
            np.concatenate([self.who, *hits]),
            np.concatenate([self.which, which]),
            np.hstack([self.able, able]),
            self.asked,
        )

    def united(self, member: Bools, second: Bools, level: float) -> tuple[Estimate, list[tuple[int, ...]]]:
        """Share of train people recognised by any of several sets, less that of control.

        The sets are joined one by one on one half of the people while they add more of train than of control,
        and judged on the other half, both ways.

        Args:
            member: who is in train; second: who is in the second half; shape (people,).

        Returns:
            The estimate, and the sets that were joined on either half.
        """
        halves, named = [], []
        for half in (False, True):
            chosen = self._chosen(member, second != half, self.able[int(not half)])
            named += chosen
            hit = np.zeros(len(self.asked), dtype=bool)
            hit[self.who[np.isin(self.which, chosen)]] = True
            sides = [hit[(second == half) & side & self.asked] for side in (member, ~member)]
            (a, n), (b, k) = ((float(side.sum()), len(side)) for side in sides)
            halves.append(Estimate(a / n - b / k, proportion_difference(a, n, b, k, level)))
        return mean_of_halves(halves, level), [self.sets[i] for i in dict.fromkeys(named)]

    def _chosen(self, member: Bools, half: Bools, able: Bools) -> list[int]:
        """Positions of the sets that are joined on one half of the people."""
        half = half & self.asked
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
        return [int(candidates[i]) for i in _joined(hits[:, member & half], hits[:, ~member & half])]


def shared_sets(release: Floats, people: Floats, step: float, most: int) -> SharedSets:
    """Sets of two to five columns in which one release row shares values with a person that tell enough.

    A value shared by c of m rows tells log2(m / c) bits, as if columns had nothing to do with each other;
    numbers are shared with the rows nearest in rank. A set tells enough where its bits are 8 more than
    log2(m), 4 more where it is of two columns: so improbable is a stranger's row.

    Args:
        release: shape (m, d), people: shape (n, d), none NaN. step: what lies further apart is not the same
            label. most: people to look up, evenly taken.
    """
    kept = _telling(release)
    columns = [_Sharing.of(release[:, j], people[:, j], step) for j in kept]
    place: dict[tuple[int, ...], int] = {}
    who: list[int] = []
    which: list[int] = []
    asked = np.zeros(len(people), dtype=bool)
    asked[np.unique(np.linspace(0, len(people) - 1, min(most, len(people))).astype(np.intp))] = True
    for i in np.flatnonzero(asked):
        found = set(_sets_of(columns, int(i), len(release)))
        who += [int(i)] * len(found)
        which += [place.setdefault(s, len(place)) for s in sorted(found)]
    sets = [tuple(int(kept[j]) for j in s) for s in place]
    able = np.ones((2, len(sets)), dtype=bool)
    return SharedSets(sets, np.array(who, np.intp), np.array(which, np.intp), able, asked)


def _telling(release: Floats) -> Positions:
    """The columns with most different values, where there are many; ascending."""
    different = np.array([len(np.unique(column)) for column in release.T])
    return np.sort(np.argsort(-different, kind="stable")[:_COLUMNS])


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
        m, order = len(mine), np.argsort(mine, kind="stable")
        ordered = mine[order]
        left, right = np.searchsorted(ordered, asked, "left"), np.searchsorted(ordered, asked, "right")
        # Where many rows have the very value, the next one is not shared.
        reach = np.maximum(_NEIGHBOURS - (right - left) // 2, 0)
        first, last = left - reach, right + reach - 1
        # No further than to other labels.
        first = np.maximum(first, np.searchsorted(ordered, asked - step / 2, "left"))
        last = np.minimum(last, np.searchsorted(ordered, asked + step / 2, "right") - 1)
        there = last >= first
        first = np.searchsorted(ordered, ordered[np.clip(first, 0, m - 1)], "left")
        end = np.searchsorted(ordered, ordered[np.clip(last, 0, m - 1)], "right")
        bits = np.minimum(np.log2(m / np.maximum(end - first, 1)), _MOST_BITS)
        place = np.empty(m, dtype=np.intp)
        place[order] = np.arange(m)
        return cls(order, place, first, end, np.where(there & (bits >= _LEAST_BITS), bits, 0.0))


def _sets_of(columns: Sequence[_Sharing], person: int, m: int) -> Iterator[tuple[int, ...]]:
    """Sets that one person shares with single rows, of those rows with which most is shared."""
    telling = [(j, c.order[c.first[person] : c.end[person]]) for j, c in enumerate(columns) if c.bits[person]]
    if len(telling) < 2:
        return
    bits = {j: float(columns[j].bits[person]) for j, _ in telling}
    rows = np.concatenate([found for _, found in telling])
    weights = np.repeat(list(bits.values()), [len(found) for _, found in telling])
    told, single = np.bincount(rows, weights, m), float(np.log2(m))
    near = np.flatnonzero(told >= single + _ROOM_PAIR)
    near = near[np.argsort(-told[near], kind="stable")[:_ROWS]]
    for row in near:
        shared = [
            j for j in bits if columns[j].first[person] <= columns[j].place[row] < columns[j].end[person]
        ]
        shared = sorted(shared, key=lambda j: -bits[j])[:_SHARED]
        for size in range(2, min(LARGEST, len(shared)) + 1):
            least = single + (_ROOM_PAIR if size == 2 else _ROOM)
            yield from (s for s in combinations(sorted(shared), size) if sum(bits[j] for j in s) >= least)


def _joined(train: Bools, control: Bools) -> list[int]:
    """Sets joined one by one, each the one that adds most; rows of both are sets, columns people."""
    n, k = train.shape[1], control.shape[1]
    left, free = np.ones(n, dtype=bool), np.ones(k, dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(_CHOSEN, len(train)):
        a, b = train[:, left].sum(axis=1), control[:, free].sum(axis=1)
        s, t = (a + 0.5) / (n + 1), (b + 0.5) / (k + 1)
        gain = a / n - b / k - _CAUTION * np.sqrt(s * (1 - s) / n + t * (1 - t) / k)
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        chosen.append(best)
        left &= ~train[best]
        free &= ~control[best]
    return chosen
