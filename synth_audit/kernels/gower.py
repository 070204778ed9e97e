"""Gower's distance between records of mixed tables, and exact nearest neighbours by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Floats, Integers, Positions, Scores
from synth_audit.kernels._boxes import Boxes
from synth_audit.kernels._grid import Grid
from synth_audit.kernels._hidden import OwnRow, SamePerson
from synth_audit.kernels.gpu_scores import TensorScores
from synth_audit.kernels.labels import smallest_type
from synth_audit.kernels.leaves import Leaves
from synth_audit.kernels.neighbours import (
    Nearest,
    search,
    search_k,
    search_several,
    worth_leaves,
)
from synth_audit.kernels.repeats import Repeats, abound, copy_number, row_kinds, search_once

MISSING = 1e300
"""A missing number: at no distance from itself, and at least 1 from everything else."""

_QUERIES, _REFERENCES = 16, 2**14
"""Pairs scored at a time, few enough for a processor's cache: of a small reference with more queries."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows of mixed columns, prepared for Gower's distance to other rows of the same preparation.

    Attributes:
        numbers: numeric columns in units of train's range, :data:`MISSING` where missing, shape (n, p).
        labels: shared codes of discrete columns, −1 or more, in the smallest type that holds them, missing a
            code of its own, shape (n, q).
        weights: of p numeric, then q discrete columns; they sum to 1, shape (p + q,).
        whole: the same rows with one column more, whose leaves do for these.
    """

    numbers: Floats
    labels: npt.NDArray[Any]
    weights: Floats
    whole: Mixed | None = None

    @classmethod
    def of(cls, numbers: Floats, labels: npt.NDArray[Any], weights: Floats) -> Self:
        """Rows with weights of any positive sum; where there is no column, every distance is 0."""
        whole = max(float(np.sum(weights)), np.finfo(np.float64).tiny)
        return cls(
            np.ascontiguousarray(numbers, np.float64),
            np.ascontiguousarray(labels, smallest_type(labels)),
            np.asarray(weights, np.float64) / whole,
        )

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def leaves(self) -> Leaves:
        """The rows in leaves that lie close together."""
        return Leaves.of(self.numbers, self.labels, self._apart) if self.whole is None else self.whole.leaves

    def _apart(self, one: Positions, other: Positions) -> Floats:
        numbers = np.minimum(np.abs(self.numbers[one] - self.numbers[other]), 1.0)
        apart: Floats = np.hstack([numbers, self.labels[one] != self.labels[other]]) * self.weights
        return apart

    def take(self, rows: Positions) -> Mixed:
        """The rows at these positions."""
        return Mixed(self.numbers[rows], self.labels[rows], self.weights)

    def followed_by(self, others: Mixed) -> Mixed:
        """These rows, then others of the same preparation."""
        numbers = np.concatenate([self.numbers, others.numbers])
        return Mixed(numbers, np.concatenate([self.labels, others.labels]), self.weights)

    def without(self, column: int) -> Mixed:
        """The same rows without one column, counted through the numeric and then the discrete ones."""
        p = self.numbers.shape[1]
        weights = np.delete(self.weights, column)
        weights = weights / max(weights.sum(), np.finfo(np.float64).tiny)
        if column < p:
            return Mixed(np.delete(self.numbers, column, axis=1), self.labels, weights, self)
        return Mixed(self.numbers, np.delete(self.labels, column - p, axis=1), weights, self)

    def only(self, columns: Positions) -> Mixed:
        """The same rows with these columns alone, counted through the numeric and then the discrete ones."""
        p = self.numbers.shape[1]
        numbers, labels = columns[columns < p], columns[columns >= p] - p
        weights = self.weights[np.concatenate([numbers, labels + p])]
        return Mixed.of(self.numbers[:, numbers], self.labels[:, labels], weights)


def nearest(
    queries: Mixed, reference: Mixed, *, but: int | None = None, place: Positions | None = None
) -> Nearest:
    """Find the nearest reference rows by Gower's distance, exactly.

    A query is never taken for "itself": a row that also stands in the reference is at distance 0. Distances
    are rounded to nine decimals, so that those which are equal in exact arithmetic compare as equal.

    Args:
        queries: n rows; reference: m rows of the same preparation, m ≥ 1.
        but: position of a reference row that is not looked at; then m ≥ 2.
        place: of each reference row in the order in which the first of several nearest ones is chosen, shape
            (m,); its position if left out.
    """
    repeats = Repeats.of(reference.numbers, reference.labels, but, place)
    return search_once(queries, reference, repeats, _GowerPairs.of, but, place)


def nearest_other(table: Mixed, rows: Positions, persons: Integers | None = None) -> Nearest:
    """For the table's rows at these positions, the nearest of its other rows, duplicates included.

    Args:
        persons: number of the person of each row of the table, shape (m,): rows of the same person are not
            looked at then. Infinitely far where there is no other row.
    """
    hidden = OwnRow(rows) if persons is None else SamePerson(persons[rows], persons)
    return search(_GowerPairs.of(table.take(rows), table), hidden)


def nearest_but(queries: Mixed, reference: Mixed, left_out: Integers, persons: Integers) -> Nearest:
    """The nearest reference rows, those of one person left out for each query.

    Args:
        left_out: number of that person, shape (n,). persons: of each reference row, shape (m,).
    """
    return search(_GowerPairs.of(queries, reference), SamePerson(left_out, persons))


def nearest_k(queries: Mixed, reference: Mixed, k: int, place: Positions | None = None) -> Positions:
    """Positions of the k nearest reference rows, in order of distance, ties by position in the reference.

    Args:
        place: of each reference row in the order in which ties are broken instead, shape (m,): a caller that
            must not break them by position draws it at random.

    Returns:
        shape (n, min(k, m)).
    """
    k = min(k, len(reference))
    if not abound(reference.numbers, reference.labels):
        return search_k(_GowerPairs.of(queries, reference), k, place)
    kinds = row_kinds(queries.numbers, queries.labels)
    asked, answer = np.unique(kinds, return_index=True, return_inverse=True)[1:]  # equal ones, equal answers
    return _of_repeats(queries.take(asked), reference, k, place)[answer]


def _of_repeats(queries: Mixed, reference: Mixed, k: int, place: Positions | None) -> Positions:
    """The k nearest rows where many are equal: only the first k of equal ones can be wanted."""
    kinds = row_kinds(reference.numbers, reference.labels)
    kept = np.flatnonzero(copy_number(kinds, place) < k)
    places = None if place is None else place[kept]
    found: Positions = kept[search_k(_GowerPairs.of(queries, reference.take(kept)), k, places)]
    return found


def nearest_without(
    queries: Mixed,
    reference: Mixed,
    left_out: Sequence[Positions],
    *,
    place: Positions | Sequence[Positions] | None = None,
) -> Positions:
    """The nearest reference rows when some columns are left out, for several choices of these, in one search.

    What is nearest without columns of weight u is at most u further off than what is nearest with them: the
    candidates for all choices are those of one search that looks so much further.

    Args:
        queries: n rows, at least one. reference: m ≥ 1 rows. left_out: g choices of columns, by their
            positions as :meth:`Mixed.without` counts them; none is of all columns.
        place: as in :func:`nearest`, or one for each choice.

    Returns:
        Positions in the reference, the first of several, shape (g, n): those that :func:`nearest` tells of
        tables without the columns.
    """
    places = [place] * len(left_out) if place is None or isinstance(place, np.ndarray) else list(place)
    # Different rows come in one order, whichever of equal ones stands for them.
    by_place = {id(p): Repeats.of(reference.numbers, reference.labels, place=p) for p in places}
    repeats = [by_place[id(p)] for p in places]
    different = reference if not repeats or repeats[0] is None else reference.take(repeats[0].first)
    weights = [float(queries.weights[columns].sum()) for columns in left_out]
    space = _GowerPairs.of(queries, different, max(weights, default=0.0))

    def distances(rows: Positions, columns: Positions) -> Iterator[Floats]:
        total = space.apart(rows, columns, range(len(queries.weights)))
        for chosen, weight in zip(left_out, weights, strict=True):
            yield np.round((total - space.apart(rows, columns, chosen)) / (1.0 - weight), 9)

    pairs = list(zip(repeats, places, strict=True))
    found = search_several(space, distances, [p if r is None or p is None else p[r.first] for r, p in pairs])
    return np.array([f if r is None else r.first[f] for r, f in zip(repeats, found, strict=True)])


@dataclass(frozen=True, eq=False)
class _GowerPairs:
    """Queries and a reference, scored on a grid of whole numbers; there it stands in its leaves.

    Attributes:
        further: rows that are so much further away than the nearest are candidates too.
    """

    queries: Mixed
    reference: Mixed
    grid: Grid
    leaves: Leaves | None
    boxes: Boxes | None
    further: float = 0.0

    @classmethod
    def of(cls, mine: Mixed, theirs: Mixed, further: float = 0.0) -> _GowerPairs:
        leaves = theirs.leaves if worth_leaves(len(mine), len(theirs), len(mine.weights)) else None
        order = None if leaves is None else leaves.order  # the rows themselves stay as they are: no copy
        columns = mine.numbers, mine.labels, theirs.numbers, theirs.labels
        grid = Grid.over(*columns, mine.weights, MISSING, order)
        return cls(mine, theirs, grid, leaves, None if leaves is None else grid.boxes(leaves), further)

    @property
    def size(self) -> tuple[int, int]:
        return len(self.queries), len(self.reference)

    @property
    def block(self) -> tuple[int, int]:
        return _QUERIES * max(1, _REFERENCES // len(self.reference)), _REFERENCES

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.grid.dtype

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        self.grid.scores(rows, columns, out)

    def on(self, device: str) -> TensorScores:
        return self.grid.on(device)

    def bounds(self, rows: slice) -> Scores:
        assert self.boxes is not None
        return self.grid.bounds(self.boxes, rows)

    def slack(self, rows: slice | Positions, limit: Floats) -> Floats:
        """Rows as near as one that scores ``limit`` are off by the error, and so is that one."""
        return np.full(len(limit), 2.0 * self.grid.error + self.further * self.grid.steps)

    def distances(self, rows: Positions, columns: Positions) -> Floats:
        """Column by column in float64."""
        return np.asarray(np.round(self.apart(rows, columns, range(len(self.queries.weights))), 9))

    def apart(self, rows: Positions, columns: Positions, chosen: Iterable[int]) -> Floats:
        """What some columns, numbers first, add to the distances of pairs."""
        total = np.zeros(len(rows))
        p = self.queries.numbers.shape[1]
        for j in chosen:
            weight = self.queries.weights[j]
            if j < p:
                apart = np.abs(self.queries.numbers[rows, j] - self.reference.numbers[columns, j])
                total += weight * np.minimum(apart, 1.0)
            else:
                unlike = self.queries.labels[rows, j - p] != self.reference.labels[columns, j - p]
                total += weight * unlike
        return total
