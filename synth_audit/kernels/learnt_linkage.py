"""Record linkage whose weights are learnt from the tables at hand, whoever was in train: arrays only.

After Fellegi and Sunter: a pair of a person and a release row weighs ``Σ_j W_j(x_j, s_j)``, the sum of the
log ratios of how often two records of one person have these cells and of how often any two have. What is
unknown, which label of the release stands for which and how far numbers were moved, is learnt: the best row
of each person is found by all columns but one, and its pair of cells in that column is counted, in excess of
those of the next best rows, which are alike for the same reasons without being copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Floats32, Positions
from synth_audit.kernels.compared_rows import ComparedRows, compared
from synth_audit.kernels.linked_columns import LEVELS, Blocks, LinkedColumn
from synth_audit.kernels.nearest_people import NearestPeople

_RUNNERS_UP = 16
"""Next best rows that say how alike rows are without being copies."""

_CLEARER = 8
"""Power of the share of people whose best row stands out less, by which a person's best rows teach.

Few people may have left a row at all, and theirs stand out more than the best rows of the others.
"""

_PRIOR, _PRIOR_LEVELS = 4.0, 20.0
"""Pairs of cells that the weights before learning count as: of one label, and of a column of numbers."""

_LIGHTEST, _HEAVIEST = -4.0, 7.0
"""Weights of a pair of cells at most."""

_CANDIDATES = 256
"""Rows among which the best by all columns but one are; see :func:`_best_without`."""

_FIRST, _LAST = 4, 8
"""The best row must stand out from those at these places, where further copies of one person do not reach."""


@dataclass(frozen=True, eq=False)
class LinkageWeights:
    """What a pair of cells weighs in each column.

    Attributes:
        tables: of person's and release's cell, shape (k, k) each.
    """

    columns: Sequence[LinkedColumn]
    blocks: Blocks
    tables: Sequence[Floats32]

    @classmethod
    def before(cls, columns: Sequence[LinkedColumn], blocks: Blocks, labels_known: bool) -> Self:
        """Weights to begin with: numbers by likeness, labels by being equal or, if not known, by nothing."""
        tables = []
        for c in columns:
            table = np.zeros((c.size, c.size))
            if c.numeric:
                table = c.levels * np.log(2) - np.log(LEVELS)
            elif labels_known:
                same = np.eye(c.size, dtype=np.bool_)
                table = np.where(same, np.log(0.5 + 0.5 / c.shares), np.log(0.5))
            tables.append(_ready(table, c))
        return cls(columns, blocks, tables)

    def learnt(self) -> LinkageWeights:
        """Weights after a look at the best rows and the next best ones of all people."""
        return self._looked_at(repeats=None)[1]

    def standing_out(self, repeats: int = 1, nearest: NearestPeople | None = None) -> Floats:
        """By how much each person's best row outweighs the mean of the fifth to eighth best, shape (n,).

        Args:
            repeats: release rows for each person of train; so many times further down the others are.
            nearest: takes what rows weigh.
        """
        out = np.empty(self.blocks.starts.shape[1])
        for some in compared(self.columns, self.blocks, self.tables, lightest=False):
            out[some.people] = _outweighs(some.total, repeats)
            if nearest is not None:
                nearest.take(some)
        return out

    def standing_out_and_learnt(
        self, repeats: int = 1, nearest: NearestPeople | None = None
    ) -> tuple[Floats, LinkageWeights]:
        """Both, at one look at all people."""
        return self._looked_at(repeats, nearest)

    def best(self) -> tuple[Positions, Floats]:
        """The rows that weigh most of those compared, from the best down, shape (n, some), and by how much
        the best is above those further down, shape (n,)."""
        n_people, n = self.blocks.starts.shape[1], min(_RUNNERS_UP + 1, self.blocks.compared)
        rows, clear = np.empty((n_people, n), np.intp), np.empty(n_people)
        for some in compared(self.columns, self.blocks, self.tables, lightest=False):
            top = np.argpartition(some.total, -n, axis=1)[:, -n:]
            order = np.argsort(-np.take_along_axis(some.total, top, axis=1), axis=1, kind="stable")
            rows[some.people] = np.take_along_axis(top, order, axis=1)
            clear[some.people] = _outweighs(some.total, 1)
        return rows, clear

    def _looked_at(
        self, repeats: int | None, nearest: NearestPeople | None = None
    ) -> tuple[Floats, LinkageWeights]:
        """How far rows stand out, where that is asked for, and weights after a look at them."""
        (d, _), n = self.blocks.first_cells.shape, self.blocks.starts.shape[1]
        out, clear = np.empty(n), np.empty((n, d), np.float32)
        best = np.empty((n, d, min(_RUNNERS_UP + 1, self.blocks.compared)), np.intp)
        for some in compared(self.columns, self.blocks, self.tables, lightest=True):
            rows, weighs = _best_without(some, self.blocks)
            further = weighs[..., min(_FIRST, weighs.shape[2] - 1) : _LAST]
            clear[some.people] = weighs[..., 0] - further.mean(axis=2)
            best[some.people] = self.blocks.places_of(some.people, rows) - self.blocks.first_cells
            if repeats is not None:
                out[some.people] = _outweighs(some.total, repeats)
            if nearest is not None:
                nearest.take(some)
        return out, self._after(best, clear)

    def _after(self, best: Codes, clear: Floats32) -> LinkageWeights:
        """Weights by the cells of the rows that weigh most by all other columns, from the best down.

        Args:
            best: shape (n, d, some). clear: by how much the best is above those further down, shape (n, d).
        """
        tables = []
        for j, c in enumerate(self.columns):
            pairs = c.people[:, None] * c.size + best[:, j]
            teaches = np.broadcast_to(shares_below(clear[:, j])[:, None] ** _CLEARER, pairs.shape)
            first, others = (
                _weighed(pairs[:, some], teaches[:, some], c.size) for some in (slice(1), slice(1, None))
            )
            usual = others / max(1, best.shape[2] - 1)
            tables.append(_ready((_by_level if c.numeric else _by_label)(first, usual, c), c))
        return LinkageWeights(self.columns, self.blocks, tables)


def _outweighs(total: Floats32, repeats: int) -> Floats32:
    """By how much the largest of each person's weights is above those further down, shape (people,)."""
    n = min(_LAST * repeats, total.shape[1])
    top = np.sort(np.partition(total, -n, axis=1)[:, -n:], axis=1)
    found: Floats32 = top[:, -1] - top[:, : max(1, n - _FIRST * repeats)].mean(axis=1)
    return found


