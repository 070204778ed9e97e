"""What numbers a column may hold: its ends, and how far apart neighbours are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.coarsening import spacing
from synth_audit.core.kind import Bounds
from synth_audit.core.resolution import Resolution, ValueGrid
from synth_audit.core.schema import Column

_TOGETHER = 10
"""Extreme values whose mean stands for the end of a range, so that nobody's own extreme is drawn."""


@dataclass(frozen=True)
class NumberDomain:
    """Multiples of ``step`` from ``low`` to ``high``; any number between where it is 0."""

    low: float
    high: float
    step: float


def number_domain(column: Column, bounds: Bounds, resolution: Resolution | None) -> NumberDomain:
    """The values within the bounds that the column can hold, by its resolution or else how it is stored."""
    if resolution is None:
        step = spacing(column)
        return NumberDomain(*(ValueGrid(step).within(bounds) if step else bounds), step)
    return NumberDomain(
        *resolution.grid.within(bounds), 0.0 if resolution.grid.calendar else resolution.grid.step
    )


def ends_of(values: Floats) -> Bounds | None:
    """The mean of the ten smallest and that of the ten largest values, of fewer where there are few."""
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return None
    some = max(1, min(_TOGETHER, len(known) // 4))
    low, high = known[0], known[-1]  # differences to them: the mean of equal values is then that value
    return float(low + (known[:some] - low).mean()), float(high + (known[-some:] - high).mean())
