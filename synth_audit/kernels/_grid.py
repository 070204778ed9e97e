"""Fast whole-number scores that bound Gower's distance, so that few pairs need it computed exactly."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Grid:
    """Queries and a reference on one grid of whole numbers.

    The score of a pair is ``Σ_j min(|x_j − y_j|, cap_j) + Σ_l w_l [a_l ≠ b_l]`` on coordinates rounded to
    whole steps, so it differs from the distance, in steps, by at most ``error``: 1 for each number (two
    coordinates, each off by ½; a cap is off by ½), ½ for each label, and 1 for all rounding of floats. Whole
    numbers add up alike in any order, on any number of threads.

    Attributes:
        queries, reference: coordinates, shape (p, n) and (p, m).
        query_labels, reference_labels: of the columns in which rows differ, shape (q, n) and (q, m).
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
        units = np.rint(weights * steps).astype(np.int64)
        told = told_apart(labels, other_labels)
        mine_labels, their_labels = small_codes(labels[:, told], other_labels[:, told])
        return cls(
            mine,
            theirs,
            mine_labels,
            their_labels,
            tuple(unit if span > 1 else None for unit, span in zip(units[:p].tolist(), spans, strict=True)),
            tuple(units[p:][told].tolist()),
            steps,
            error,
        )

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        """Score some queries against a block of the reference, shape (b, t) of ``out``."""
        out[:] = 0
        one = np.empty_like(out)
        reference = self.reference[:, columns]
        for mine, theirs, cap in zip(self.queries[:, rows], reference, self.caps, strict=True):
            np.subtract(mine[:, None], theirs, out=one)
            np.abs(one, out=one)
            if cap is not None:
                np.minimum(one, np.full(out.shape[1], cap, out.dtype), out=one)  # faster than by a scalar
            out += one
        add_unlike(out, self.label_steps, self.query_labels[:, rows], self.reference_labels[:, columns], one)

    def on(self, device: str) -> TensorScores:
        """The same scores on another device."""
        labels = self.query_labels, self.reference_labels
        numbers = self.queries, self.reference
        return TensorScores.differences(numbers, self.caps, labels, self.label_steps, device)

    def boxes(self, leaves: Leaves) -> Boxes:
        """Boxes of the leaves, in whose order the reference stands."""
        steps = np.array(self.label_steps, dtype=np.float64)
        return Boxes.of(self.reference, self.reference_labels, steps, leaves, self.reference.dtype)

    def bounds(self, boxes: Boxes, rows: slice) -> Scores:
        """What no row of each leaf scores less than, shape (b, leaves)."""
        return boxes.bounds(self.queries[:, rows], self.query_labels[:, rows], self._added)

    def _added(self, column: int, apart: Scores) -> Scores:
        cap = self.caps[column]
        np.abs(apart, out=apart)
        return apart if cap is None else np.minimum(apart, apart.dtype.type(cap), out=apart)


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
