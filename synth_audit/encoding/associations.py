"""How strongly the columns of one table hang together, as one matrix, and what of it may be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.column_cells import ColumnCells, readable_pairs, told_pairs
from synth_audit.kernels import association as kernel

_CELLS, _LABELS = 10, 50
"""Cells of a number, and labels of a column that are told apart."""


@dataclass(frozen=True, eq=False)
class TableAssociations:
    """Relations of all pairs of columns of a table.

    Attributes:
        values: Spearman's correlation of two numbers, Cramér's V of two labels, η of a label and a number,
            both corrected for what chance adds; shape (d, d).
        told: pairs whose value rests on as many rows as may be told of; shape (d, d).
    """

    values: Floats
    told: Bools

    @classmethod
    def of(cls, table: Table, columns: Sequence[Column], fewest: int) -> TableAssociations:
        """Measure all pairs.

        Args:
            fewest: rows that may be told of.
        """
        scale = ColumnCells.of(table, columns, _CELLS, _LABELS)
        rows, numeric = scale.rows(table), scale.numeric
        ratios = kernel.correlation_ratio(kernel.variance_shares(rows, np.flatnonzero(~numeric)))
        labels = kernel.cramers_v(kernel.contingency(rows))
        ranked = kernel.between_numbers(kernel.spearman(rows), numeric)
        told = told_pairs(rows, scale, fewest)
        told &= ~readable_pairs(scale.values(table, missing_counts=False), fewest)
        return cls(kernel.mixed(ranked, ratios, labels, numeric)[0], told)
