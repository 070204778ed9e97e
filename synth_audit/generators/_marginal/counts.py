"""Counts of rows in cells, cells that noise hides merged, and rows drawn column after column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from synth_audit.arrays import Codes, Floats

Attributes = tuple[int, ...]
"""Positions of columns."""


def cells_of(sizes: Sequence[int], attributes: Attributes) -> int:
    """How many cells the table of these columns has."""
    return math.prod(sizes[a] for a in attributes)


def counted(codes: Codes, sizes: Sequence[int], attributes: Attributes) -> Floats:
    """Rows in each cell.

    Args:
        codes: the cell of every row and column, shape (n, d).
        sizes: cells of every column.

    Returns:
        Shape ``[sizes[a] for a in attributes]``.
    """
    shape = tuple(sizes[a] for a in attributes)
    if not attributes:
        return np.array(float(len(codes)))
    flat = np.ravel_multi_index(tuple(codes[:, a] for a in attributes), shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(np.float64).reshape(shape)


def no_less_than_nothing(counts: Floats) -> Floats:
    """Counts below 0 as 0; where none is above, all the same."""
    kept = np.maximum(counts, 0.0)
    return kept if kept.any() else np.ones_like(counts)


def on_simplex(values: Floats) -> Floats:
    """The nearest point with entries of 0 or more and sum 1 (Duchi et al. 2008), shape (k,)."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    threshold = over[np.flatnonzero(falling > over)[-1]]
    found: Floats = np.maximum(values - threshold, 0.0)
    return found


def nearest_counts(counts: Floats) -> Floats:
    """The nearest table without counts below 0 and of the same sum; where that is not above 0, as above.

    Cutting off what is below 0 alone would leave the noise of empty cells that is above it: rows that nobody
    has, the more of them the more cells.
    """
    total = counts.sum()
    if total <= 0:
        return no_less_than_nothing(counts)
    found: Floats = on_simplex(counts.ravel() / total).reshape(counts.shape) * total
    return found


_VISIBLE = 3.0
"""Standard deviations of the noise above which a cell stays on its own (McKenna, Miklau & Sheldon 2021)."""


@dataclass(frozen=True, eq=False)
class CellMerging:
    """For each column, the merged cell of every cell, and how likely each is within its merged one.

    Attributes:
        merged: positions 0 … k − 1, shape (cells of the column,); what is rare has the last.
        weights: above 0 or 0, shape (cells of the column,).
    """

    merged: tuple[Codes, ...] = field(repr=False)
    weights: tuple[Floats, ...] = field(repr=False)

    @classmethod
    def of(cls, counts: Sequence[Floats], deviation: float) -> CellMerging:
        """From noisy counts of each column alone; nothing else of the rows is looked at.

        Args:
            deviation: of the noise; 0 for none.
        """
        merged, weights = [], []
        for noisy in counts:
            rare = noisy <= _VISIBLE * deviation
            if rare.sum() < 2:
                rare = np.zeros(len(noisy), dtype=bool)
            merged.append(np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1).astype(np.int64))
            known = np.maximum(noisy, 0.0)
            weights.append(np.where(rare & (known[rare].sum() == 0), 1.0, known))
        return cls(tuple(merged), tuple(weights))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Merged cells of each column."""
        return tuple(int(column.max()) + 1 for column in self.merged)

    def codes(self, codes: Codes) -> Codes:
        """Cells merged, shape (n, d)."""
        return np.stack([column[codes[:, j]] for j, column in enumerate(self.merged)], axis=1)

    def counts(self, counts: Floats, column: int) -> Floats:
        """Counts of a column's cells as counts of its merged ones."""
        found: Floats = np.bincount(self.merged[column], counts, self.sizes[column]).astype(np.float64)
        return found

    def drawn(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """A cell for each merged one, shape (n, d)."""
        found = np.empty_like(codes)
        for j, (merged, weights) in enumerate(zip(self.merged, self.weights, strict=True)):
            order = np.argsort(merged, kind="stable")
            first = np.searchsorted(merged[order], np.arange(merged.max() + 1))
            found[:, j] = order[first[codes[:, j]]]
            rare = np.flatnonzero(merged == merged.max())
            if len(rare) > 1:
                here = np.flatnonzero(codes[:, j] == merged.max())
                shares = weights[rare] / weights[rare].sum()
                found[here, j] = rng.choice(rare, len(here), p=shares)
        return found


@dataclass(frozen=True, eq=False)
class Conditional:
    """The joint distribution of some columns given others.

    Attributes:
        given: columns that are drawn before.
        new: columns that are drawn here, one or more.
        weights: of the cells, 0 or more, of any sum; shape ``(*sizes of given, *sizes of new)``. Where all
            weights of one choice of ``given`` are 0, those of all choices together hold.
    """

    given: Attributes
    new: Attributes
    weights: Floats


def drawn_rows(steps: Sequence[Conditional], n: int, rng: np.random.Generator) -> Codes:
    """Rows as cells, shape (n, d); every column is new in one step."""
    codes = np.zeros((n, sum(len(step.new) for step in steps)), dtype=np.int64)
    for step in steps:
        shape = step.weights.shape
        before, after = shape[: len(step.given)], shape[len(step.given) :]
        group = np.zeros(n, dtype=np.int64)
        if step.given:
            group = np.ravel_multi_index(tuple(codes[:, a] for a in step.given), before)
        weights = step.weights.reshape(-1, int(np.prod(after)))
        cell = _drawn_cells(weights, group, rng.random(n))
        for column, found in zip(step.new, np.unravel_index(cell, after), strict=True):
            codes[:, column] = found
    return codes


def _drawn_cells(weights: Floats, group: Codes, uniform: Floats) -> Codes:
    """The cell of each row by inversion, from the weights of its group, shape (groups, cells)."""
    mass = weights.sum(axis=1, keepdims=True)
    overall = weights.sum(axis=0)
    overall = overall / overall.sum() if overall.any() else np.full(weights.shape[1], 1 / weights.shape[1])
    shares = np.where(mass > 0, weights / np.where(mass > 0, mass, 1.0), overall)
    upto = np.cumsum(shares, axis=1)
    upto /= upto[:, -1:]
    # Group g owns the interval [g, g + 1): one search for all rows.
    ladder = (upto + np.arange(len(upto))[:, None]).ravel()
    found = np.searchsorted(ladder, group + uniform, side="right") - group * weights.shape[1]
    last = weights.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    cells: Codes = np.minimum(found, last[group]).astype(np.int64)
    return cells
