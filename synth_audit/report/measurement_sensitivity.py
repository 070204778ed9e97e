"""What the known-answer check found out about each measurement, with the gates that rest on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.core import registry
from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Direction, Measurement
from synth_audit.core.outcome import AuditOutcome
from synth_audit.core.sensitivity import (
    DERIVED,
    LEAK_EQUIVALENT,
    Sensitivity,
    SensitivityCurve,
)
from synth_audit.report import words
from synth_audit.report.view import GateView, SensitivityLine
from synth_audit.store.evidence import Evidence


@dataclass(frozen=True)
class MeasurementSensitivity:
    """One measurement, how it answers planted leaks, and who relies on it.

    Attributes:
        measurement: on the candidate; None where the evidence holds a response without one.
        restated: the same as a share of copied rows; None where that cannot be said.
        proportional: it moves in proportion to the share of copied rows.
    """

    outcome: AuditOutcome
    response: SensitivityCurve
    title: str
    measurement: Measurement | None
    restated: Measurement | None
    proportional: bool
    level: float
    gates: tuple[GateView, ...]

    @property
    def audit_title(self) -> str:
        """The audit as a reader knows it."""
        return self.outcome.info.title if self.outcome.info else self.outcome.audit

    @property
    def name(self) -> str:
        """Quantity, setting and column."""
        return f"{self.title} ({self.response.id.label})" if self.response.id.label else self.title

    @property
    def sees(self) -> bool:
        """True when it tells a full copy from new people."""
        return self.response.sensitivity is Sensitivity.SENSITIVE

    @property
    def least(self) -> float | None:
        """Smallest share of copies that shows; None where blind, too uncertain, or out of proportion."""
        least = self.response.minimum_detectable
        if not self.sees or not self.proportional or least is None or not math.isfinite(least):
            return None
        return least

    @property
    def span(self) -> float | None:
        """How far a full copy moves it towards harm; None when that is not known."""
        full, null = self.response.full, self.response.null
        if full is None or null is None or not math.isfinite(full.value - null):
            return None
        return (full.value - null) * (1 if self.response.direction is Direction.LOWER else -1)

    @property
    def decides(self) -> bool:
        """True when a deciding gate rests on it."""
        return any(g.blocking for g in self.gates)


def sensitivities(evidence: Evidence, gates: Sequence[GateView]) -> tuple[MeasurementSensitivity, ...]:
    """Every measurement with a response, in the order of the evidence."""
    return tuple(
        _sensitivity(evidence, outcome, r, tuple(g for g in gates if _rests_on(g, r, outcome)))
        for outcome in evidence.outcomes
        for r in outcome.responses
    )


def sharpest(found: Sequence[MeasurementSensitivity]) -> MeasurementSensitivity | None:
    """The one that shows the smallest leak; None when none shows any with certainty."""
    known = [(w.least, i) for i, w in enumerate(found) if w.least is not None]
    return found[min(known)[1]] if known else None


def quantity_texts(outcome: AuditOutcome, measurement: MeasurementId) -> tuple[str, str]:
    """Title of a measurement's quantity and how to read it."""
    quantity = measurement.quantity
    for q in (*(outcome.info.quantities if outcome.info else ()), *DERIVED):
        if q.name == quantity:
            return q.title, words.sentence(q.help)
    return quantity.replace("_", " ").capitalize(), ""


def sensitivity_line(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> SensitivityLine:
    """What this audit would have seen, in one line for the first screen."""
    relied = [w for w in found if w.decides]
    if evidence.planting.reason or not found:
        return SensitivityLine("open", _unknown(evidence))
    if not relied:
        return SensitivityLine(
            "open",
            "No deciding gate rests on a number that was tried on planted leaks.",
            _besides(found),
        )
    best, blind = sharpest(relied), [w for w in relied if not w.sees]
    if len(blind) == len(relied):
        text = "This audit would not have seen even a full copy of the training rows: what decides is blind."
        return SensitivityLine("fail", text)
    if best is None or best.least is None:
        text = "This audit can see a full copy of the training rows, but no smaller leak with certainty."
    elif best.least <= 0:
        text = "This audit would have seen even a single copied row."
    else:
        least = words.detectable(best.least)
        text = f"Had {least} of the rows or more been copies, this audit would have seen it."
    return SensitivityLine("open" if blind or best is None else "pass", text, _blindness(relied, blind))


def _unknown(evidence: Evidence) -> str:
    if evidence.planting.reason:
        return (
            f"No leak could be planted ({evidence.planting.reason}), so it is not known whether this audit "
            "would have seen one."
        )
    if any(o.family == registry.PRIVACY for o in evidence.outcomes):
        return "No measurement was tried on a planted leak, so it is not known whether one would have shown."
    return "No audit of privacy was part of this run: it would not have seen any leak."


def _besides(found: Sequence[MeasurementSensitivity]) -> str:
    best = sharpest(found)
    if best is None or best.least is None:
        return ""
    return f"The sharpest of the others would have shown {words.smallest_leak(best.least)}."


def _blindness(relied: Sequence[MeasurementSensitivity], blind: Sequence[MeasurementSensitivity]) -> str:
    if not blind:
        return ""
    names = "; ".join(f"{w.audit_title}: {w.name}" for w in blind[:3]) + ("; …" if len(blind) > 3 else "")
    return (
        f"{len(blind)} of {words.counted(len(relied), 'measurement')} behind its deciding gates "
        f"{'is' if len(blind) == 1 else 'are'} blind here ({names})."
    )


def _sensitivity(
    evidence: Evidence, outcome: AuditOutcome, response: SensitivityCurve, gates: tuple[GateView, ...]
) -> MeasurementSensitivity:
    measurement = next((m for m in outcome.measurements if m.id == response.id), None)
    interval = measurement.interval if measurement else None
    declared = outcome.info.quantities if outcome.info else ()
    return MeasurementSensitivity(
        outcome=outcome,
        response=response,
        title=quantity_texts(outcome, response.id)[0],
        measurement=measurement,
        restated=next((m for m in outcome.measurements if _restates(m, response)), None),
        proportional=all(q.proportional for q in declared if q.name == response.id.quantity),
        level=interval.level if interval else evidence.level,
        gates=gates,
    )


def _restates(m: Measurement, response: SensitivityCurve) -> bool:
    return m.id.quantity == LEAK_EQUIVALENT.name and m.id.derived_from == response.id


def _rests_on(gate: GateView, response: SensitivityCurve, outcome: AuditOutcome) -> bool:
    """True when the gate judges the measurement itself or what is derived from it."""
    if gate.about is None:
        return False
    judged = [gate.about]
    if gate.every:  # its result names only the worst
        judged += [m.id for m in outcome.measurements if m.id.whole == gate.about.whole]
    return any((x.derived_from or x) == response.id for x in judged)
