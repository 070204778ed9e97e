"""Measurements as a gate sees them: with what the known-answer check says of the instrument."""

from __future__ import annotations

from dataclasses import replace

from synth_audit.core import registry
from synth_audit.core.measurement import Direction, Measurement
from synth_audit.core.outcome import AuditOutcome
from synth_audit.core.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP, Sensitivity
from synth_audit.judging.decide import Row


def sensitivity_checked_rows(outcome: AuditOutcome) -> list[Row]:
    """The measurements of an audit as a gate sees them, with what the check says of each.

    A privacy measurement that the check did not try, or found blind, is not vouched for; what is derived from
    another stands and falls with it. Measurements of other families need nobody to vouch for them.
    """
    rows = [Row.of(m) for m in outcome.measurements]
    if outcome.family != registry.PRIVACY:
        return rows
    return [_sensitivity_checked(row, m, outcome) for row, m in zip(rows, outcome.measurements, strict=True)]


def _sensitivity_checked(row: Row, m: Measurement, outcome: AuditOutcome) -> Row:
    if m.name.endswith(f".{WORST_SUBGROUP.name}"):
        seen = any(
            r.sight is Sensitivity.SENSITIVE and m.scope.startswith(f"{r.scope} by ".lstrip())
            for r in outcome.responses
        )
        return row if seen else replace(row, blind="no number of that attack sees a full copy")
    about = derived_from(m) or (m.name, m.scope)
    response = next((r for r in outcome.responses if (r.name, r.scope) == about), None)
    if response is None:
        return replace(row, blind="the known-answer check did not try it")
    if response.sight is Sensitivity.INSENSITIVE or response.full is None:
        return replace(row, blind=response.reason)
    if derived_from(m):
        return row
    worse = "up" if response.direction is Direction.LOWER else "down"
    return replace(row, copy_low=response.full.low, copy_high=response.full.high, worse=worse)


def derived_from(m: Measurement) -> tuple[str, str] | None:
    """Name and scope of the measurement that a leak-equivalent is derived from; None for any other."""
    audit, _, quantity = m.name.rpartition(".")
    if quantity != LEAK_EQUIVALENT.name:
        return None
    name, _, scope = m.scope.partition("[")
    return f"{audit}.{name}", scope.removesuffix("]") if scope else ""
