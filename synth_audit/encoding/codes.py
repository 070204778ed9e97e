"""Columns of several tables as codes that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.core.arrays import Codes, Positions
from synth_audit.core.parts import LabelPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.kernels.coordinates import MISSING
from synth_audit.kernels.labels import smallest_type

Wanted: TypeAlias = Sequence[Positions | None]
"""Positions of the rows of each table that are wanted; None for all of them."""


def codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """One column of several tables as shared integer codes: equal values get equal codes.

    Numbers are numbered in their order; labels by how often all the tables together hold them, the most
    frequent first, and in the order of their texts where that is equal.

    Returns:
        One array of shape (n,) per table; values in 0 … k−1, and :data:`MISSING`.
    """
    return column.kind.codes([cells_of(table, column) for table in tables])


def cells_of(table: Table, column: Column) -> pa.ChunkedArray:
    """A column as it is stored, the texts of labels each once; see :meth:`Table.coded`."""
    labels = isinstance(column.kind.part, LabelPart)
    return table.coded(column.name) if labels else table.column(column.name)


def anchored_codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """Codes that are the same beside whatever other tables: those of the first table's values are its own.

    Returns:
        One array per table. The k values of the first table are numbered as :func:`codes` numbers them there
        alone; what others hold besides has codes from k on, and :data:`MISSING` stays.
    """
    joint, [alone] = codes(tables, column), codes(tables[:1], column)
    known = alone != MISSING
    place = np.full(2 + max(int(part.max(initial=MISSING)) for part in joint), MISSING, dtype=np.int64)
    place[joint[0][known]] = alone[known]
    others = np.flatnonzero(place[:-1] == MISSING)
    place[others] = 1 + alone.max(initial=MISSING) + np.arange(len(others))
    return [place[part] for part in joint]


def wanted_codes(joint: Sequence[Codes], rows: Wanted) -> list[npt.NDArray[Any]]:
    """Codes of some rows of each table, in the smallest type that holds those of all."""
    small = np.result_type(*map(smallest_type, joint))
    return [(c if some is None else c[some]).astype(small) for c, some in zip(joint, rows, strict=True)]


def wanted_rows(table: Table, rows: Positions | None) -> Table:
    """The rows of a table at these positions; the table as it is for None."""
    return table if rows is None else table.take(rows)
