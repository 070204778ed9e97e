"""One number beside that of the last release, in words that respect both intervals."""

from __future__ import annotations

import math

from synth_audit.core.measurement import Measurement
from synth_audit.judging.release_change import change
from synth_audit.report import words
from synth_audit.store.evidence import Evidence


def compared(now: Measurement, previous: Evidence | None) -> str:
    """``not distinguishable: was 1.2 % (0.4 to 2.0 %)``; empty without an earlier release."""
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
