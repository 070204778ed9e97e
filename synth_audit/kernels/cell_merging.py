"""Cells that noise hides, merged into one for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from synth_audit.core.arrays import Codes, Floats

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
