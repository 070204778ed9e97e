"""The gate that every suite gets: no number may prove that the release behaves like one with copied rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from synth_audit.core import registry
from synth_audit.core.measurement import Measurement
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.sensitivity import LEAK_EQUIVALENT
from synth_audit.core.verdict import GateResult, Result
from synth_audit.kernels.attack_success import corrected_level
from synth_audit.kernels.intervals import critical_value

PROVEN_LEAK = "proven_leak"
"""Identifier of the gate."""

TOLERATED = 0.05
"""Leak-equivalent that no number may prove to be exceeded: the upper end of the 1 to 5 % that limits are
stated in; a leak of that size discloses one person in twenty outright."""

TITLE = "No number proves that more than 5 % of the rows behave like copies"
_REASON = (
    "Limits bind the pessimistic end of an interval and leave honest releases of small tables room. That "
    "room must not shelter a release whose whole interval tells of a leak. So one leak-equivalent that lies "
    "wholly above 5 % holds the release, whatever the suite allows; its interval is corrected for their "
    "number, or an honest release would be held by chance."
)
_ADVICE = "The release carries what is true of its training rows only: use a generator with less capacity."
_UNFINISHED_ADVICE = "Allow more time (`execution.deadline`), and audit again."


def leak_result(outcomes: Sequence[AuditOutcome]) -> GateResult:
    """Judge the leak-equivalents of all privacy measurements together; without any, nothing is proven.

    What a privacy audit that was cut short would have proven nobody knows: then nothing passes here.
    """
    found = [
        m
        for o in outcomes
        if o.family == registry.PRIVACY and o.status is Status.MEASURED
        for m in o.measurements
        if m.id.quantity == LEAK_EQUIVALENT.name and m.interval is not None and m.finite and not m.short
    ]
    unfinished = next((o.audit for o in outcomes if o.family == registry.PRIVACY and o.cut_short), None)
    if not found:
        words = "No measurement has a leak-equivalent, so none proves a leak."
        return _undecided(unfinished) or GateResult(PROVEN_LEAK, TITLE, Result.PASS, True, _REASON, words)
    worst = max(found, key=lambda m: corrected_share(m, len(found)))
    low = corrected_share(worst, len(found))
    proven = low > TOLERATED
    if not proven and (undecided := _undecided(unfinished)):
        return undecided
    where = str(worst.id.derived_from)
    words = (
        f"{where} behaves like a release in which at least {100 * low:.1f} % of the rows were copied; of "
        f"the {len(found)} numbers that were looked at any might stand out by chance, which is allowed for."
        if proven
        else f"Of {len(found)} numbers none lies wholly above {100 * TOLERATED:.0f} %; {where} comes nearest."
    )
    assert worst.interval is not None
    return GateResult(
        gate=PROVEN_LEAK,
        title=TITLE,
        result=Result.FAIL if proven else Result.PASS,
        blocking=True,
        reason=_REASON,
        explanation=words,
        advice=_ADVICE if proven else "",
        measurement=worst.id,
        bound="value",
        value=low,
        level=worst.interval.level,
        maximum=TOLERATED,
    )


def _undecided(unfinished: str | None) -> GateResult | None:
    if unfinished is None:
        return None
    words = f"The audit {unfinished} did not come to an end, so nobody knows whether it would prove a leak."
    return GateResult(PROVEN_LEAK, TITLE, Result.INSUFFICIENT, True, _REASON, words, _UNFINISHED_ADVICE)


def corrected_low(m: Measurement, n: int) -> float:
    """The interval's lower end at the level at which n of them hold together, stretched as a normal one."""
    assert m.interval is not None
    return m.value - _stretch(m.interval.level, n) * (m.value - m.interval.low)


def corrected_share(m: Measurement, n: int) -> float:
    """The same end of a share, stretched as the logarithm of the share left where that is lower.

    Of a secret that hardly anybody's guess gets wrong a few wrong guesses decide, and the ratio of theirs
    between train and control is far from normal.
    """
    assert m.interval is not None
    low, normal = m.interval.low, corrected_low(m, n)
    if normal <= 0 or not low <= m.value < 1:  # below 0 nothing is said to be proven
        return normal
    left = 1 - m.value
    stretched = left * math.pow((1 - low) / left, _stretch(m.interval.level, n))
    return min(normal, 1 - stretched)


def _stretch(level: float, n: int) -> float:
    return critical_value(corrected_level(level, n)) / critical_value(level)
