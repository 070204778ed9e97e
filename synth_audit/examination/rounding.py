"""How exactly usefulness is published: as needed to judge it, and not so exactly that rows follow from it."""

from __future__ import annotations

import math
from dataclasses import replace

from synth_audit.core.measurement import Estimate, Interval, Measurement, Reference
from synth_audit.core.outcome import AuditOutcome

DIGITS = 4
"""Decimals of a number that compares tables. All digits of several such numbers are equations for counts."""


def rounded_for_publication(outcome: AuditOutcome) -> AuditOutcome:
    """An outcome whose measurements are rounded; an interval still holds its value."""
    return replace(outcome, measurements=tuple(map(_rounded, outcome.measurements)))


def _rounded(m: Measurement) -> Measurement:
    reference = m.reference and Reference(
        _short(m.reference.value),
        m.reference.meaning,
        _ends(m.reference.interval),
        m.reference.candidate
        and Estimate(_short(m.reference.candidate.value), _ends(m.reference.candidate.interval)),
    )
    return replace(m, value=_short(m.value), interval=_ends(m.interval), reference=reference)


def _ends(interval: Interval | None) -> Interval | None:
    return interval and replace(interval, low=_short(interval.low), high=_short(interval.high))


def _short(x: float) -> float:
    return round(x, DIGITS) if math.isfinite(x) else x
