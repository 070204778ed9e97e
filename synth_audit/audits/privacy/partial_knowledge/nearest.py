"""The rows of a release that are nearest to people on a few columns, and what they agree on; arrays only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Floats, Integers, Positions

MOST_VOTES = 256
"""A claim that rests on more rows would say what is true of a group."""

_MOST_TIED = 3
"""Times the share of control that is near enough, beyond which those tied at the last place are not."""

_SPACE = 1e4
"""Distance between groups of rows whose labels differ, in a search that only looks half as far."""

_WIDEST = 2**62
"""Combined codes stay below this, so that they fit 64 bits."""
_MOST_GROUPS = 2**32
"""Combined labels stay below this, so that their distance is exact as a float."""
_SAME = 1e-9
"""Distances that differ by less are tied."""


@dataclass(frozen=True, eq=False)
class NearestRows:
    """Rows of the release nearest to each person, equal ones as one combination of cells.

    Attributes:
        order: rows of the release, equal ones side by side, shape (m,).
        starts: where in ``order`` each combination begins, and m; shape (combinations + 1,).
        found: up to three combinations that are equally near, −1 for none, shape (people, 3).
        distance: sum of what numbers differ by; infinite where no row has the labels, shape (people,).
    """

    order: Positions
    starts: Positions
    found: Positions
    distance: Floats

    @classmethod
    def of(
        cls,
        labels: Sequence[npt.NDArray[Any]],
        ranks: Sequence[npt.NDArray[Any]],
        levels: Sequence[Floats],
        n_release: int,
    ) -> Self:
        """Look people up who follow the release in every array.

        Args:
            labels: one array of shape (n,) per label that must be equal, each 0 … k−1, in whatever type.
            ranks: one array of shape (n,) for each number, likewise. levels: the number of each rank.
            n_release: m, the first rows.
        """
        n, m = len((*labels, *ranks)[0]), n_release
        groups = combined(labels, n, _MOST_GROUPS)
        cells = combined([groups, *ranks], n, _WIDEST)
        order = np.argsort(cells[:m])
        ordered = cells[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
        if ranks:
            first, asked = (
                np.column_stack(
                    [*(x[r[rows]] for x, r in zip(levels, ranks, strict=True)), groups[rows] * _SPACE]
                )
                for rows in (order[starts], slice(m, None))
            )
            found, distance = _in_tree(first, asked)
        else:
            found, distance = _equal(ordered[starts], cells[m:])
        return cls(order, np.append(starts, m), found, distance)

    @cached_property
    def sizes(self) -> Positions:
        """Rows of each combination."""
        sizes: Positions = np.diff(self.starts)
        return sizes

    @cached_property
    def crowd(self) -> Integers:
        """Rows at the least distance, shape (people,); more than any if these are of three combinations or
        more, or if there is none."""
        crowd = np.append(self.sizes, 0)[self.found].sum(axis=1)
        unclear = (self.found[:, 2] >= 0) | (self.found[:, 0] < 0)
        return np.where(unclear, len(self.order) + 1, crowd)

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
        able = np.isfinite(self.distance) & (self.crowd <= min(MOST_VOTES, len(self.order)))
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
        sizes, begins = (x[used[used >= 0]] for x in (self.sizes, self.starts[:-1]))
        starts = np.cumsum(sizes) - sizes
        rows = self.order[np.repeat(begins - starts, sizes) + np.arange(int(sizes.sum()))]
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


def _equal(combinations: Codes, asked: Codes) -> tuple[Positions, Floats]:
    """The combination, of ascending ones, that is each person's."""
    place = np.minimum(np.searchsorted(combinations, asked), len(combinations) - 1)
    there = combinations[place] == asked
    found = np.full((len(asked), 3), -1, dtype=np.intp)
    found[there, 0] = place[there]
    return found, np.where(there, 0.0, np.inf)


def _in_tree(first: Floats, asked: Floats) -> tuple[Positions, Floats]:
    """The combinations nearest to each person, by a row of each."""
    from scipy.spatial import cKDTree  # here, since a code location must not load it

    tree = cKDTree(first, balanced_tree=False, compact_nodes=False)
    distance, found = tree.query(asked, k=3, p=1, distance_upper_bound=_SPACE / 2)
    near = (distance <= distance[:, :1] + _SAME) & np.isfinite(distance)
    return np.where(near, found, -1), distance[:, 0]
