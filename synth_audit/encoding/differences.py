"""Differences of columns in one unit, as columns of their own: they stay when all are shifted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import TIME
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.anchored_parts import ScaledNumbers, anchored_parts
from synth_audit.encoding.known_columns import KnownColumn
from synth_audit.kernels.robust_scale import RobustScale

MOST, MOST_NUMBERS = 12, 4
"""Differences that are taken at most, and such of other numbers than dates and times among them."""

_OVERLAP = 0.5
"""Part of the narrower central range that must lie in the other for numbers to be of one sort."""


def differences(
    known: Sequence[KnownColumn],
    tables: Sequence[Table],
    features: Sequence[Column],
    reference: Sequence[Table],
) -> list[KnownColumn]:
    """What pairs of columns differ by, of those whose differences have a meaning.

    These are dates and times with one another; and numbers of the same unit, as far as there is one, that
    are given equally finely and lie in one range: those that overlap most.

    Args:
        known: columns that vary, whose rows are those of the tables. features: all columns.
        reference: train first, and control.
    """
    place = {column.name: i for i, column in enumerate(known)}
    varying = [column for column in features if column.name in place]
    numbers = [p for p in anchored_parts(reference, varying) if isinstance(p, ScaledNumbers)]
    pairs = [(a, b) for a, b in combinations(numbers, 2) if a.part.unit == b.part.unit is not None]
    times = [pair for pair in pairs if pair[0].part.unit == TIME]
    others = sorted(
        (pair for pair in pairs if pair[0].part.unit != TIME and _overlap(*pair) >= _OVERLAP),
        key=lambda pair: -_overlap(*pair),
    )
    return [
        _difference(a, b, tables, reference, (place[a.column.name], place[b.column.name]))
        for a, b in (times + others[:MOST_NUMBERS])[:MOST]
    ]


def _difference(
    first: ScaledNumbers,
    second: ScaledNumbers,
    tables: Sequence[Table],
    reference: Sequence[Table],
    parents: tuple[int, int],
) -> KnownColumn:
    scale = RobustScale.of(_apart(first, second, reference))
    name = f"{second.column.name} less {first.column.name}"
    column = KnownColumn.of_numbers(name, *scale.read(_apart(first, second, tables)))
    return replace(column, parents=parents, unit=first.part.unit)


def _apart(first: ScaledNumbers, second: ScaledNumbers, tables: Sequence[Table]) -> Floats:
    """Second less first, NaN where either is missing; rows of all tables one below the other."""
    a, b = (
        np.concatenate([side.part.read(table.column(side.column.name)) for table in tables])
        for side in (first, second)
    )
    with np.errstate(over="ignore"):
        found = b - a
    return np.where(np.isfinite(found), found, np.nan)


def _overlap(first: ScaledNumbers, second: ScaledNumbers) -> float:
    """Part of the narrower central range that lies in the other; 0 where they are not given as finely."""
    a, b = first.scale, second.scale
    if first.column.resolution != second.column.resolution or not np.isfinite([a.span, b.span]).all():
        return 0.0
    high = min(a.centre + a.span / 2, b.centre + b.span / 2)
    low = max(a.centre - a.span / 2, b.centre - b.span / 2)
    return max(0.0, high - low) / min(a.span, b.span)
