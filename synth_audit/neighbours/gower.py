"""Gower's distance between records of mixed tables, nearest rows, and near copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Floats32, Integers, Positions, Scores
from synth_audit.neighbours import memory
from synth_audit.neighbours.coordinates import (
    Boxes,
    add_unlike,
    side_by_side,
    small_codes,
    smallest_type,
    told_apart,
)
from synth_audit.neighbours.gpu_scores import TensorScores
from synth_audit.neighbours.repeats import Repeats, abound, copy_number, row_kinds, search_once
from synth_audit.neighbours.search import (
    Hidden,
    Leaves,
    Nearest,
    search,
    search_nearest_k,
    search_several,
    worth_leaves,
)

_LONG = 8.0
"""Beyond this many ranges of train the length of a column is worth shortening."""

_FINE = 2**24
"""Steps per unit of distance where there is room for them."""

_SHORT, _SHORTEST = np.dtype(np.int16), 2**15 - 3
"""The smallest type and the largest number that goes into it, with room for rounding."""

_TOGETHER = (16, 32, 64, 128)
"""Columns whose sums shall fit into the smallest type, where those of all columns do not: as few as leave
most columns short enough for it."""

_MOST_SHORT = 0.75
"""Share of the columns that are short enough where it is worth while."""

MISSING = 1e300
"""A missing number: at no distance from itself, and at least 1 from everything else."""

NEAR = 30
"""Two numbers wholly disagree when they differ by 1/30 of the column's range in train, or more."""

FAR, MISSING_NUMBER = 1e6, 1e9
"""Where values far outside train's range, and missing ones, are put: in agreement only with themselves."""

_BLOCK = 2**17
"""Rows of the reference that are in a tree at a time."""

_APART, _ROUNDING = 4.0, 1e-5
"""Distance between rows whose labels differ, more than what counts as near; rounding of single precision."""


