"""Tables as numbers, labels among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.core.text_form import standard_forms


def coded(table: Table, columns: Sequence[Column]) -> Floats:
    """A table as numbers, shape (n, C): labels as position among the column's categories, missing as NaN.

    Labels of one standard form get one position; one that is none of the categories that after the last.
    """
    rows = np.empty((table.n_rows, len(columns)))
    for j, column in enumerate(columns):
        rows[:, j] = _numbers(table, column)
    return rows


def _numbers(table: Table, column: Column) -> Floats:
    part, values = column.kind.part, table.column(column.name)
    return part.read(values) if isinstance(part, NumberPart) else _positions(table, column)


def _positions(table: Table, column: Column) -> Floats:
    labels = column.kind.labels(table.column(column.name))
    if not column.categories or pa.types.is_null(labels.type):
        return np.where(table.missing(column.name), np.nan, 0.0)
    found = pc.index_in(_forms(labels), value_set=pa.array(standard_forms(column.categories), labels.type))
    positions = np.asarray(pc.fill_null(found, len(column.categories)).to_numpy(), dtype=np.float64)
    return np.where(table.missing(column.name), np.nan, positions)


def _forms(labels: pa.ChunkedArray) -> pa.Array:
    """Standard form of each label, made once for those that repeat."""
    encoded = labels.combine_chunks().dictionary_encode()
    return pa.array(standard_forms(encoded.dictionary.to_pylist()), labels.type).take(encoded.indices)


def label_counts(columns: Sequence[Column]) -> list[int | None]:
    """How many categories each column has; None for numbers."""
    return [None if isinstance(c.kind.part, NumberPart) else len(c.categories) for c in columns]
