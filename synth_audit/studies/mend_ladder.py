"""What a mend tries: coarser values of the columns that a refusal names, in a few rungs from small to large.

How coarse a rung is, the release says and never train: ends lie where enough of its rows lie beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow.compute as pc

from synth_audit.core.arrays import Floats
from synth_audit.core.coarsening import holds_label, spacing
from synth_audit.core.kind import Order
from synth_audit.core.plan_sections.coarsen import INTO, ColumnCoarsening, span_grid
from synth_audit.core.resolution import ValueGrid
from synth_audit.core.schema import Column, quantitative
from synth_audit.core.table import Table

_PARTS = (100, 50, 25, 12, 6)
"""Into how many steps a rung divides the middle nine tenths of a column of numbers."""

_TAILS = (0.005, 0.01, 0.02, 0.05, 0.1)
"""Share of the release beyond either end of a rung, but at least :data:`_TOGETHER` rows."""

_TOGETHER = 20
_RARE = (5, 10, 20, 50, 100)
"""Rows below which a rung merges labels."""

_SPANS = ("1 minute", "1 hour", "1 day", "7 days", "1 month", "1 year")
_NICE = (1, 2, 5)

RUNGS = len(_PARTS)


def rung(number: int, names: Iterable[str], release: Table) -> dict[str, ColumnCoarsening]:
    """Rules for the columns, ``number`` in 0 … RUNGS − 1; without those of which nothing can be made coarser.

    Args:
        release: as the generator drew it.
    """
    rules = {name: _rule(number, release.schema[name], release) for name in names}
    return {name: ColumnCoarsening.model_validate(rule) for name, rule in rules.items() if rule}


def _rule(number: int, column: Column, release: Table) -> Mapping[str, Any]:
    if quantitative([column]):
        values = release.numbers(column.name)
        known = values[~np.isnan(values)]
        if not len(known):
            return {}
        return (_moments if column.kind.order is Order.DATES else _numbers)(number, column, known)
    if column.kind.fixed_domain is not None or not holds_label(column, INTO):
        return {}
    counts = pc.value_counts(release.texts(column.name).drop_null()).to_pylist()
    rarer = any(x["counts"] < _RARE[number] for x in counts)
    return {"merge_rarer_than": _RARE[number]} if rarer else {}


def _numbers(number: int, column: Column, values: Floats) -> Mapping[str, Any]:
    known = column.resolution.grid if column.resolution and not column.resolution.rounded else ValueGrid(0.0)
    least = max(known.numerator / known.denominator, spacing(column))
    low, high = np.quantile(values, (0.05, 0.95))
    step = _nice(((high - low) or float(np.ptp(values))) / _PARTS[number], least)
    grid = ValueGrid.of_step(step) if step else None
    found: dict[str, Any] = {"round_to": _plain(step)} if step > least else {}
    return found | {key: _plain(end) for key, end in _ends(number, values, grid).items()}


def _moments(number: int, column: Column, values: Floats) -> Mapping[str, Any]:
    least = max(spacing(column), _size(column.resolution.grid) if column.resolution else 0.0)
    coarser = [s for s in _SPANS if _size(span_grid(s)) > least]
    if not coarser:
        return {}
    span = coarser[min(number, len(coarser) - 1)]
    ends = _ends(number, values, span_grid(span))
    return {"round_to": span} | {key: _moment(end) for key, end in ends.items()}


def _ends(number: int, values: Floats, grid: ValueGrid | None) -> dict[str, float]:
    """Bottom and top, as far as values lie beyond them; on the grid, inwards."""
    ordered = np.sort(values)
    for beyond in (max(_TOGETHER, int(_TAILS[number] * len(ordered))), _TOGETHER):
        if 2 * beyond > len(ordered):
            continue
        low, high = float(ordered[beyond - 1]), float(ordered[-beyond])
        if grid is not None:
            low, high = _on_grid(grid, low, up=True), _on_grid(grid, high, up=False)
        if low < high:
            break  # else most rows hold one and the same number, and few others are left beside it
    else:
        return {}
    found = {"bottom": low} if low > ordered[0] else {}
    return found | ({"top": high} if high < ordered[-1] else {})


def _on_grid(grid: ValueGrid, value: float, *, up: bool) -> float:
    """The next number on the grid, upwards or downwards."""
    near = float(grid.nearest(np.array([value]))[0])
    if (near < value) if up else (near > value):
        step = 31 * 86_400e6 if grid.calendar else grid.numerator / grid.denominator
        step = 12 * step if grid.calendar == "Y" else step
        near = float(grid.nearest(np.array([near + step if up else near - step]))[0])
    return near


def _nice(step: float, least: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is no smaller; a multiple of ``least`` if that is one
    itself, and that at least."""
    if least and step <= least:
        return least
    unit = least or 1.0
    power = np.floor(np.log10(step / unit)) if step > 0 else 0.0
    sizes = (n * 10.0 ** (power + i) * unit for i in (0, 1) for n in _NICE)
    return float(f"{next((x for x in sizes if x >= step * (1 - 1e-9)), step):.12g}")


def _size(grid: ValueGrid) -> float:
    """Microseconds between two moments of a grid, about."""
    days = {"M": 30.0, "Y": 365.0}
    return days[grid.calendar] * 86_400e6 if grid.calendar else grid.numerator / grid.denominator


def _plain(number: float) -> float:
    return int(number) if float(number).is_integer() else float(number)


def _moment(microseconds: float) -> datetime:
    return datetime(1970, 1, 1) + timedelta(microseconds=microseconds)
