"""Whether a release is worse than an earlier one, number by number, in respect of both intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from synth_audit.core.measurement import Direction, Measurement
from synth_audit.core.verdict import GateResult

Ends = tuple[float, float]


class Change(StrEnum):
    """What became of a number from one audit to the other."""

    BETTER = "better"
    WORSE = "worse"
    CHANGED = "changed"
    SAME = "unchanged"
    ALIKE = "not distinguishable"
    ALONE = "in one audit only"
    UNKNOWN = "precision not known"


def change(now: Measurement, before: Measurement) -> Change:
    """How a number differs from an earlier one."""
    return change_of_ends(_ends(now), _ends(before), now.direction)


def change_of_ends(now: Ends, before: Ends, direction: Direction) -> Change:
    """How an interval differs from an earlier one; with a point in common they are not told apart."""
    if now[0] <= before[1] and before[0] <= now[1]:
        return Change.ALIKE
    if direction is Direction.NEUTRAL:
        return Change.CHANGED
    return Change.WORSE if (now[0] > before[1]) == (direction is Direction.LOWER) else Change.BETTER


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
        and change(known[g.measurement], was[g.measurement]) is Change.WORSE
    )


def _ends(m: Measurement) -> Ends:
    ends = (m.interval.low, m.interval.high) if m.interval else (m.value, m.value)
    return ends if all(map(math.isfinite, ends)) else (-math.inf, math.inf)
