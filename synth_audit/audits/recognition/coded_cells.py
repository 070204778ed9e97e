"""Columns of people and release, cut into cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Floats32
from synth_audit.audits.recognition.people import PooledColumn

CELLS = 192
"""Cells of a number at most, of equal counts or widths: values 0.5 % of the rows, or of the range, apart are
told apart."""

LABELS = 512
"""Cells of labels at most: further labels share a cell with others, which costs one bit of ten."""

MOST_BITS = 10.0
"""Bits of one column at most: no more can be learned from some thousand rows."""

Cells = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class CodedCells:
    """One column in cells.

    Attributes:
        people, release: cell of each record and row, 0 … k; k where missing.
        shares: mean share of both tables in each cell, shape (k,).
        middles: a typical number of each cell; empty for labels, shape (k,).
    """

    people: Cells = field(repr=False)
    release: Cells = field(repr=False)
    shares: Floats = field(repr=False)
    middles: Floats = field(repr=False)

    @classmethod
    def of(cls, column: PooledColumn) -> Self:
        """Cut a column into cells."""
        both = np.concatenate([column.people, column.release])
        n = len(column.people)
        if column.numeric:
            known = np.isfinite(both)
            edges = np.unique(both[known])
            if len(edges) > CELLS:
                wanted = np.linspace(0, 1, CELLS + 1)[1:-1]
                edges = np.unique(np.quantile(both[known], wanted, method="lower"))
            k = len(edges) + 1
            cells = np.where(known, np.searchsorted(edges, both, side="right"), k)
            sums = np.bincount(cells[known], both[known], minlength=k)[:k]
            middles = sums / np.maximum(1, np.bincount(cells, minlength=k + 1)[:k])
        else:
            k = min(int(both.max(initial=0)) + 1, LABELS)
            cells, middles = np.where(both < 0, k, both % LABELS).astype(np.intp), np.empty(0)
        people, release = cells[:n].copy(), cells[n:].astype(np.int16)  # no view, which would hold all cells
        counts = [np.bincount(c, minlength=k + 1)[:k] for c in (people, release)]
        shares = sum(c / max(1, c.sum()) for c in counts) / 2
        return cls(people, release, shares, middles)

    @property
    def numeric(self) -> bool:
        """Whether the cells have an order."""
        return bool(len(self.middles))

    def among_people(self) -> CodedCells:
        """The same with the people's records in place of the release."""
        return CodedCells(self.people, self.people, self.shares, self.middles)

    def ranks(self) -> Floats:
        """Middle rank of each cell, in (0, 1), shape (k,)."""
        found: Floats = np.cumsum(self.shares) - self.shares / 2
        return found

    def agreement(self) -> Floats32:
        """Information of an agreement: ``-log2`` of the share of cells at least as near, in bits.

        Returns:
            shape (k + 1, k + 1), a person's cell first; 0 for different labels and missing values.
        """
        k = len(self.shares)
        bits = np.zeros((k + 1, k + 1), np.float32)
        if self.numeric:
            ranks = self.ranks()
            for row, rank in zip(bits, ranks, strict=False):
                away = np.abs(ranks - rank)
                order = np.argsort(away, kind="stable")
                last = np.searchsorted(away[order], away[order] + 1e-12, side="right") - 1
                row[order] = _bits(np.cumsum(self.shares[order])[last])
        else:
            np.fill_diagonal(bits[:k, :k], _bits(self.shares))
        return bits


def _bits(shares: Floats) -> Floats:
    return -np.log2(np.clip(shares, 2.0**-MOST_BITS, 1.0))