@dataclass(frozen=True, eq=False)
class GridColumns:
    """Numbers of queries and a reference on the grid, in one type.

    Attributes:
        queries, reference: coordinates, shape (p, n) and (p, m).
        caps: most that each may add; None where no pair can be that far apart, length p.
        together: neighbouring columns whose sums fit into the type.
    """

    queries: Scores
    reference: Scores
    caps: tuple[int | None, ...]
    together: tuple[slice, ...]

    def add(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        """Add what pairs of rows are apart, in steps, shape of ``out``; through sums in the own, smaller type
        where that of ``out`` is another."""
        queries, reference = self.queries[:, rows], self.reference[:, columns]
        one = np.empty(out.shape, reference.dtype)
        own = out if out.dtype == one.dtype else np.empty_like(one)
        most = np.zeros(out.shape[1], one.dtype)  # a scalar takes longer
        for block in self.together:
            if own is not out:
                own[:] = 0
            for mine, theirs, cap in zip(queries[block], reference[block], self.caps[block], strict=True):
                np.subtract(mine[:, None], theirs, out=one)
                np.abs(one, out=one)
                if cap is not None:
                    if cap != most[0]:
                        most[:] = cap
                    np.minimum(one, most, out=one)
                own += one
            if own is not out:
                out += own


@dataclass(frozen=True, eq=False)
class Grid:
    """Queries and a reference on one grid of whole numbers.

    The score of a pair is ``Σ_j min(|x_j − y_j|, cap_j) + Σ_l w_l [a_l ≠ b_l]`` on coordinates rounded to
    whole steps, so it differs from the distance, in steps, by at most ``error``: 1 for each number (two
    coordinates, each off by ½; a cap is off by ½), ½ for each label, and 1 for all rounding of floats. Whole
    numbers add up alike in any order, on any number of threads.

    Attributes:
        numbers: the numeric columns, those of one type together.
        query_labels, reference_labels: of the columns in which rows differ, shape (q, n) and (q, m).
        label_steps: what each unlike label adds, length q.
        dtype: of the scores.
        steps: of the grid in a distance of 1.
        error: how many steps a score may be off.
    """

    numbers: tuple[GridColumns, ...]
    query_labels: npt.NDArray[Any]
    reference_labels: npt.NDArray[Any]
    label_steps: tuple[int, ...]
    dtype: np.dtype[Any]
    steps: float
    error: int

    @classmethod
    def over(
        cls,
        numbers: Floats,
        labels: Integers,
        other_numbers: Floats,
        other_labels: Integers,
        weights: Floats,
        missing: float,
        order: Positions | None = None,
    ) -> Grid:
        """Lay a grid over queries, shape (n, p) and (n, q), and the reference, shape (m, p) and (m, q).

        Args:
            weights: shape (p + q,), summing to at most 1. missing: the number that stands for none.
            order: positions of the reference rows in the order in which they are put; their own if left out.
        """
        p, q = numbers.shape[1], labels.shape[1]
        placed = [_placed(numbers[:, j], other_numbers[:, j], missing) for j in range(p)]
        spans = np.array([max(a.max(initial=0.0), b.max(initial=0.0)) for a, b in placed])
        error = p + -(-q // 2) + 1
        dtype, steps, short = _fitting(spans, weights[:p], error)
        units = weights * steps
        groups = []
        for own, chosen in ((_SHORT, np.flatnonzero(short)), (dtype, np.flatnonzero(~short))):
            if len(chosen):
                of_group = [placed[j] for j in chosen]
                groups.append(
                    _on_grid(of_group, spans[chosen], units[chosen], own, order, apart=own != dtype)
                )
        told = told_apart(labels, other_labels)
        mine_labels, their_labels = small_codes(labels[:, told], other_labels[:, told])
        # Not by a mask of the second axis, which leaves each column scattered through memory.
        their_labels = their_labels if order is None else np.take(their_labels, order, axis=1)
        of_labels = tuple(np.rint(units[p:][told]).astype(np.int64).tolist())
        return cls(tuple(groups), mine_labels, their_labels, of_labels, dtype, steps, error)

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        """Score some queries against a block of the reference, shape (b, t) of ``out``."""
        out[:] = 0
        for group in self.numbers:
            group.add(rows, columns, out)
        labels = self.query_labels[:, rows], self.reference_labels[:, columns]
        add_unlike(out, self.label_steps, *labels)

    def on(self, device: str) -> TensorScores:
        """The same scores on another device."""
        labels = self.query_labels, self.reference_labels
        sides = [[g.queries for g in self.numbers], [g.reference for g in self.numbers]]
        nothing = [np.empty((0, codes.shape[1])) for codes in labels]
        mine, theirs = (
            np.concatenate([none, *side]).astype(self.dtype)
            for none, side in zip(nothing, sides, strict=True)
        )
        return TensorScores.differences((mine, theirs), self._caps, labels, self.label_steps, device)

    def boxes(self, leaves: Leaves) -> Boxes:
        """Boxes of the leaves, in whose order the reference stands."""
        steps = np.array(self.label_steps, dtype=np.float64)
        reference = [row for group in self.numbers for row in group.reference]
        return Boxes.of(reference, self.reference_labels, steps, leaves, self.dtype)

    def bounds(self, boxes: Boxes, rows: slice) -> Scores:
        """What no row of each leaf scores less than, shape (b, leaves)."""
        queries = [row[rows] for group in self.numbers for row in group.queries]
        return boxes.bounds(queries, self.query_labels[:, rows], self._added)

    @cached_property
    def _caps(self) -> tuple[int | None, ...]:
        return tuple(cap for group in self.numbers for cap in group.caps)

    def _added(self, column: int, apart: Scores) -> Scores:
        cap = self._caps[column]
        np.abs(apart, out=apart)
        return apart if cap is None else np.minimum(apart, apart.dtype.type(cap), out=apart)


def _on_grid(
    placed: Sequence[tuple[Floats, Floats]],
    spans: Floats,
    units: Floats,
    dtype: np.dtype[Any],
    order: Positions | None,
    *,
    apart: bool,
) -> GridColumns:
    """Columns in steps, so many to each unit of distance.

    Args:
        apart: whether sums of all of them may be too large for the type.
    """
    mine, theirs = (np.empty((len(placed), len(side)), dtype) for side in placed[0])
    for j, (unit, (own, others)) in enumerate(zip(units, placed, strict=True)):
        mine[j] = np.rint(own * unit)
        put = others if order is None else others[order]
        theirs[j] = np.rint(put * unit)
    steps = np.rint(units).astype(np.int64).tolist()
    caps = tuple(step if span > 1 else None for step, span in zip(steps, spans, strict=True))
    most = np.ceil(units * np.minimum(spans, 1.0)) + 1
    together = tuple(_fitting_together(most)) if apart else (slice(0, len(placed)),)
    return GridColumns(mine, theirs, caps, together)


def _fitting_together(most: Floats) -> Iterator[slice]:
    """Neighbouring columns, of which each adds so much at most, whose sums fit into the smallest type."""
    start, total = 0, 0.0
    for j, step in enumerate(most):
        if total + step > _SHORTEST:
            yield slice(start, j)
            start, total = j, 0.0
        total += step
    yield slice(start, len(most))


def _placed(mine: Floats, theirs: Floats, missing: float) -> tuple[Floats, Floats]:
    """Two sets of values of one column moved to begin at 0 with no needless length; distances up to 1 stay.

    What lies more than 1 beyond all values of the other side is drawn to 1 beyond; where both sides reach
    far, every gap of more than 1 is closed to 1; missing values are put 1 above all others.
    """
    known, others = mine < missing, theirs < missing
    mine = _near(mine, known, theirs[others])
    theirs = _near(theirs, others, mine[known])
    both = np.concatenate([mine[known], theirs[others]])
    if not len(both):
        return np.zeros(len(mine)), np.zeros(len(theirs))
    moved = both - both.min() if both.max() - both.min() <= _LONG else _gaps_closed(both)
    top, n = moved.max() + 1, int(known.sum())
    placed, other_placed = np.full(len(mine), top), np.full(len(theirs), top)
    placed[known], other_placed[others] = moved[:n], moved[n:]
    return placed, other_placed


def _gaps_closed(values: Floats) -> Floats:
    """Values moved together where nothing lies between them: no two that were within 1 change distance."""
    ordered, place = np.unique(values, return_inverse=True)
    steps = np.minimum(np.diff(ordered), 1.0)
    return np.concatenate([[0.0], np.cumsum(steps)])[place]


def _near(values: Floats, known: Bools, others: Floats) -> Floats:
    if not len(others):
        return np.where(known, 0.0, values)
    least, most = others.min(), others.max()
    # Beyond 2**53 a number less 1 may be that number: the next one is further away than 1.
    low, high = min(least - 1, np.nextafter(least, -np.inf)), max(most + 1, np.nextafter(most, np.inf))
    return np.where(known, np.clip(values, low, high), values)


def _fitting(spans: Floats, weights: Floats, error: int) -> tuple[np.dtype[Any], float, Bools]:
    """Type of the scores, how many steps make a distance of 1, and which columns go into the smallest type.

    The smallest type whose steps are fine enough for all sums and differences, with room for the error and
    for one value more. Where that is not the smallest, as with many columns, most of them are kept in it all
    the same and summed a few at a time, if they are short: several times as fast, in coarser steps.
    """
    lengths = weights * spans
    longest = max(1.0, float(lengths.max(initial=0.0)))
    steps = min(2**15, (_SHORTEST - 4 * error) / longest)
    if steps >= 500 * error:
        return _SHORT, float(steps), np.ones(len(spans), dtype=np.bool_)
    room = np.iinfo(np.int32).max - 4 * error - 2
    added = float((weights * np.minimum(spans, 1.0)).max(initial=0.0))
    for together in _TOGETHER if added > 0 else ():
        steps = min(_FINE, _SHORTEST / (together * added))
        short: Bools = lengths * steps <= _SHORTEST
        if 250 * error <= steps <= room / longest and short.mean() >= _MOST_SHORT:
            return np.dtype(np.int32), float(steps), short
    none = np.zeros(len(spans), dtype=np.bool_)
    steps = min(_FINE, room / longest)
    if steps >= min(2**16 * error, _FINE):
        return np.dtype(np.int32), float(steps), none
    return np.dtype(np.float64), float(_FINE), none


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
    return search(_GowerPairs.of(table.take(rows), table), Hidden.own(rows, persons))


def nearest_but(queries: Mixed, reference: Mixed, left_out: Integers, persons: Integers) -> Nearest:
    """The nearest reference rows, those of one person left out for each query.

    Args:
        left_out: number of that person, shape (n,). persons: of each reference row, shape (m,).
    """
    return search(_GowerPairs.of(queries, reference), Hidden(left_out, persons))


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
        return search_nearest_k(_GowerPairs.of(queries, reference), k, place=place).index
    kinds = row_kinds(queries.numbers, queries.labels)
    asked, answer = np.unique(kinds, return_index=True, return_inverse=True)[1:]  # equal ones, equal answers
    # Of equal reference rows only the first k can be wanted.
    kept = np.flatnonzero(copy_number(row_kinds(reference.numbers, reference.labels), place) < k)
    places = None if place is None else place[kept]
    space = _GowerPairs.of(queries.take(asked), reference.take(kept))
    found: Positions = kept[search_nearest_k(space, k, place=places).index]
    return found[answer]


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
        tile = min(len(self.reference), memory.TILE)
        return max(1, 2 * memory.CACHE // tile), tile  # scores of two bytes each, as most are

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


@dataclass(frozen=True, eq=False)
class MixedCells:
    """Rows prepared for comparison with other rows of the same preparation.

    Attributes:
        numbers: numeric columns in units of what counts as near, shape (n, p).
        labels: shared codes of discrete columns, in a type that holds them, shape (n, q).
    """

    numbers: Floats32
    labels: npt.NDArray[Any]

    @classmethod
    def of(cls, n: int, numbers: Sequence[Floats32], labels: Sequence[npt.NDArray[Any]]) -> Self:
        """Rows of one table from columns of shape (n,)."""
        dense = np.empty((n, len(numbers)), np.float32)
        for j, column in enumerate(numbers):
            dense[:, j] = column
        return cls(dense, side_by_side(labels, n))

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Positions) -> MixedCells:
        """The rows at these positions."""
        return MixedCells(self.numbers[rows], self.labels[rows])


def nearly_copied(queries: MixedCells, reference: MixedCells) -> Bools:
    """Whether some reference row agrees with a query in every label and, nearly, in every number, shape (n,).

    Nearly is within 1/30 of the column's range in train. Missing agrees with missing only. All labels
    together are one more coordinate in which different rows are too far apart, so that a tree under the
    largest difference of coordinates answers exactly; block by block of the reference, of which only rows
    with the labels of some query get into a tree.
    """
    found = np.zeros(len(queries), dtype=np.bool_)
    for start in range(0, len(reference), _BLOCK):
        asked = np.flatnonzero(~found)
        block = reference.take(np.arange(start, min(start + _BLOCK, len(reference))))
        found[asked] = _near_some(queries.take(asked), block)
    return found


def _near_some(queries: MixedCells, reference: MixedCells) -> Bools:
    from scipy.spatial import cKDTree  # here, since a code location must not load it

    groups = row_kinds(np.concatenate([queries.labels, reference.labels]))
    asked, known = np.split(groups, [len(queries)])
    met = np.isin(known, asked)
    if not met.any():
        return np.zeros(len(queries), dtype=np.bool_)
    # Neither balanced nor compact: many equal rows would make either costly.
    tree = cKDTree(
        np.column_stack([reference.numbers[met].astype(np.float64), known[met] * _APART]),
        balanced_tree=False,
        compact_nodes=False,
    )
    places = np.column_stack([queries.numbers.astype(np.float64), asked * _APART])
    distance, _ = tree.query(places, p=np.inf, distance_upper_bound=1 + _ROUNDING)
    return np.asarray(np.isfinite(distance))
