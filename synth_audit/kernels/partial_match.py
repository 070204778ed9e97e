"""The rows of a release nearest to people on a few columns, and what these rows say of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes, Floats, Integers, Positions

MOST_VOTES = 256
"""A claim that rests on more rows would say what is true of a group."""

_MOST_TIED = 3
"""Times the share of control that is near enough, beyond which those tied at the last place are not."""

_SPACE = 1e4
"""Distance between groups of rows whose labels differ, in a search that only looks half as far."""

_WIDEST = 2**62
_MOST_GROUPS = 2**32
_SAME = 1e-9
"""Distances that differ by less are tied."""


@dataclass(frozen=True, eq=False)
class KnownCells:
    """Cells of some columns, those of the release in the first rows.

    Attributes:
        labels: one array of shape (n,) per label that must be equal, each 0 … k−1, in whatever type; at least
            one.
        ranks: one array of shape (n,) for each number, likewise. levels: the number of each rank.
        n_release: m.
    """

    labels: Sequence[npt.NDArray[Any]]
    ranks: Sequence[npt.NDArray[Any]]
    levels: Sequence[Floats]
    n_release: int

    def matches(self) -> NearestCombinations:
        """The nearest rows of the release of every other row."""
        n, m = len((*self.labels, *self.ranks)[0]), self.n_release
        groups = combined(self.labels, n, _MOST_GROUPS)
        cells = combined([groups, *self.ranks], n, _WIDEST)
        combinations = _Combinations.of(cells[:m])
        if not self.ranks:
            found, distance = _equal(combinations, cells[m:])
        elif len(self.ranks) == 1:
            found, distance = self._beside(combinations, cells[m:], groups)
        else:
            found, distance = self._in_tree(combinations, groups)
        return NearestCombinations(combinations, found, distance)

    def _numbers(self, rows: Positions | slice) -> Iterator[Floats]:
        """Each number of some rows."""
        return (level[rank[rows]] for level, rank in zip(self.levels, self.ranks, strict=True))

    def _beside(self, combinations: _Combinations, asked: Codes, groups: Codes) -> tuple[Positions, Floats]:
        """With one number the nearest row stands beside the place where the person would stand."""
        rows, m = combinations.first_rows, self.n_release
        [numbers] = self._numbers(slice(m, None))
        place = np.searchsorted(combinations.cells, asked)
        distance = np.full((len(place), 2), np.inf)
        sides = np.stack([place - 1, place], axis=1)
        for i in range(2):
            row = rows[np.clip(sides[:, i], 0, len(rows) - 1)]
            inside = (sides[:, i] >= 0) & (sides[:, i] < len(rows)) & (groups[row] == groups[m:])
            [others] = self._numbers(row)
            distance[inside, i] = np.abs(others - numbers)[inside]
        least = distance.min(axis=1)
        near = (distance <= least[:, None] + _SAME) & np.isfinite(distance)
        found = np.where(near, sides, -1)
        found = np.where(found[:, :1] < 0, found[:, ::-1], found)
        return np.column_stack([found, np.full(len(found), -1)]), least

    def _in_tree(self, combinations: _Combinations, groups: Codes) -> tuple[Positions, Floats]:
        from scipy.spatial import cKDTree  # here, since a code location must not load it

        first, asked = (
            np.column_stack([*self._numbers(rows), groups[rows] * _SPACE])
            for rows in (combinations.first_rows, slice(self.n_release, None))
        )
        tree = cKDTree(first, balanced_tree=False, compact_nodes=False)
        distance, found = tree.query(asked, k=3, p=1, distance_upper_bound=_SPACE / 2)
        near = (distance <= distance[:, :1] + _SAME) & np.isfinite(distance)
        return np.where(near, found, -1), distance[:, 0]


@dataclass(frozen=True, eq=False)
class _Combinations:
    """The different combinations of cells in the release.

    Attributes:
        order: its rows, equal ones side by side, shape (m,).
        starts: where in ``order`` each combination begins, and m; shape (combinations + 1,).
        cells: each combination, ascending.
    """

    order: Positions
    starts: Positions
    cells: Codes

    @classmethod
    def of(cls, cells: Codes) -> Self:
        order = np.argsort(cells)
        ordered = cells[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
        return cls(order, np.append(starts, len(cells)), ordered[starts])

    @property
    def first_rows(self) -> Positions:
        """A row of each."""
        return self.order[self.starts[:-1]]

    @cached_property
    def sizes(self) -> Positions:
        """Rows of each."""
        sizes: Positions = np.diff(self.starts)
        return sizes


@dataclass(frozen=True, eq=False)
class NearestCombinations:
    """The nearest combinations of each person.

    Attributes:
        found: up to three that are equally near, −1 for none, shape (people, 3).
        distance: sum of what numbers differ by; infinite where no row has the labels, shape (people,).
    """

    combinations: _Combinations
    found: Positions
    distance: Floats

    @cached_property
    def crowd(self) -> Integers:
        """Rows at the least distance, shape (people,); more than any if these are of three combinations or
        more, or if there is none."""
        sizes = np.append(self.combinations.sizes, 0)
        crowd = sizes[self.found].sum(axis=1)
        unclear = (self.found[:, 2] >= 0) | (self.found[:, 0] < 0)
        return np.where(unclear, len(self.combinations.order) + 1, crowd)

    def claimed(self, control: Bools, share: float) -> Bools:
        """People as near, and with as few rows as near, as the ``share`` of control that is nearest.

        Where many are tied there, so that three times as many of control would be, only those before them.

        Args:
            control: which of the people are control's, shape (people,).
        """
        where = np.flatnonzero(control)
        order = np.lexsort((self.crowd[where], self.distance[where]))
        last = where[order[max(0, int(np.ceil(share * len(where))) - 1)]]
        level = self.distance == self.distance[last]
        before = (self.distance < self.distance[last]) | (level & (self.crowd < self.crowd[last]))
        tied = level & (self.crowd == self.crowd[last])
        most = min(MOST_VOTES, len(self.combinations.order))
        able = np.isfinite(self.distance) & (self.crowd <= most)
        if (able & (before | tied))[where].sum() <= _MOST_TIED * share * len(where):
            before |= tied
        kept: Bools = able & before
        return kept

    @property
    def equal(self) -> Bools:
        """People who have equal rows, and not too many for a claim, shape (people,)."""
        equal: Bools = (self.distance == 0.0) & (self.crowd <= MOST_VOTES)
        return equal

    def guesses(self, people: Positions, secrets: Callable[[Positions], Floats], tolerance: float) -> Floats:
        """What all nearest rows of each person agree on, NaN where they do not; shape (people, secrets).

        Args:
            people: whose nearest rows are one or two combinations.
            secrets: cells of the release in r of its rows, none NaN, shape (r, secrets).
        """
        used, place = np.unique(self.found[people, :2], return_inverse=True)
        place = place.reshape(len(people), 2)
        rows, starts = _rows_of(self.combinations, used[used >= 0])
        cells = secrets(rows)
        low, high = (
            f.reduceat(cells, starts, axis=0) if len(rows) else cells for f in (np.minimum, np.maximum)
        )
        if len(used) and used[0] < 0:  # none votes for nothing
            low = np.vstack([np.full((1, low.shape[1]), np.inf), low])
            high = np.vstack([np.full((1, high.shape[1]), -np.inf), high])
        least = np.minimum(low[place[:, 0]], low[place[:, 1]])
        most = np.maximum(high[place[:, 0]], high[place[:, 1]])
        return np.where(most - least <= tolerance, least + (most - least) / 2, np.nan)


def combined(codes: Sequence[npt.NDArray[Any]], n: int, most: int) -> Codes:
    """One code for each combination of codes, equal for equal ones, below ``most``; shape (n,).

    The order is that of the last code within the others.
    """
    total, size = np.zeros(n, dtype=np.int64), 1
    for code in codes:
        k = int(code.max(initial=0)) + 1
        if size * k >= most:
            total = np.unique(total, return_inverse=True)[1].astype(np.int64)
            size = int(total.max(initial=0)) + 1
        total, size = total * k + code, size * k
    if size >= most:
        total = np.unique(total, return_inverse=True)[1].astype(np.int64)
    return total


def _equal(combinations: _Combinations, asked: Codes) -> tuple[Positions, Floats]:
    place = np.minimum(np.searchsorted(combinations.cells, asked), len(combinations.cells) - 1)
    there = combinations.cells[place] == asked
    found = np.full((len(asked), 3), -1, dtype=np.intp)
    found[there, 0] = place[there]
    return found, np.where(there, 0.0, np.inf)


def _rows_of(combinations: _Combinations, used: Positions) -> tuple[Positions, Positions]:
    """Rows of some combinations, one after the other, and where each begins."""
    sizes = combinations.sizes[used]
    starts = np.cumsum(sizes) - sizes
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    return combinations.order[np.repeat(combinations.starts[used], sizes) + inside], starts
