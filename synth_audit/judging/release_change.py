"""Whether a release is worse than an earlier one, number by number, in respect of both intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from synth_audit.core.measurement import Direction, Measurement
from synth_audit.core.verdict import GateResult

NOT_DISTINGUISHABLE, WORSE, BETTER, CHANGED = "not distinguishable", "worse", "better", "changed"


def change(now: Measurement, before: Measurement) -> str:
    """How a number differs from an earlier one: where their intervals overlap it is not distinguishable."""
    low, high = _ends(now)
    was_low, was_high = _ends(before)
    if low <= was_high and was_low <= high:
        return NOT_DISTINGUISHABLE
    if now.direction is Direction.NEUTRAL:
        return CHANGED
    return WORSE if (low > was_high) == (now.direction is Direction.LOWER) else BETTER


def worse_gates(
    results: Sequence[GateResult], now: Sequence[Measurement], before: Sequence[Measurement]
) -> tuple[GateResult, ...]:
    """The deciding gates whose number is worse than it was; without an interval then or now it says nothing.

    Two intervals of 95 % miss each other on the harmful side by chance in about 3 of 1,000 comparisons.
    """
    known, was = ({m.id: m for m in found if m.interval and m.finite} for found in (now, before))
    return tuple(
        g
        for g in results
        if g.blocking
        and g.measurement in known
        and g.measurement in was
        and change(known[g.measurement], was[g.measurement]) == WORSE
    )


def _ends(m: Measurement) -> tuple[float, float]:
    ends = (m.interval.low, m.interval.high) if m.interval else (m.value, m.value)
    return ends if all(map(math.isfinite, ends)) else (-math.inf, math.inf)
