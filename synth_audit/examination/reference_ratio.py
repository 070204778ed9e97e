"""Sets each measurement of usefulness in relation to what real rows of the same people reach."""

from __future__ import annotations

import math
from dataclasses import replace

from synth_audit.core import registry
from synth_audit.core.measurement import Direction, Estimate, Interval, Measurement
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.sensitivity import REFERENCE_RATIO


def with_ratios(outcome: AuditOutcome) -> AuditOutcome:
    """An outcome of fidelity or utility with its ratios added; any other as it is."""
    if outcome.family == registry.PRIVACY or outcome.status is not Status.MEASURED or outcome.info is None:
        return outcome
    found = []
    for m in outcome.measurements:
        quantity = outcome.info.quantity(m.id.quantity)
        if (
            quantity.range[0] >= 0
            and quantity.direction is not Direction.NEUTRAL
            and (made := ratio(m)) is not None
        ):
            found.append(made)
    return replace(outcome, measurements=(*outcome.measurements, *found))


def ratio(m: Measurement) -> Measurement | None:
    """``value / reference`` at one number of rows; None where the reference was not measured, or is 0.

    The interval reaches from ``low / high of the reference`` to ``high / low of the reference``, which
    covers at least as often as the two intervals, and has no upper end where the reference may be 0.
    """
    if m.reference is None or m.reference.interval is None or not m.reference.value > 0:
        return None
    reference, beside = m.reference.value, m.reference.interval
    own = m.reference.candidate or Estimate(m.value, m.interval)
    interval = None
    if own.interval is not None:
        low = max(own.interval.low, 0.0) / max(beside.high, reference)
        high = max(own.interval.high, 0.0) / beside.low if beside.low > 0 else math.inf
        method = f"{own.interval.method}, over that of the reference"
        interval = Interval(low, high, own.interval.level, method)
    made = REFERENCE_RATIO.at(
        own.value / reference,
        interval=interval,
        n_requested=m.n_requested,
        n_achieved=m.n_achieved,
        n_minimum=m.n_minimum,
    )
    return replace(made, id=REFERENCE_RATIO.derived(m.id), direction=m.direction)
