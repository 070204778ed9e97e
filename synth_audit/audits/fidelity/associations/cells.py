"""Columns as cells and numbers on scales that train fixes, so that tables can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Codes, Floats
from synth_audit.core.kind_cells import AnchoredCells
from synth_audit.core.schema import Column, quantitative
from synth_audit.core.table import Table
from synth_audit.kernels.association import JackknifeRows


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """How each column becomes cells.

    A number falls into one of at most so many cells of about equal mass in train, or is missing. A label that
    is among the most frequent ones of train has its own cell, others of train share one, labels that train
    lacks share one, and missing is one.
    """

    columns: tuple[Column, ...]
    cells: tuple[AnchoredCells, ...]

    @classmethod
    def of(cls, train: Table, columns: Sequence[Column], most_cells: int, most_labels: int) -> ColumnCells:
        """Read the scale off train."""
        cells = (
            c.kind.anchored_cells(train, c, most_cells=most_cells, most_labels=most_labels) for c in columns
        )
        return cls(tuple(columns), tuple(cells))

    @property
    def numeric(self) -> Bools:
        """Which columns are measured on a quantitative scale, shape (d,)."""
        return np.isin([c.name for c in self.columns], [c.name for c in quantitative(self.columns)])

    @property
    def sizes(self) -> Codes:
        """Number of cells of each column, shape (d,)."""
        return np.array([cells.size for cells in self.cells])

    @property
    def not_compared(self) -> Codes:
        """The cell of missing numbers, which correlations pass over; −1 for labels; shape (d,)."""
        return np.array([cells.not_compared for cells in self.cells])

    def values(self, table: Table, *, missing_counts: bool) -> Iterator[Codes | Floats]:
        """One column after the other: its cells, or as numbers what correlations compare.

        Args:
            missing_counts: cells of numbers too, of which a missing number is one.
        """
        for column, cells, number in zip(self.columns, self.cells, self.numeric, strict=True):
            yield table.numbers(column.name) if number and not missing_counts else cells.of(table)

    def rows(self, table: Table, n_groups: int = 1, rng: np.random.Generator | None = None) -> JackknifeRows:
        """The rows of a table, in groups to be left out once each."""
        cells = np.column_stack([cells.of(table) for cells in self.cells])
        numbers = [table.numbers(c.name) for c in quantitative(self.columns)]
        values = np.column_stack([np.empty((table.n_rows, 0)), *numbers])
        return JackknifeRows.of(cells, self.sizes, values, n_groups, rng)
