"""Fast whole-number scores that bound Gower's distance, so that few pairs need it computed exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Integers, Positions, Scores
from synth_audit.kernels._boxes import Boxes
from synth_audit.kernels.gpu_scores import TensorScores
from synth_audit.kernels.labels import add_unlike, small_codes, told_apart
from synth_audit.kernels.leaves import Leaves

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
