"""What the known-answer check found out about each measurement, and how likely a leak is to show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from synth_audit import registry
from synth_audit.examination.known_answer import DETECTED, detection_probability
from synth_audit.findings.measurement import Direction, Measurement
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, Sensitivity, SensitivityCurve
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import svg, words
from synth_audit.report.gates import GateView, gate_views
from synth_audit.report.svg import WIDTH, LineStyle, axis_title, legend, position_labels, value_axis
from synth_audit.report.view import Cells, Picture, SensitivityLine
from synth_audit.store.evidence import Evidence

_TITLE = "How likely each audit is to notice a leak, by its size"

_DECADES = (0.0001, 0.001, 0.01, 0.1, 1.0)

_PER_DECADE = 24

_MOST_LINES = 8

_LISTED = (*(d * f for d in _DECADES[:-1] for f in (1, 2, 5)), 1.0)


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
        return any(g.result.blocking for g in self.gates)


def sensitivities(evidence: Evidence) -> tuple[MeasurementSensitivity, ...]:
    """Every measurement with a response, in the order of the evidence."""
    gates = gate_views(evidence)
    return tuple(
        _sensitivity(evidence, outcome, r, tuple(g for g in gates if _rests_on(g, r, outcome)))
        for outcome in evidence.outcomes
        for r in outcome.responses
    )


def sharpest(found: Sequence[MeasurementSensitivity]) -> MeasurementSensitivity | None:
    """The one that shows the smallest leak; None when none shows any with certainty."""
    known = [(w.least, i) for i, w in enumerate(found) if w.least is not None]
    return found[min(known)[1]] if known else None


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
        title=words.quantity_texts(outcome, response.id)[0],
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
    about = gate.result.measurement
    if about is None:
        return False
    judged = [about]
    if gate.result.every:  # its result names only the worst
        judged += [m.id for m in outcome.measurements if m.id.whole == about.whole]
    return any((x.derived_from or x) == response.id for x in judged)


def detection_picture(found: Sequence[MeasurementSensitivity], anchor: str) -> Picture | None:
    """The sharpest measurement of each audit, with the numbers; None when no audit has one."""
    best = [w for w in best_of_audits(found) if chance(w, 1.0) is not None]
    if not best:
        return None
    names = [w.audit_title for w in best]
    named = {
        w.outcome.audit: w.audit_title if names.count(w.audit_title) == 1 else w.outcome.audit for w in best
    }
    drawing = Markup(_svg(best[:_MOST_LINES], named, anchor))  # noqa: S704
    rows = tuple(
        (words.number(f, "share"), *(words.number(chance(w, f), "share", 1) for w in best)) for f in _LISTED
    )
    header = ("Rows copied", *(f"{named[w.outcome.audit]}: {w.name}" for w in best))
    return Picture(_TITLE, drawing, Cells("Probability that the leak is noticed", header, rows))


def best_of_audits(found: Sequence[MeasurementSensitivity]) -> list[MeasurementSensitivity]:
    """The sharpest measurement of each audit that has one, sharpest first."""
    audits = dict.fromkeys(w.outcome.audit for w in found)
    best = [sharpest([w for w in found if w.outcome.audit == a]) for a in audits]
    return sorted((w for w in best if w is not None), key=lambda w: w.least or 0.0)


def chance(sensitivity: MeasurementSensitivity, share: float) -> float | None:
    """Probability that a leak of this share is noticed; None where the check does not say."""
    span, half = sensitivity.span, sensitivity.response.half_width
    if not sensitivity.sees or span is None or span <= 0 or half is None or not math.isfinite(half):
        return None
    return detection_probability(share, span, half, sensitivity.level)


def _svg(best: Sequence[MeasurementSensitivity], named: dict[str, str], anchor: str) -> str:
    styles = {named[w.outcome.audit]: LineStyle(i, anchor) for i, w in enumerate(best)}
    head = legend(styles, 0.0)
    axis, y_scale, left = value_axis(0.0, 100.0, head.height, "probability that the leak is noticed, %")
    bottom = head.height + axis.height
    x_scale = svg.Linear(math.log10(_DECADES[0]), 0.0, left + 4, WIDTH - 14)
    body = head.body + axis.body + _x_axis(x_scale, y_scale(100.0), bottom)
    wanted = y_scale(100 * DETECTED)
    body += svg.line(left, wanted, WIDTH - 4, wanted, dash="2 3")
    body += svg.text(left + 4, wanted + 14, f"{100 * DETECTED:g} %", size=11, weight="600")
    body += axis_title("share of its rows that are copies of training rows", left, bottom + 36)
    for w, style in zip(best, styles.values(), strict=True):
        body += _line(w, style, x_scale, y_scale)
    likely = f"{100 * DETECTED:g} %"
    parts = [
        f"{named[w.outcome.audit]}: {likely} at {words.detectable(w.least)} copied"
        for w in best
        if w.least is not None
    ]
    return svg.document(
        WIDTH, bottom + 44, body, anchor=anchor, title=_TITLE, description="; ".join(parts) + "."
    )


def _x_axis(scale: svg.Linear, top: float, bottom: float) -> str:
    places = [scale(math.log10(d)) for d in _DECADES]
    names = [words.number(d, "share") for d in _DECADES]
    out = position_labels(names, places, bottom + 17, (scale.end - scale.start) / len(places))
    return out + "".join(svg.line(x, top, x, bottom + 4, rule=True) for x in places)


def _line(w: MeasurementSensitivity, style: LineStyle, x_scale: svg.Linear, y_scale: svg.Linear) -> str:
    logs = [i / _PER_DECADE - 4 for i in range(4 * _PER_DECADE + 1)]
    points = [(x_scale(x), y_scale(100 * (chance(w, 10**x) or 0.0))) for x in logs]
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    place = math.log10(min(max(w.least or 0.0, _DECADES[0]), 1.0))
    return style.path(d) + style.marker(x_scale(place), y_scale(100 * (chance(w, 10**place) or 0.0)), 4.4)
