"""A release beside an earlier one, and a suite beside the one that ships."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import cache

from synth_audit.build import resource_folder
from synth_audit.findings.measurement import Direction, Measurement
from synth_audit.findings.verdict import GateResult
from synth_audit.verdict.suite import Gate, Suite, load_suite

Ends = tuple[float, float]

USUAL = "release"
"""The suite that a plan gets when it names none."""


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


def weaker_gates(suite: Suite) -> tuple[str, ...]:
    """Names of the blocking gates on measurements in the usual suite that no blocking gate here holds as
    strictly; none of a suite that ships."""
    if suite.sha256 in {shipped.sha256 for shipped in _shipped().values()}:
        return ()
    return tuple(g.id for g in usual_gates() if not any(_as_strict(own, g) for own in _blocking(suite)))


def usual_gates() -> tuple[Gate, ...]:
    """The blocking gates on measurements of the usual suite."""
    return _blocking(_shipped()[USUAL])


def _blocking(suite: Suite) -> tuple[Gate, ...]:
    return tuple(g for g in suite.measured if g.blocking)


def _as_strict(own: Gate, usual: Gate) -> bool:
    ours, theirs = own.limit, usual.limit
    assert ours is not None
    assert theirs is not None
    same = ours.applies_to(theirs.measurement) and ours.compared in (theirs.compared, "both")
    above = theirs.maximum is None or (ours.maximum is not None and ours.maximum <= theirs.maximum)
    below = theirs.minimum is None or (ours.minimum is not None and ours.minimum >= theirs.minimum)
    return same and above and below and (usual.optional or not own.optional)


@cache
def _shipped() -> dict[str, Suite]:
    folder = resource_folder("expectations")
    return {path.stem: load_suite(path.name, folder) for path in sorted(folder.glob("*.json"))}
