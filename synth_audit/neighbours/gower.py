"""Gower's distance between records of mixed tables, nearest rows, and near copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Positions, Scores
from synth_audit.neighbours import gpu_scores, memory
from synth_audit.neighbours.coordinates import Coordinates, in_steps, smallest_type
from synth_audit.neighbours.leaves import Boxes, Leaves
from synth_audit.neighbours.search import Pairs, answers, different_rows, least, row_kinds

_TIED = 1e-9
"""Distances are rounded to this."""

_LONG = 8.0
"""Beyond this many ranges of train the length of a column is worth shortening."""

_SHORTEST, _FINE = 2**15 - 3, 200
"""The largest number of steps in two bytes, with room for rounding; and how many times the error of a score
they must make of a distance of 1, so that few rows are left to compare exactly."""

_SINGLE = 1e3
"""Longest column, in distances of 1, whose places single precision tells apart well enough."""

NOWHERE = 1e300
"""A missing number: at no distance from itself, and at least 1 from everything else."""

NEAR = 30
"""Two numbers wholly disagree when they differ by 1/30 of the column's range in train, or more."""

OUTSIDE, MISSING_NUMBER = 1e6, 1e9
"""Where values far outside train's range, and missing ones, are put: in agreement only with themselves."""

_APART, _ROUNDING = 4.0, 1e-5
"""Distance between rows whose labels differ, more than what counts as near; rounding of single precision."""


@dataclass(frozen=True, eq=False)
class CappedDifferences:
    """Numbers of queries x and reference y, scored by ``Σ_j min(|x_j − y_j|, cap_j)``.

    Attributes:
        mine, theirs: weighted numbers in steps, shape (p, n) and (p, m).
        caps: the weights in steps; None where no pair can be that far apart, length p.
        steps: in a distance of 1. error: how many steps a score may be off, labels included.
    """

    mine: Scores
    theirs: Scores
    caps: tuple[float | None, ...]
    steps: float
    error: float

    @classmethod
    def of(
        cls, queries: Floats, reference: Floats, weights: Floats, order: Positions | None
    ) -> CappedDifferences:
        """In whole steps of two bytes where these are fine enough, which takes half the time of floats.

        Args:
            weights: of p numbers, then of labels. order: in which the reference rows are put; their own if
                left out.
        """
        n, p = queries.shape
        lines = [_Line.of(x, y) for x, y in zip(queries.T, reference.T, strict=True)]
        spans = weights[:p] * np.array([line.length for line in lines])
        longest = max(1.0, float(spans.max(initial=0.0)))
        # A step for each number, as two places are off by a half, or a cap is; and a half for each label.
        error = float(p + (len(weights) - p) / 2 + 1)
        dtype: np.dtype[Any] = np.dtype(np.int16)
        steps = (_SHORTEST - 4 * error) / longest
        if steps < _FINE * error:
            steps, dtype = 1.0, np.dtype(np.float32 if longest <= _SINGLE else np.float64)
            # Each place is rounded twice, and each sum, which is at most 1, once for each column; gaps that
            # were closed are summed in double precision.
            summed = np.finfo(np.float64).eps * (n + len(reference))
            error = float(np.finfo(dtype).eps * (2 * spans.sum() + len(weights) + 4) + summed * spans.sum())
        units = weights[:p] * steps
        mine, theirs = np.empty((p, n), dtype), np.empty((p, len(reference)), dtype)
        for line, unit, own, others in zip(lines, units, mine, theirs, strict=True):
            scaled = in_steps(line.places() * unit, dtype)
            own[:], others[:] = scaled[:n], scaled[n:] if order is None else scaled[n:][order]
        capped = spans > weights[:p]
        caps = [x if far else None for x, far in zip(in_steps(units, dtype).tolist(), capped, strict=True)]
        return cls(mine, theirs, tuple(caps), steps, error)

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        """Score some queries against reference rows; shape of ``out``."""
        out[:] = 0
        one = np.empty_like(out)
        for mine, theirs, cap in zip(self.mine[:, rows], self.theirs[:, columns], self.caps, strict=True):
            np.subtract(mine[:, None], theirs, out=one)
            np.abs(one, out=one)
            if cap is not None:  # numpy takes four times as long where one number stands for all
                np.minimum(one, np.full(one.shape[1], cap, one.dtype), out=one)
            out += one

    def bounds(self, boxes: Boxes, rows: slice, labels: npt.NDArray[Any]) -> Scores:
        """What no row of each leaf scores less than, shape (leaves, queries)."""

        def added(column: int, apart: Scores) -> Scores:
            cap = self.caps[column]
            np.abs(apart, out=apart)
            return apart if cap is None else np.minimum(apart, apart.dtype.type(cap), out=apart)

        return boxes.bounds(self.mine[:, rows], labels, added)

    def slack(self, rows: slice | Positions, limit: Floats, n_labels: int) -> Floats:
        """Rows as near as one that scores ``limit`` are off by the error, and so is that one."""
        return np.full(len(limit), 2 * self.error + _TIED * self.steps)

    def on(self, device: str) -> gpu_scores.NumberScores:
        """The same scores on another device."""
        return gpu_scores.differences(self.mine, self.theirs, self.caps, device)


