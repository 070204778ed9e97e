"""Fast whole-number scores that bound Gower's distance, so that few pairs need it computed exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Counts8, Floats, Integers, Positions

Scores = npt.NDArray[Any]  # int16, int32 or float64, whichever holds the values

_GROUP = 64
"""Scores of which only the least is kept when the k-th smallest is bounded."""

_LONG = 8.0
"""Beyond this many ranges of train the length of a column is worth shortening."""

_FINE = 2**24
"""Steps per unit of distance where there is room for them."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Queries and a reference on one grid of whole numbers.

    The score of a pair is ``Σ_j min(|x_j − y_j|, cap_j) + Σ_l w_l [a_l ≠ b_l]`` on coordinates rounded to
    whole steps, so it differs from the distance, in steps, by at most ``error``: 1 for each number (two
    coordinates, each off by ½; a cap is off by ½), ½ for each label, and 1 for all rounding of floats. Whole
    numbers add up alike in any order, on any number of threads.

    Attributes:
        queries, reference: coordinates, shape (p, n) and (p, m).
        query_labels, reference_labels: shape (q, n) and (q, m).
        caps: most that each number may add; None where no pair can be that far apart, length p.
        label_steps: what each unlike label adds, length q.
        steps: of the grid in a distance of 1.
        error: how many steps a score may be off.
    """

    queries: Scores
    reference: Scores
    query_labels: npt.NDArray[Any]
    reference_labels: npt.NDArray[Any]
    caps: tuple[int | None, ...]
    label_steps: tuple[int, ...]
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
    ) -> Grid:
        """Lay a grid over queries, shape (n, p) and (n, q), and the reference, shape (m, p) and (m, q).

        Args:
            weights: shape (p + q,), summing to at most 1. missing: the number that stands for none.
        """
        p, q = numbers.shape[1], labels.shape[1]
        placed = [_placed(numbers[:, j], other_numbers[:, j], missing) for j in range(p)]
        spans = [max(a.max(initial=0.0), b.max(initial=0.0)) for a, b in placed]
        error = p + -(-q // 2) + 1
        dtype, steps = _fitting(spans, weights[:p], error)
        mine, theirs = np.empty((p, len(numbers)), dtype), np.empty((p, len(other_numbers)), dtype)
        for j, (a, b) in enumerate(placed):
            mine[j], theirs[j] = np.rint(a * (weights[j] * steps)), np.rint(b * (weights[j] * steps))
        units = np.rint(weights * steps).astype(np.int64).tolist()
        small = _label_type(labels, other_labels)
        return cls(
            mine,
            theirs,
            (labels.T + 1).astype(small, order="C"),
            (other_labels.T + 1).astype(small, order="C"),
            tuple(unit if span > 1 else None for unit, span in zip(units[:p], spans, strict=True)),
            tuple(units[p:]),
            steps,
            error,
        )

    def candidates(self, block: slice, k: int, own: Positions | None = None) -> tuple[Positions, Positions]:
        """Every reference row that may be among the k nearest of a query, or tied with one of them.

        Args:
            own: position in the reference of a row to leave out for each query of the block.

        Returns:
            Row within the block and position in the reference of each pair, ascending, row by row.
        """
        scores = self._scores(block)
        most = _largest(scores.dtype)
        if own is not None:
            scores[np.arange(len(scores)), own] = most
        # At least k rows are as near as limit + error, and whatever is that near scores limit + 2 error.
        limit = np.minimum(_upper_bound(scores, k).astype(np.float64) + 2 * self.error, most - 1)
        found = np.flatnonzero(scores <= limit.astype(scores.dtype)[:, None])
        row, column = np.divmod(found, scores.shape[1])
        return row, column

    def _scores(self, block: slice) -> Scores:
        """Scores of a block of queries against the whole reference, shape (b, m)."""
        shape = (block.stop - block.start, self.reference.shape[1])
        dtype = self.reference.dtype
        total, one = np.zeros(shape, dtype), np.empty(shape, dtype)
        for mine, theirs, cap in zip(self.queries[:, block], self.reference, self.caps, strict=True):
            np.subtract(mine[:, None], theirs, out=one)
            np.abs(one, out=one)
            if cap is not None:
                np.minimum(one, np.full(shape[1], cap, dtype), out=one)  # a row is faster than a scalar
            total += one
        for steps, unlike in self._unlike(block, shape):
            np.multiply(unlike, dtype.type(steps), out=one)
            total += one
        return total

    def _unlike(self, block: slice, shape: tuple[int, int]) -> Iterator[tuple[int, Counts8]]:
        """Numbers of unlike labels among columns that count alike, with what each counts."""
        for steps in dict.fromkeys(self.label_steps):
            columns = [j for j, other in enumerate(self.label_steps) if other == steps]
            for first in range(0, len(columns), 255):  # as many as a byte can count
                count, differs = np.zeros(shape, np.uint8), np.empty(shape, np.bool_)
                for j in columns[first : first + 255]:
                    mine, theirs = self.query_labels[j, block], self.reference_labels[j]
                    np.not_equal(mine[:, None], theirs, out=differs)
                    count += differs.view(np.uint8)
                yield steps, count


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


def _fitting(spans: list[Any], weights: Floats, error: int) -> tuple[np.dtype[Any], float]:
    """The smallest type whose steps are fine enough, and how many of them make a distance of 1.

    All scores and differences of coordinates must fit, with room for the error and for one value more.
    """
    longest = max([1.0, *(float(w * s) for w, s in zip(weights, spans, strict=True))])
    for dtype, finest, coarsest in ((np.int16, 2**15, 1000 * error), (np.int32, _FINE, 2**16 * error)):
        room = np.iinfo(dtype).max - 4 * error - 2
        steps = min(finest, room / longest)
        if steps >= coarsest:
            return np.dtype(dtype), float(steps)
    return np.dtype(np.float64), float(_FINE)


def _label_type(labels: Integers, others: Integers) -> type[np.generic]:
    """The smallest type that holds the codes, moved up by one."""
    most = max(labels.max(initial=0), others.max(initial=0)) + 1
    return np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int64


def _upper_bound(scores: Scores, k: int) -> Scores:
    """At least k scores of each row are at most this, shape (b,).

    The k-th smallest of the least scores of disjoint groups: a look at every score, but no sorting of them.
    """
    n, m = scores.shape
    groups = m // _GROUP
    if groups < k:
        return np.partition(scores, min(k, m) - 1, axis=1)[:, min(k, m) - 1]
    least = scores[:, : groups * _GROUP].reshape(n, _GROUP, groups).min(axis=1)
    return np.partition(least, k - 1, axis=1)[:, k - 1]


def _largest(dtype: np.dtype[Any]) -> float:
    """A value beyond every score that still fits; one less is a different value."""
    return float(np.iinfo(dtype).max) if dtype.kind == "i" else 2.0**52
