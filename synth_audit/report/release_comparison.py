"""One number beside that of the last release, in words that respect both intervals."""

from __future__ import annotations

import math

from synth_audit.core.measurement import Direction, Measurement
from synth_audit.report import words
from synth_audit.store.evidence import Evidence


def compared(now: Measurement, previous: Evidence | None) -> str:
    """``no worse: was 1.2 % (0.4 to 2.0 %)``; empty without an earlier release."""
    if previous is None:
        return ""
    before = next((m for m in previous.measurements if m.id == now.id and math.isfinite(m.value)), None)
    if before is None:
        return "not measured then"
    told = words.number(before.value, before.unit)
    if before.interval is not None:
        places = words.decimals(before.unit, before.value, low=before.interval.low, high=before.interval.high)
        span = words.interval(before.interval.low, before.interval.high, before.unit, places)
        told = f"{words.number(before.value, before.unit, places)} ({span})"
    return f"{change(now, before)}: was {told}"


def change(now: Measurement, before: Measurement) -> str:
    """Whether a number differs from an earlier one: where intervals overlap it is not distinguishable."""
    low, high = _ends(now)
    was_low, was_high = _ends(before)
    if low <= was_high and was_low <= high:
        return "not distinguishable"
    if now.direction is Direction.NEUTRAL:
        return "changed"
    return "worse" if (low > was_high) == (now.direction is Direction.LOWER) else "better"


def _ends(m: Measurement) -> tuple[float, float]:
    return (m.interval.low, m.interval.high) if m.interval else (m.value, m.value)