@dataclass(frozen=True, eq=False)
class _Line:
    """Numbers of one column on a line from 0 on, every gap of more than 1 closed to 1 where it is long.

    No two that were within 1 change their distance, and no others come nearer than 1. A missing value lies
    1 or more beyond all others.

    Attributes:
        mine, theirs: of the queries and of the reference. least, length: where they begin, and how far they
            reach.
        parts: least number of each part between two gaps, ascending, and its place; None where no gap need
            be closed.
    """

    mine: Floats
    theirs: Floats
    least: float
    length: float
    parts: tuple[Floats, Floats] | None = None

    @classmethod
    def of(cls, mine: Floats, theirs: Floats) -> Self:
        values = np.concatenate([mine, theirs])
        known = values != NOWHERE
        least = values.min(initial=NOWHERE)
        most = values.max(initial=least, where=known)
        length = float(most - least + (not known.all()))
        if length <= _LONG:
            return cls(mine, theirs, least, length)
        values.sort()
        first = np.append(0, np.flatnonzero(np.diff(values) > 1) + 1)
        starts, ends = values[first], values[np.append(first[1:] - 1, len(values) - 1)]
        places = np.append(0.0, np.cumsum(ends - starts + 1))
        return cls(mine, theirs, least, float(places[-1] - 1), (starts, places[:-1]))

    def places(self) -> Floats:
        """Of the queries, then of the reference."""
        values = np.concatenate([self.mine, self.theirs])
        if self.parts is None:
            return np.asarray(np.where(values == NOWHERE, self.length, values - self.least))
        starts, places = self.parts
        part = np.searchsorted(starts, values, "right") - 1
        return np.asarray(values - starts[part] + places[part])


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows of mixed columns, prepared for Gower's distance to other rows of the same preparation.

    Attributes:
        numbers: numeric columns in units of train's range, :data:`NOWHERE` where missing, shape (n, p).
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

    @property
    def unlike(self) -> Floats:
        """What two different labels add to a distance, shape (q,)."""
        return np.asarray(self.weights[self.numbers.shape[1] :])

    def _apart(self, one: Positions, other: Positions) -> Floats:
        numbers = np.minimum(np.abs(self.numbers[one] - self.numbers[other]), 1.0)
        apart: Floats = np.hstack([numbers, self.labels[one] != self.labels[other]]) * self.weights
        return apart

    def beside(self, reference: Mixed, order: Positions | None) -> CappedDifferences:
        """Numbers of these queries and of a reference, whose rows stand in that order."""
        return CappedDifferences.of(self.numbers, reference.numbers, self.weights, order)

    def distances(
        self,
        rows: Positions,
        reference: Mixed,
        columns: Positions,
    ) -> Floats:
        """Exact distances of pairs, rounded so that those equal in exact arithmetic compare as equal."""
        return np.asarray(np.round(self.apart(rows, reference, columns, range(len(self.weights))), 9))

    def apart(self, rows: Positions, reference: Mixed, columns: Positions, chosen: Iterable[int]) -> Floats:
        """What some columns, numbers first, add to the distances of pairs."""
        total, p = np.zeros(len(rows)), self.numbers.shape[1]
        for j in chosen:
            if j < p:
                apart = np.abs(self.numbers[rows, j] - reference.numbers[columns, j])
                total += self.weights[j] * np.minimum(apart, 1.0)
            else:
                unlike = self.labels[rows, j - p] != reference.labels[columns, j - p]
                total += self.weights[j] * unlike
        return total

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
    by_place = {id(p): different_rows(reference, place=p) for p in places}
    kept = [None if (once := by_place[id(p)]) is None else once[0] for p in places]
    different = reference if not kept or kept[0] is None else reference.take(kept[0])
    weights = [float(queries.weights[columns].sum()) for columns in left_out]
    pairs = Pairs(queries, different, max(weights, default=0.0))

    def answer(block: slice, row: Positions, column: Positions) -> Positions:
        rows, n = row + block.start, block.stop - block.start
        total = queries.apart(rows, different, column, range(len(queries.weights)))
        found = []
        for chosen, weight, p, of_kind in zip(left_out, weights, places, kept, strict=True):
            apart = total - queries.apart(rows, different, column, chosen)
            distance = np.round(apart / (1.0 - weight), 9)
            found.append(
                least(row, column, distance, n, p if p is None or of_kind is None else p[of_kind])[1]
            )
        return np.array(found)

    found = np.concatenate(answers(pairs, 1, answer), axis=1)
    return np.array([f if rows is None else rows[f] for rows, f in zip(kept, found, strict=True)])


def nearly_copied(queries: Coordinates, reference: Coordinates) -> Bools:
    """Whether some reference row agrees with a query in every label and, nearly, in every number, shape (n,).

    Numbers are in units of what counts as near, 1/30 of the column's range in train. Missing agrees with
    missing only. All labels together are one more coordinate in which different rows are too far apart, so
    that a tree under the largest difference of coordinates answers exactly; block by block of the reference,
    of which only rows with the labels of some query get into a tree.
    """
    found = np.zeros(len(queries), dtype=np.bool_)
    for start in range(0, len(reference), memory.TREE):
        asked = np.flatnonzero(~found)
        block = reference.take(np.arange(start, min(start + memory.TREE, len(reference))))
        found[asked] = _near_some(queries.take(asked), block)
    return found


def _near_some(queries: Coordinates, reference: Coordinates) -> Bools:
    from scipy.spatial import cKDTree  # here, since a code location must not load it

    groups = row_kinds(np.concatenate([queries.labels, reference.labels]))
    asked, known = np.split(groups, [len(queries)])
    met = np.isin(known, asked)
    if not met.any():
        return np.zeros(len(queries), dtype=np.bool_)
    # Neither balanced nor compact: many equal rows would make either costly.
    tree = cKDTree(
        np.column_stack([reference.numbers[met], known[met] * _APART]),
        balanced_tree=False,
        compact_nodes=False,
    )
    places = np.column_stack([queries.numbers, asked * _APART])
    distance, _ = tree.query(places, p=np.inf, distance_upper_bound=1 + _ROUNDING)
    return np.asarray(np.isfinite(distance))
