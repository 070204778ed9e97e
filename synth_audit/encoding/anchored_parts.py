"""The parts of columns with the scale of their numbers, anchored on real rows and never on a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.parts import LabelPart, NumberPart, VectorPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import cells_of
from synth_audit.kernels.robust_scale import RobustScale

_LOOK = 1000
"""Rows that are looked at first."""


@dataclass(frozen=True, eq=False)
class ScaledNumbers:
    """Numbers of a column, with the scale on which they are compared."""

    column: Column
    part: NumberPart
    scale: RobustScale

    def read(self, table: Table) -> tuple[Floats, Codes]:
        """Numbers in ranges from the centre, and what each cell is; see :meth:`RobustScale.read`."""
        return self.scale.read(self.part.read(cells_of(table, self.column)))


@dataclass(frozen=True, eq=False)
class SharedLabels:
    """Labels of a column."""

    column: Column
    part: LabelPart

    def read(self, tables: Sequence[Table]) -> list[Codes]:
        """Codes that the tables share."""
        return self.part.read([cells_of(table, self.column) for table in tables])


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of a column."""

    column: Column
    part: VectorPart

    @property
    def spread(self) -> float:
        """Mean difference of one number of two vectors that have nothing to do with each other."""
        return 2 / float(np.sqrt(np.pi * self.part.width))

    def read(self, table: Table) -> Floats:
        """Vectors of length 1, NaN where missing, shape (n, width)."""
        return self.part.read(cells_of(table, self.column)).astype(np.float64)


AnchoredPart = ScaledNumbers | SharedLabels | Vectors


def anchored_parts(reference: Sequence[Table], columns: Sequence[Column]) -> list[AnchoredPart]:
    """All parts of all columns, in their order.

    Args:
        reference: real tables whose rows together say which parts a column has and set the scale of its
            numbers; train and control where the two are compared, so that the scale favours neither.
    """
    found: list[AnchoredPart] = []
    for column in columns:
        values = [cells_of(table, column) for table in reference]
        for part in column.kind.parts(values):
            match part:
                case NumberPart():
                    scale = RobustScale.of(np.concatenate([part.read(v) for v in values]))
                    found.append(ScaledNumbers(column, part, scale))
                case LabelPart():
                    found.append(SharedLabels(column, part))
                case VectorPart():
                    found.append(Vectors(column, part))
    return found


def varies(train: Table, column: Column) -> bool:
    """Whether a column tells any two rows of train apart, missing counted as a value."""
    values = cells_of(train, column)
    for part in (values.slice(0, _LOOK), values):  # most columns vary among the first rows
        [found] = column.kind.codes([part])
        if len(found) and (found != found[0]).any():
            return True
    return False
