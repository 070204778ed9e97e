"""Tables prepared for counting the columns in which records disagree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Floats, Integers
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.mixed_hamming import FAR, MISSING_NUMBER, NEAR, MixedCells


def cells(tables: Sequence[Table], columns: Sequence[Column]) -> list[MixedCells]:
    """Prepare several tables, the first of which (train) sets the ranges.

    A numeric column without range in train tells no training rows apart and is left out.
    """
    numbers: list[list[Floats]] = []
    labels: list[list[Integers]] = []
    for column in columns:
        part = column.kind.part
        if not isinstance(part, NumberPart):
            labels.append(codes(tables, column))
            continue
        values = [part.read(table.column(column.name)) for table in tables]
        known = values[0][~np.isnan(values[0])]
        if len(known) and known.max() > known.min():
            low, unit = known.min(), (known.max() / NEAR - known.min() / NEAR)
            numbers.append([_scaled(v, low, unit) for v in values])
    return [
        MixedCells(
            np.array([column[i] for column in numbers], np.float32).reshape(-1, table.n_rows).T.copy(),
            np.array([column[i] for column in labels], np.int32).reshape(-1, table.n_rows).T.copy(),
        )
        for i, table in enumerate(tables)
    ]


def _scaled(values: Floats, low: float, unit: float) -> Floats:
    with np.errstate(over="ignore"):  # infinitely far is far
        inside = np.clip(values / unit - low / unit, -FAR, FAR)
    return np.where(np.isnan(values), MISSING_NUMBER, inside)
