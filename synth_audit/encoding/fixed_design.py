"""Rows as numbers for a model that is learnt once and asked about tables it has not met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import anchored_codes

_FAR = 10.0
"""Standard deviations beyond which a number counts no more."""


@dataclass(frozen=True, eq=False)
class FixedDesign:
    """Coordinates that train alone fixes: a row has the same beside whatever other rows.

    A number is standardised on train, at most ten standard deviations from its mean, with an indicator where
    train has gaps; a label is an indicator among the most frequent ones of train, and rarer, unknown and
    missing ones share one.

    Attributes:
        labels: indicators of a column at most.
    """

    train: Table = field(repr=False)
    columns: tuple[Column, ...]
    labels: int = 30

    @classmethod
    def of(cls, train: Table, names: Sequence[str]) -> Self:
        """The coordinates of some columns."""
        return cls(train, tuple(train.schema[name] for name in names))

    def rows(self, table: Table) -> Floats:
        """Rows of a table that has these columns, shape (n, width)."""
        return np.hstack([self._column(table, column) for column in self.columns])

    def _column(self, table: Table, column: Column) -> Floats:
        part = column.kind.part
        if not isinstance(part, NumberPart):
            return self._indicators(table, column)
        known, values = (part.read(t.column(column.name)) for t in (self.train, table))
        there = known[~np.isnan(known)]
        centre, scale = (float(there.mean()), float(there.std()) or 1.0) if len(there) else (0.0, 1.0)
        gaps = np.isnan(values)
        numbers = np.clip(np.where(gaps, 0.0, (values - centre) / scale), -_FAR, _FAR)
        return np.column_stack([numbers, gaps] if len(there) < len(known) else [numbers]).astype(np.float64)

    def _indicators(self, table: Table, column: Column) -> Floats:
        known, codes = anchored_codes([self.train, table], column)
        most = min(self.labels, int(known.max(initial=-1)) + 1)
        hot = codes[:, None] == np.arange(most)
        return np.column_stack([hot, ~hot.any(axis=1)]).astype(np.float64)
