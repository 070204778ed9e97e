"""The known-answer check: would this instrument have seen a leak in this table, and how small a one?"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import NamedTuple

from synth_audit.findings.detection_power import POWER
from synth_audit.findings.measurement import Direction, Interval, Measurement, Reference
from synth_audit.findings.sensitivity import (
    CHECK_CUT_SHORT,
    LEAK_EQUIVALENT,
    PlantedLeaks,
    PlantedResult,
    Sensitivity,
    SensitivityCurve,
)
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.stats.resampling import critical_value

NO_LEAK = Reference(0.0, "a release without a copied row")


class Ends(NamedTuple):
    """A value with its interval, on a scale where higher is worse."""

    value: float
    low: float
    high: float


def oriented(value: float, low: float, high: float, direction: Direction) -> Ends:
    """The same numbers on a scale where higher is worse."""
    return Ends(value, low, high) if direction is Direction.LOWER else Ends(-value, -high, -low)


def separated(clean: Ends, full: Ends) -> bool:
    """True when the interval at a full copy lies wholly beyond the one at a clean release."""
    return full.low > clean.high and full.value > clean.value


def leak_equivalent(value: Ends, clean: Ends, full: Ends) -> Ends:
    """Share of copied rows that would give the value, on the line from a clean release to a full copy.

    ``f = (v − c) / (w − c)``. Interval by the method of variance estimates recovery: the distances of the
    three values to their interval ends, weighted by 1, 1 − f and f, are added in squares,
    ``low = f − sqrt((v − l_v)² + ((1 − f)(u_c − c))² + (f (u_w − w))²) / (w − c)``, ``high`` likewise with
    the other ends. Where the clean value is known without error, its interval has no width.
    Source: Zou & Donner 2008 for the method; the restatement is ours.

    Returns:
        Unclipped: below 0 when the value is better than a clean release shows.
    """
    span = full.value - clean.value
    f = (value.value - clean.value) / span
    below = math.hypot(
        value.value - value.low, (1 - f) * (clean.high - clean.value), f * (full.high - full.value)
    )
    above = math.hypot(
        value.high - value.value, (1 - f) * (clean.value - clean.low), f * (full.value - full.low)
    )
    return Ends(f, f - below / span, f + above / span)


def minimum_detectable(span: float, half_width: float, level: float) -> float | None:
    """Smallest share of copies that shows with probability :data:`POWER`; None when even all would not.

    ``f = (z + z_0.95) / z · half_width / span``. At a leak of f the value is normal around
    ``clean + f · span`` with ``sd = half_width / z``. Its interval lies beyond the clean value with
    probability ``Φ(f · span / sd − z)``.
    """
    z = critical_value(level)
    share = (1 + NormalDist().inv_cdf(POWER) / z) * max(half_width, 0.0) / span
    return share if share <= 1 else None


def with_answers(
    outcome: AuditOutcome, planting: PlantedLeaks, planted: Sequence[AuditOutcome]
) -> AuditOutcome:
    """The outcome with a response of each directed measurement, and the leak-equivalents of those that see.

    Args:
        planted: outcomes of the same audit on the planted releases, one for each of ``planting.shares``.
    """
    responses = tuple(
        _respond(m, planting, planted, proportional=_proportional(outcome, m))
        for m in outcome.measurements
        if m.direction is not Direction.NEUTRAL and m.interval is not None
    )
    measured = {m.id: m for m in outcome.measurements}
    restated = tuple(
        _leak_equivalent_of(measured[r.id], r)
        for r in responses
        if r.sensitivity is Sensitivity.SENSITIVE
        and _proportional(outcome, measured[r.id])
        and measured[r.id].finite
    )
    return replace(outcome, responses=responses, measurements=(*outcome.measurements, *restated))


def _respond(
    m: Measurement, planting: PlantedLeaks, planted: Sequence[AuditOutcome], *, proportional: bool
) -> SensitivityCurve:
    def blind(reason: str, answers: tuple[PlantedResult, ...] = ()) -> SensitivityCurve:
        return SensitivityCurve(m.id, m.direction, Sensitivity.INSENSITIVE, reason, answers)

    if planting.reason:
        return blind(f"no leak could be planted: {planting.reason}")
    if any(outcome.cut_short for outcome in planted):
        return blind(CHECK_CUT_SHORT)
    found = [next((x for x in outcome.measurements if x.id == m.id), None) for outcome in planted]
    answers = tuple(
        PlantedResult(share, x.value, x.interval.low, x.interval.high)
        for share, x in zip(planting.shares, found, strict=True)
        if x is not None and x.finite and x.interval is not None
    )
    if len(answers) < len(planting.shares) or not answers:
        return blind("it could not be measured on every planted leak", answers)
    clean, full = _ends(m, answers[0]), _ends(m, answers[-1])
    if not separated(clean, full):
        return blind(
            "on this table the test cannot tell even a full copy of the training rows from new people, so "
            "it says nothing",
            answers,
        )
    null = _null(m, clean) if proportional else clean.value
    assert m.interval is not None
    # Half of the interval that a clean release would come with at the candidate's number of attempts: the
    # candidate's own may be wider or narrower because it leaks.
    made = found[0].n_achieved if found[0] else None
    scale = math.sqrt(made / m.n_achieved) if made and m.n_achieved else 1.0
    half_width = scale * (answers[0].high - answers[0].low) / 2
    span, level = full.value - null, m.interval.level
    least = minimum_detectable(span, half_width, level) if proportional else None
    sign = 1 if m.direction is Direction.LOWER else -1
    return SensitivityCurve(
        m.id, m.direction, Sensitivity.SENSITIVE, "", answers, sign * null, half_width, least
    )


def _null(m: Measurement, clean: Ends) -> float:
    """The clean value, higher being worse: what is known exactly, unless the clean release shows less,
    for a null that is too high would make leaks look small."""
    if m.reference is None or m.reference.interval is not None or not math.isfinite(m.reference.value):
        return clean.value
    known = m.reference.value if m.direction is Direction.LOWER else -m.reference.value
    return min(known, clean.high)


def _ends(m: Measurement, answer: PlantedResult) -> Ends:
    return oriented(answer.value, answer.low, answer.high, m.direction)


def _proportional(outcome: AuditOutcome, m: Measurement) -> bool:
    return outcome.info is not None and outcome.info.quantity(m.id.quantity).proportional


def _leak_equivalent_of(m: Measurement, response: SensitivityCurve) -> Measurement:
    """The measurement as a share of copied rows."""
    assert m.interval is not None
    assert response.clean is not None
    assert response.full is not None
    clean = _ends(m, response.clean)
    null = _null(m, clean)
    exact = null != clean.value
    found = leak_equivalent(
        oriented(m.value, m.interval.low, m.interval.high, m.direction),
        Ends(null, null, null) if exact else clean,
        _ends(m, response.full),
    )
    restated = LEAK_EQUIVALENT.at(
        found.value,
        interval=Interval(found.low, found.high, m.interval.level, f"{m.interval.method}, restated"),
        n_requested=m.n_requested,
        n_achieved=m.n_achieved,
        n_minimum=m.n_minimum,
        reference=NO_LEAK,
    )
    return replace(restated, id=LEAK_EQUIVALENT.derived(m.id))
