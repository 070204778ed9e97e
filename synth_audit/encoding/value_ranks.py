"""Columns as whole numbers in the order of their values, for trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Floats32
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes


def value_ranks(tables: Sequence[Table], columns: Sequence[Column]) -> list[Floats32]:
    """Columns of several tables as shared whole numbers in the order of their values, shape (n, d) each.

    A tree only asks which of two values is larger, so nothing is lost, and no value is too large for the
    single precision in which trees compute. Missing ranks last in a numeric column, first in a discrete one.
    """
    joint = []
    for column in columns:
        part = column.kind.part
        if isinstance(part, NumberPart):
            values = np.concatenate([part.read(table.column(column.name)) for table in tables])
            joint.append(np.unique(values, return_inverse=True)[1])
        else:
            joint.append(np.concatenate(codes(tables, column)))
    ends = np.cumsum([table.n_rows for table in tables])[:-1]
    return np.split(np.column_stack(joint).astype(np.float32), ends)
