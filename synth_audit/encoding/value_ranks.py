"""Columns as whole numbers in the order of their values, for trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Floats32
from synth_audit.core.parts import LabelPart, VectorPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table


def value_ranks(
    tables: Sequence[Table], columns: Sequence[Column], *, real: Sequence[Table] = ()
) -> list[Floats32]:
    """Columns of several tables as shared whole numbers in the order of their values, shape (n, d) each.

    A tree only asks which of two values is larger, so nothing is lost, and no value is too large for the
    single precision in which trees compute. Missing ranks last among numbers, first among labels. A column of
    several parts has a number for each, one for each coordinate of a vector.

    Args:
        real: the tables that say which parts a column has; the first one if left out.
    """
    joint = [x for column in columns for x in _ranked(tables, column, real or tables[:1])]
    ends = np.cumsum([table.n_rows for table in tables])[:-1]
    return np.split(np.column_stack(joint).astype(np.float32), ends)


def _ranked(
    tables: Sequence[Table], column: Column, real: Sequence[Table]
) -> Iterator[npt.NDArray[np.generic]]:
    values = [table.column(column.name) for table in tables]
    for part in column.kind.parts([table.column(column.name) for table in real]):
        if isinstance(part, LabelPart):
            yield np.concatenate(part.read(values))
            continue
        found = np.concatenate([part.read(v) for v in values])
        for numbers in found.T if isinstance(part, VectorPart) else [found]:
            yield np.unique(numbers, return_inverse=True)[1]
