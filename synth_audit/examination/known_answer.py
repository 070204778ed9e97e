"""The known-answer check: would this instrument have seen a leak in this table, and how small a one?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from synth_audit.core.measurement import Direction, Interval, Measurement, Reference
from synth_audit.core.outcome import AuditOutcome
from synth_audit.core.sensitivity import (
    CHECK_CUT_SHORT,
    LEAK_EQUIVALENT,
    PlantedLeaks,
    PlantedResult,
    Sensitivity,
    SensitivityCurve,
)
from synth_audit.kernels.sensitivity_curve import (
    Ends,
    leak_equivalent,
    minimum_detectable,
    oriented,
    separated,
)

NO_LEAK = Reference(0.0, "a release without a copied row")


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
    found = [_found(m, outcome) for outcome in planted]
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
            "a full copy of the training rows gives no clearly worse value than new people do", answers
        )
    null = _null(m, clean) if proportional else clean.value
    assert m.interval is not None
    half_width = _clean_half_width(m, found[0], answers[0])
    span, level = full.value - null, m.interval.level
    least = minimum_detectable(span, half_width, level) if proportional else None
    sign = 1 if m.direction is Direction.LOWER else -1
    return SensitivityCurve(
        m.id, m.direction, Sensitivity.SENSITIVE, "", answers, sign * null, half_width, least
    )


def _clean_half_width(m: Measurement, planted: Measurement | None, clean: PlantedResult) -> float:
    """Half of the interval that a clean release would come with at the candidate's number of attempts.

    The candidate's own interval may be wider or narrower because it leaks.
    """
    made = planted.n_achieved if planted else None
    scale = math.sqrt(made / m.n_achieved) if made and m.n_achieved else 1.0
    return scale * (clean.high - clean.low) / 2


def _null(m: Measurement, clean: Ends) -> float:
    """The clean value, higher being worse: what is known exactly, unless the clean release shows less,
    for a null that is too high would make leaks look small."""
    if m.reference is None or m.reference.interval is not None or not math.isfinite(m.reference.value):
        return clean.value
    known = m.reference.value if m.direction is Direction.LOWER else -m.reference.value
    return min(known, clean.high)


def _found(m: Measurement, outcome: AuditOutcome) -> Measurement | None:
    return next((x for x in outcome.measurements if x.id == m.id), None)


def _ends(m: Measurement, answer: PlantedResult) -> Ends:
    lower_is_safer = m.direction is Direction.LOWER
    return oriented(answer.value, answer.low, answer.high, lower_is_safer=lower_is_safer)


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
        oriented(m.value, m.interval.low, m.interval.high, lower_is_safer=m.direction is Direction.LOWER),
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
