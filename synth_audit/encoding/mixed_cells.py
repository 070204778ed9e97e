"""Tables prepared for counting the columns in which records disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Floats, Floats32
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.anchored_parts import (
    AnchoredPart,
    ScaledNumbers,
    SharedLabels,
    Vectors,
    anchored_parts,
    varies,
)
from synth_audit.encoding.codes import Wanted, codes, wanted_codes, wanted_rows
from synth_audit.kernels import robust_scale
from synth_audit.kernels.mixed_hamming import FAR, MISSING_NUMBER, NEAR, MixedCells

_LABEL = 1e7
"""Numbers that are labels are put at multiples of it: beyond all numbers, below what is missing."""

_LABEL_BESIDE = 0.5
"""Weight of a label beside other parts of its column, few labels or many. An equal label among thousands
gives a person away where a number that is near does not: with less weight, strangers whose numbers are near
by chance hide records of which some codes were copied."""

_NEAR_ROBUST = 18
"""Two numbers wholly disagree when they differ by 1/18 of the robust range or more. Of a normal column that
is a fifth of its deviation, as 1/30 of the whole range of a thousand rows is."""

_NEAR_VECTORS = 2
"""Two vectors wholly disagree when they differ by 1/2 of what unrelated ones do, or more."""


def cells(
    tables: Sequence[Table], columns: Sequence[Column], *, rows: Wanted | None = None
) -> list[MixedCells]:
    """Prepare several tables as published, the first of which (train) sets the ranges.

    A numeric column without range in train tells no training rows apart and is left out.

    Args:
        rows: positions of those that are wanted of each table, None for all; all of all if left out.
    """
    wanted = rows or [None] * len(tables)
    few = [wanted_rows(t, some) for t, some in zip(tables, wanted, strict=True)]
    numbers: list[list[Floats32]] = []
    labels: list[list[npt.NDArray[Any]]] = []
    for column in columns:
        part = column.kind.part
        if not isinstance(part, NumberPart):
            labels.append(wanted_codes(codes(tables, column), wanted))
            continue
        known = part.read(tables[0].column(column.name))
        known = known[~np.isnan(known)]
        if len(known) and known.max() > known.min():
            low, unit = known.min(), (known.max() / NEAR - known.min() / NEAR)
            numbers.append([_scaled(part.read(t.column(column.name)), low, unit) for t in few])
    weights = [1.0] * (len(numbers) + len(labels))
    return [
        MixedCells.of(table.n_rows, [x[i] for x in numbers], [x[i] for x in labels], weights)
        for i, table in enumerate(few)
    ]


def robust_cells(
    tables: Sequence[Table],
    columns: Sequence[Column],
    *,
    beside: Sequence[Table] = (),
    rows: Wanted | None = None,
) -> list[MixedCells]:
    """Prepare several tables by all parts of their columns, on the robust scale of the first one (train).

    A column that is constant in train tells no training rows apart and is left out. A label weighs half of
    its column, however many there are.

    Args:
        beside: further real tables whose rows set the scale with those of the first.
        rows: as in :func:`cells`.
    """
    wanted = rows or [None] * len(tables)
    few = [wanted_rows(t, some) for t, some in zip(tables, wanted, strict=True)]
    kept = [c for c in columns if varies(tables[0], c)]
    parts = anchored_parts([tables[0], *beside], kept)
    numbers = [p for p in parts if not isinstance(p, SharedLabels)]
    labels = [p for p in parts if isinstance(p, SharedLabels)]
    joint = [wanted_codes(p.read(tables), wanted) for p in labels]
    of_labels = {p.column.name: p.part.weight for p in labels}
    weights = [w for p in numbers for w in _weights(p, of_labels.get(p.column.name, 0.0))]
    weights += [1.0 if p.part.weight == 1 else _LABEL_BESIDE for p in labels]
    return [
        MixedCells.of(
            table.n_rows,
            [x for p in numbers for x in _coordinates(p, table)],
            [codes_of_tables[i] for codes_of_tables in joint],
            weights,
        )
        for i, table in enumerate(few)
    ]


def _weights(part: AnchoredPart, label: float) -> list[float]:
    """Weight of each coordinate of a part beside a label that has such a weight, 0 where there is none."""
    width = part.part.width if isinstance(part, Vectors) else 1
    beside = (1 - _LABEL_BESIDE) / (1 - label) if label else 1.0
    return [part.part.weight * beside / width] * width


def _coordinates(part: ScaledNumbers | Vectors, table: Table) -> list[Floats32]:
    """A part in units of what counts as near, one array of shape (n,) per coordinate."""
    if isinstance(part, Vectors):
        placed = part.read(table) * (_NEAR_VECTORS / part.spread)
        return list(np.nan_to_num(placed, nan=MISSING_NUMBER).T.astype(np.float32))
    numbers, what = part.read(table)
    inside = np.clip(numbers * _NEAR_ROBUST, -FAR, FAR)
    placed = np.where(what == robust_scale.REGULAR, inside, what * _LABEL)
    return [np.where(what == robust_scale.MISSING, MISSING_NUMBER, placed).astype(np.float32)]


def _scaled(values: Floats, low: float, unit: float) -> Floats32:
    with np.errstate(over="ignore"):  # infinitely far is far
        inside = np.clip(values / unit - low / unit, -FAR, FAR)
    return np.where(np.isnan(values), MISSING_NUMBER, inside).astype(np.float32)
