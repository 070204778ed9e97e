"""Columns as whole numbers in the order of their values, for trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Floats32, Positions
from synth_audit.core.parts import LabelPart, VectorPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import cells_of


def value_ranks(
    tables: Sequence[Table],
    columns: Sequence[Column],
    *,
    real: Sequence[Table] = (),
    rows: Sequence[Positions] | None = None,
) -> list[Floats32]:
    """Columns of several tables as shared whole numbers in the order of their values, shape (n, d) each.

    A tree only asks which of two values is larger, so nothing is lost, and no value is too large for the
    single precision in which trees compute. Missing ranks last among numbers, first among labels. A column of
    several parts has a number for each, one for each coordinate of a vector.

    Args:
        real: the tables that say which parts a column has; the first one if left out.
        rows: positions of the rows that are wanted of each table, with the numbers that they have among all
            rows; all if left out.
    """
    ends = np.cumsum([table.n_rows for table in tables])
    wanted = [np.arange(t.n_rows) for t in tables] if rows is None else rows
    place = np.concatenate([w + end - t.n_rows for w, end, t in zip(wanted, ends, tables, strict=True)])
    joint = [  # one at a time in its full length
        ranks[place].astype(np.float32)
        for column in columns
        for ranks in _ranked(tables, column, real or tables[:1])
    ]
    return np.split(np.column_stack(joint), np.cumsum([len(w) for w in wanted])[:-1])


def _ranked(
    tables: Sequence[Table], column: Column, real: Sequence[Table]
) -> Iterator[npt.NDArray[np.generic]]:
    values = [cells_of(table, column) for table in tables]
    for part in column.kind.parts([cells_of(table, column) for table in real]):
        if isinstance(part, LabelPart):
            yield np.concatenate(part.read(values))
            continue
        found = np.concatenate([part.read(v) for v in values])
        for numbers in found.T if isinstance(part, VectorPart) else [found]:
            yield np.unique(numbers, return_inverse=True)[1]
