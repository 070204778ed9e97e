"""Rows as coordinates for a validator, which train alone fixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.encode.codes import Vocabulary
from synth_audit.table.kind import NumberPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_FAR = 10.0
"""Standard deviations beyond which a number counts no more."""

_MOST_LABELS = 30
"""Indicators of a column: rarer labels are met too seldom to learn from."""


@dataclass(frozen=True, eq=False)
class FixedDesign:
    """Coordinates that train alone fixes: a row has the same beside whatever other rows.

    A number is standardised on train, at most ten standard deviations from its mean, with an indicator where
    train has gaps; a label is an indicator among the most frequent ones of train, and rarer, unknown and
    missing ones share one.
    """

    columns: tuple[Callable[[Table], Floats], ...]

    @classmethod
    def of(cls, train: Table, names: Sequence[str]) -> Self:
        """The coordinates of some columns."""
        return cls(tuple(_fixed(train, train.schema[name]) for name in names))

    def rows(self, table: Table) -> Floats:
        """Rows of a table that has these columns, shape (n, width)."""
        return np.hstack([column(table) for column in self.columns])


def _fixed(train: Table, column: Column) -> Callable[[Table], Floats]:
    """The coordinates of one column, shape (n, k)."""
    part, name = column.kind.part, column.name
    if not isinstance(part, NumberPart):
        vocabulary = Vocabulary.of(name, train).by_frequency(train)
        frequent = np.arange(min(_MOST_LABELS, len(vocabulary.labels)))

        def indicators(table: Table) -> Floats:
            hot = vocabulary.places(table)[:, None] == frequent
            return np.column_stack([hot, ~hot.any(axis=1)]).astype(np.float64)

        return indicators
    known = part.read(train.column(name))
    there = known[~np.isnan(known)]
    centre, scale = (float(there.mean()), float(there.std()) or 1.0) if len(there) else (0.0, 1.0)

    def standardised(table: Table) -> Floats:
        values = part.read(table.column(name))
        gaps = np.isnan(values)
        numbers = np.clip(np.where(gaps, 0.0, (values - centre) / scale), -_FAR, _FAR)
        return np.column_stack([numbers, gaps] if len(there) < len(known) else [numbers]).astype(np.float64)

    return standardised
