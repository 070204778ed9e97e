"""Measurements as a gate sees them: with what the known-answer check says of the instrument."""

from __future__ import annotations

from dataclasses import replace

from synth_audit.core import registry
from synth_audit.core.audit import Leak
from synth_audit.core.measurement import Direction, Measurement
from synth_audit.core.outcome import AuditOutcome
from synth_audit.core.sensitivity import Sensitivity
from synth_audit.judging.gate_decision import Row


def sensitivity_checked_rows(outcome: AuditOutcome) -> list[Row]:
    """The measurements of an audit as a gate sees them, with what the check says of each.

    A privacy measurement that the check did not try, or found blind, is not vouched for; what is derived from
    another stands and falls with it. Measurements of other families need nobody to vouch for them, nor do
    those of an audit that states its own limits.
    """
    rows = [Row.of(m) for m in outcome.measurements]
    if outcome.family != registry.PRIVACY or (outcome.info is not None and outcome.info.leak is Leak.OWN):
        return rows
    return [_sensitivity_checked(row, m, outcome) for row, m in zip(rows, outcome.measurements, strict=True)]


def _sensitivity_checked(row: Row, m: Measurement, outcome: AuditOutcome) -> Row:
    derived = m.id.derived_from is not None
    about = m.id.derived_from or m.id
    response = next((r for r in outcome.responses if r.id == about), None)
    if response is None:
        return replace(row, blind=f"the known-answer check did not try {about if derived else 'it'}")
    if response.sensitivity is Sensitivity.INSENSITIVE or response.full is None:
        reason = response.reason or "no answer to planted leaks was kept"
        return replace(row, blind=f"{about}: {reason}" if derived else reason)
    if derived:
        return row
    worse = "up" if response.direction is Direction.LOWER else "down"
    return replace(row, copy_low=response.full.low, copy_high=response.full.high, worse=worse)
