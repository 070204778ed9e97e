"""Columns as cells and numbers on scales that train fixes, so that tables can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Codes, Floats
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.kernels.association import JackknifeRows
from synth_audit.kernels.distributions import cell_codes, quantile_cells

_RARER, _UNSEEN, _MISSING = 0, 1, 2
"""Cells after those of the labels: rarer labels of train, labels that train lacks, no value."""


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """How each column becomes cells.

    A number falls into one of at most so many cells of about equal mass in train, or is missing. A label that
    is among the most frequent ones of train has its own cell, others of train share one, labels that train
    lacks share one, and missing is one.

    Attributes:
        edges: inner edges of the cells of each numeric column.
        labels: cell of each frequent label of train.
        rarer: the other labels of train.
    """

    columns: tuple[Column, ...]
    edges: dict[str, Floats]
    labels: dict[str, dict[str, int]]
    rarer: dict[str, frozenset[str]]

    @classmethod
    def of(cls, train: Table, columns: tuple[Column, ...], most_cells: int, most_labels: int) -> ColumnCells:
        """Read the scale off train."""
        edges, labels, rarer = {}, {}, {}
        for c in columns:
            if c.kind.numeric:
                edges[c.name] = quantile_cells(train.numbers(c.name), most_cells)
                continue
            held = Counter(train.labels(c.name).tolist())
            counts = {label: n for label, n in held.items() if label is not None}
            frequent = _frequent(counts, most_labels)
            labels[c.name] = {label: i for i, label in enumerate(sorted(frequent))}
            rarer[c.name] = frozenset(counts) - frequent
        return cls(columns, edges, labels, rarer)

    @property
    def numeric(self) -> Bools:
        """Which columns hold numbers, shape (d,)."""
        return np.array([c.kind.numeric for c in self.columns], dtype=bool)

    @property
    def sizes(self) -> Codes:
        """Number of cells of each column, shape (d,)."""
        return np.array(
            [
                len(self.edges[c.name]) + 2 if c.kind.numeric else len(self.labels[c.name]) + _MISSING + 1
                for c in self.columns
            ]
        )

    @property
    def not_compared(self) -> Codes:
        """The cell of missing numbers, which correlations pass over; −1 for labels; shape (d,)."""
        return np.where(self.numeric, self.sizes - 1, -1)

    def rows(self, table: Table, n_groups: int = 1, rng: np.random.Generator | None = None) -> JackknifeRows:
        """The rows of a table, in groups to be left out once each."""
        cells = np.column_stack([self._cells(table, c) for c in self.columns])
        numbers = [table.numbers(c.name) for c in self.columns if c.kind.numeric]
        values = np.column_stack([np.empty((table.n_rows, 0)), *numbers])
        return JackknifeRows.of(cells, self.sizes, values, n_groups, rng)

    def _cells(self, table: Table, column: Column) -> Codes:
        if column.kind.numeric:
            return cell_codes(table.numbers(column.name), self.edges[column.name])
        first = len(self.labels[column.name])
        place: dict[str | None, int] = dict(self.labels[column.name].items())
        place |= dict.fromkeys(self.rarer[column.name], first + _RARER)
        place[None] = first + _MISSING
        labels = table.labels(column.name)
        found = (place.get(x, first + _UNSEEN) for x in labels)
        return np.fromiter(found, dtype=np.int64, count=len(labels))


def _frequent(counts: Mapping[str, int], most: int) -> frozenset[str]:
    """At most so many of the most frequent labels; of equally frequent ones all or none, so that no order or
    spelling of labels decides."""
    ordered = sorted(counts.values(), reverse=True)
    fewest = ordered[most] + 1 if len(ordered) > most else 0
    return frozenset(label for label, n in counts.items() if n >= fewest)