def _weighed(cells: Codes, weights: Floats, size: int) -> Floats:
    """Pairs of cells, counted by weights, shape (size, size)."""
    found = np.bincount(cells.ravel(), weights.ravel(), size**2).astype(np.float64)
    return found.reshape(size, size)


def shares_below(values: Floats | Floats32) -> Floats:
    """Share of the values below each, equal ones in the middle of theirs; shape (n,)."""
    ordered = np.sort(values)
    low, high = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    below: Floats = (low + high) / (2 * len(values))
    return below


def _best_without(some: ComparedRows, blocks: Blocks) -> tuple[Positions, Floats32]:
    """Rows that weigh most by all columns but one, from the best down, and what; (people, d, some) each.

    They are looked for among those that weigh most without their lightest column: no row weighs more without
    another one.
    """
    total, lightest = some.total, some.lightest
    assert lightest is not None
    able = np.broadcast_to(np.arange(total.shape[1]), total.shape)
    if total.shape[1] > _CANDIDATES:
        able = np.argpartition(total - lightest, -_CANDIDATES, axis=1)[:, -_CANDIDATES:]
        total = np.take_along_axis(total, able, axis=1)
    without = total[:, None] - some.weights_at(blocks.places_of(some.people, able))
    n = min(_RUNNERS_UP + 1, total.shape[1])
    top = np.argpartition(without, -n, axis=2)[..., -n:]
    weighs = np.take_along_axis(without, top, axis=2)
    order = np.argsort(-weighs, axis=2, kind="stable")
    found = np.take_along_axis(able[:, None], np.take_along_axis(top, order, axis=2), axis=2)
    return found, np.take_along_axis(weighs, order, axis=2)


def _by_label(first: Floats, usual: Floats, column: LinkedColumn) -> Floats:
    """Log ratios of labels, from the excess of each pair beyond a standard error."""
    beyond = excess(first, usual)
    share = (beyond + _PRIOR * column.shares) / (beyond.sum(axis=1, keepdims=True) + _PRIOR)
    table: Floats = np.log(share / column.shares)
    return table


def excess(first: Floats, usual: Floats) -> Floats:
    """How often more than usual something occurs, beyond a standard error."""
    beyond: Floats = np.maximum(0.0, first - usual - np.sqrt(usual + 0.5))
    return beyond


def _by_level(first: Floats, usual: Floats, column: LinkedColumn) -> Floats:
    """Log ratios of numbers, the same for all pairs that are as alike."""
    levels = column.levels
    found, expected = (
        np.bincount(levels.ravel(), counts.ravel(), LEVELS).astype(np.float64) for counts in (first, usual)
    )
    beyond = excess(found, expected)
    share = (beyond + _PRIOR_LEVELS / LEVELS) / (beyond.sum() + _PRIOR_LEVELS)
    # Of the rows as near as a level asks for, half are as near as the next one asks for.
    table: Floats = np.log(share[levels]) + (levels + 1) * np.log(2)
    return table


def _ready(table: Floats, column: LinkedColumn) -> Floats32:
    kept = np.clip(table, _LIGHTEST, _HEAVIEST).astype(np.float32)
    if column.nameless >= 0:
        kept[column.nameless] = kept[:, column.nameless] = 0.0
    return kept
