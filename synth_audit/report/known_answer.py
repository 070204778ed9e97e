"""Planted leaks: what saw them, how likely a leak is to show, and what the candidate's numbers amount to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from synth_audit import registry
from synth_audit.examination.known_answer import DETECTED, detection_probability
from synth_audit.findings.measurement import Direction, Measurement
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, Sensitivity, SensitivityCurve
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import svg, words
from synth_audit.report.gates import GateView, gate_views, sign_of
from synth_audit.report.svg import WIDTH, LineStyle, axis_title, legend, position_labels, value_axis
from synth_audit.report.view import Cells, Chapter, Picture, SensitivityLine, Sign
from synth_audit.store.evidence import Evidence

DETECTION_LIMIT = "detection_limit"
"""The quantity by which an audit states from which share of the people on it finds a class of leak."""
ANCHOR = "known-answer"
TITLE = "Would a leak have been seen?"
MOST_ROWS = 12
"""Rows of a long table that are shown at once; the others are folded away."""

_WIDE, _HIGH = 360.0, 46.0
_PAD, _BELOW, _TOP, _BAND = 10.0, 26.0, 4.0, 22.0
_MIDDLE, _BOTTOM = _TOP + _BAND / 2, _TOP + _BAND
_MARKS = (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_REACHES = (0.05, 0.1, 0.25, 0.5, 1.0)

_TITLE = "How likely each audit is to notice a leak, by its size"

_DECADES = (0.0001, 0.001, 0.01, 0.1, 1.0)

_PER_DECADE = 24

_MOST_LINES = 8

_LISTED = (*(d * f for d in _DECADES[:-1] for f in (1, 2, 5)), 1.0)


class Shown(NamedTuple):
    """A number with its interval, whether that was called a leak, and whether wrongly."""

    value: str
    interval: str
    verdict: str
    wrong: bool


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
    def sign(self) -> Sign:
        """Shape and word of seeing and blindness."""
        sign = sign_of(Result.PASS if self.sees else Result.INSUFFICIENT)
        return Sign(sign.kind, "Sees" if self.sees else "Blind", sign.icon)

    @property
    def sight(self) -> str:
        """What it sees, in short: beside its number."""
        if not self.sees:
            return words.sentence(": ".join(filter(None, ("Blind here", self.response.reason))))
        if self.least is None:
            return "Sees a full copy."
        return f"Sees a full copy, and {words.smallest_leak(self.least)} or more."

    @property
    def leak(self) -> str:
        """The share of copied rows that it behaves like; empty where that cannot be said."""
        return leak_sentence(self.restated) if self.restated is not None else ""

    @property
    def shows(self) -> str:
        """From which leak on it shows one."""
        if not self.sees:
            return "none"
        if not self.proportional:
            return "not in proportion, so not known"
        if self.least is None:
            half = self.response.half_width
            return "none with certainty" if half is not None and math.isfinite(half) else words.NOT_COMPUTED
        return f"from {words.detectable(self.least)}"

    def shown(self, share: float) -> Shown:
        """What it showed where this share of the rows was copied."""
        answer = next((a for a in self.response.answers if a.share == share), None)
        if answer is None:
            return Shown("–", "", "", False)
        unit = self.measurement.unit if self.measurement else ""
        numbers = words.measured(unit, answer.value, answer.low, answer.high)
        if not self.sees:
            return Shown(*numbers, "", False)
        called = self.response.flags(answer)
        if share == 0:
            return Shown(*numbers, "false alarm" if called else "no alarm", called)
        return Shown(*numbers, "noticed" if called else "not noticed", share == 1 and not called)

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
    drawing = Markup(_detection_svg(best[:_MOST_LINES], named, anchor))  # noqa: S704
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


def _detection_svg(best: Sequence[MeasurementSensitivity], named: dict[str, str], anchor: str) -> str:
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
        body += _curve(w, style, x_scale, y_scale)
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


def _curve(w: MeasurementSensitivity, style: LineStyle, x_scale: svg.Linear, y_scale: svg.Linear) -> str:
    logs = [i / _PER_DECADE - 4 for i in range(4 * _PER_DECADE + 1)]
    points = [(x_scale(x), y_scale(100 * (chance(w, 10**x) or 0.0))) for x in logs]
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    place = math.log10(min(max(w.least or 0.0, _DECADES[0]), 1.0))
    return style.path(d) + style.marker(x_scale(place), y_scale(100 * (chance(w, 10**place) or 0.0)), 4.4)


def known_answer(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> Chapter:
    """The chapter; it stands in every report, for a check that was not made is worth saying too."""
    shares = evidence.planting.shares or tuple(sorted({a.share for w in found for a in w.response.answers}))
    rows = sorted(found, key=_rank)
    leaks = _leaks(found)
    body = {
        "headline": _headline(found),
        "planted": _planted(evidence),
        "alarm": _alarm(evidence, found),
        "anchors": {o.audit: f"audit-{i}" for i, o in enumerate(evidence.outcomes, 1)},
        "shares": [(share, _share_label(share)) for share in shares],
        "rows": rows[:MOST_ROWS],
        "more_rows": rows[MOST_ROWS:],
        "picture": detection_picture(found, f"{ANCHOR}-detection"),
        "best": [w for w in best_of_audits(found) if w.least is not None],
        "leaks": leaks[:MOST_ROWS],
        "more_leaks": leaks[MOST_ROWS:],
    }
    return Chapter(ANCHOR, TITLE, "known_answer.html.j2", body)


def _rank(w: MeasurementSensitivity) -> tuple[bool, float]:
    """Blind ones first, then the sharpest; those without a smallest leak last."""
    return (w.sees, math.inf if w.least is None else w.least)


def _share_label(share: float) -> str:
    known = {0.0: "New people", 1.0: "All rows copied"}
    return known.get(share, f"{words.number(share, 'share')} copied")


def _headline(found: Sequence[MeasurementSensitivity]) -> str:
    if not found:
        return "No measurement of this audit was tried on a planted leak."
    seeing = sum(w.sees for w in found)
    see = "sees" if seeing == 1 else "see"
    text = f"Of {words.counted(len(found), 'measurement')}, {seeing or 'none'} {see} a full copy"
    best = sharpest(found)
    if best is None or best.least is None:
        return text + "."
    leak = words.smallest_leak(best.least)
    return f"{text}; the sharpest would show {leak} ({best.audit_title}: {best.name})."


def _planted(evidence: Evidence) -> str:
    p = evidence.planting
    if p.reason:
        return f"No leak could be planted: {p.reason}. What these numbers would have shown is not known."
    if not p.shares:
        return "No leak was planted in this run."
    *some, last = (words.number(s, "share") for s in p.shares)
    control = f"{words.counted(p.control_rows, 'control row')} stayed control"
    return (
        f"{words.counted(p.train_rows, 'training row')} stood in for the training table, other training rows "
        f"for people the generator never saw, and {control if p.control_rows else 'there was no control'}. "
        f"{words.counted(len(p.shares), 'release')} of {words.counted(p.release_rows, 'row')} "
        f"{'was' if len(p.shares) == 1 else 'were'} made from them, of which {', '.join(some)}"
        f"{' and ' if some else ''}{last} of the rows are copies. Every privacy audit ran on each."
    )


def _alarm(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> str:
    blind = [w for w in found if not w.sees]
    if not blind or evidence.planting.reason:
        return ""
    relied = sum(w.decides for w in blind)
    text = (
        f"{len(blind)} of {words.counted(len(found), 'measurement')} cannot see even a full copy on this "
        "table. A good number there means nothing, and no gate passes on it"
    )
    return words.sentence(f"{text}; {relied} of them should have decided" if relied else text)


def _leaks(found: Sequence[MeasurementSensitivity]) -> list[tuple[MeasurementSensitivity, Markup]]:
    """What can be restated as a share of copied rows, the worst first, with its picture on a common scale."""
    known = [(w, w.restated) for w in found if w.restated is not None]
    scale = common_scale([m for _, m in known])
    worst = sorted(known, key=lambda x: (not math.isnan(x[1].value), -x[1].value))
    return [
        (w, Markup(leak_interval_svg(m, scale, title=w.name, anchor=f"{ANCHOR}-leak-{i}")))  # noqa: S704
        for i, (w, m) in enumerate(worst, 1)
    ]


@dataclass(frozen=True)
class LeakScale:
    """Shares from none to ``reach`` by their square roots; all that is below none shares one place.

    The root keeps 0.1 % and 1 % apart while all rows still fit. What lies beyond is put on the edge.
    """

    reach: float

    @property
    def zero(self) -> float:
        """Where none is."""
        return _PAD + _BELOW

    def __call__(self, share: float) -> float:
        """Position of a share."""
        if share < 0:
            return _PAD + 5
        part = math.sqrt(min(share, self.reach) / self.reach)
        return self.zero + part * (_WIDE - 2 * _PAD - _BELOW)


def common_scale(found: list[Measurement]) -> LeakScale:
    """The smallest round scale that holds every interval, up to all rows."""
    ends = [m.interval.high if m.interval else m.value for m in found]
    most = max((x for x in (*ends, *(m.value for m in found)) if not math.isnan(x)), default=0.0)
    return LeakScale(next((r for r in _REACHES if most <= r), 1.0))


def leak_sentence(m: Measurement) -> str:
    """``Behaves like a release in which 2.3 % (0.3 to 5.4 %) of the rows were copied.``"""
    if math.isnan(m.value):
        return "As a share of copied rows it could not be computed."
    low, high = (m.interval.low, m.interval.high) if m.interval else (math.nan, math.nan)
    return f"Behaves like a release in which {words.behaves_like(m.value, low, high)}."


def leak_interval_svg(m: Measurement, scale: LeakScale, *, title: str, anchor: str) -> str:
    """One leak-equivalent with its interval, to stand below others on the same scale."""
    low, high = (m.interval.low, m.interval.high) if m.interval else (math.nan, math.nan)
    body = _ground(scale, anchor) + _axis(scale)
    if math.isnan(m.value):
        body += svg.text(scale.zero + 8, _MIDDLE + 4, "No number to draw: not computed", muted=True)
    else:
        body += _leak_interval(m.value, low, high, scale)
    return svg.document(_WIDE, _HIGH, body, anchor=anchor, title=title, description=leak_sentence(m))


def _ground(scale: LeakScale, anchor: str) -> str:
    below = svg.element("rect", x=_PAD, y=_TOP, width=_BELOW, height=_BAND, fill=f"url(#{anchor}-below)")
    hatch = svg.hatch(f"{anchor}-below", "rule", 1)
    return hatch + below + svg.track(scale.zero, _TOP, _WIDE - _PAD - scale.zero, _BAND)


def _axis(scale: LeakScale) -> str:
    out = svg.line(scale.zero, _TOP, scale.zero, _BOTTOM + 3)
    taken = svg.text_width("none", 10) / 2 + scale.zero
    out += svg.text(scale.zero, _BOTTOM + 14, "none", size=10, anchor="middle", muted=True)
    marks = [m for m in _MARKS if 0 < m <= scale.reach]
    for mark in marks:
        x, label = scale(mark), "all" if mark == 1 else words.number(mark, "share")
        half = svg.text_width(label, 10) / 2
        out += svg.line(x, _BOTTOM, x, _BOTTOM + 3, rule=True)
        place = min(x, _WIDE - half)
        last = scale(marks[-1]) - svg.text_width(words.number(marks[-1], "share"), 10)
        if place - half > taken + 4 and (mark == marks[-1] or place + half < last):
            out += svg.text(place, _BOTTOM + 14, label, size=10, anchor="middle", muted=True)
            taken = place + half
    return out


def _leak_interval(value: float, low: float, high: float, scale: LeakScale) -> str:
    out = ""
    if not (math.isnan(low) or math.isnan(high)):
        x0, x1 = scale(low), scale(high)
        out += svg.line(x0, _MIDDLE, x1, _MIDDLE, width=2)
        out += _end(x0, -1 if low < 0 else 0) + _end(x1, -1 if high < 0 else 1 if high > scale.reach else 0)
    return out + svg.dot(scale(value), _MIDDLE)


def _end(x: float, beyond: int) -> str:
    """The end of an interval: a bar, or an arrow where it goes on."""
    if not beyond:
        return svg.line(x, _MIDDLE - 5, x, _MIDDLE + 5, width=2)
    d = f"M{x - 5 * beyond:.1f} {_MIDDLE - 5:g}L{x:.1f} {_MIDDLE:g}L{x - 5 * beyond:.1f} {_MIDDLE + 5:g}"
    return svg.element("path", d=d, fill="none", stroke="ink", stroke_width=2)


def sharpness(evidence: Evidence) -> tuple[str, ...]:
    """What a leak would have had to be to stay unseen, in a sentence or two."""
    if limits := detection_limits(evidence):
        return limits
    found = sensitivities(evidence)
    line, best = sensitivity_line(evidence, found), sharpest([w for w in found if w.decides])
    told = [" ".join(filter(None, (line.text, line.warning)))]
    if best is not None and best.least is not None and best.least > 0 and "synthetic" in evidence.tables:
        rows = evidence.tables["synthetic"].rows
        told.append(f"That is {words.people(best.least, rows, evidence.suppression)} of {rows:,} rows.")
    return tuple(told)


def detection_limits(evidence: Evidence) -> tuple[str, ...]:
    """From which share of the people on each class of leak is found; empty where nobody measured it."""
    limits = {
        m.id.setting.replace("_", " "): m.value
        for m in evidence.measurements
        if m.id.quantity == DETECTION_LIMIT and m.id.setting and m.finite
    }
    known = {name: share for name, share in limits.items() if share < 1}
    told = []
    if known:
        shares = ", ".join(f"{name} {words.number(share, 'share')}" for name, share in known.items())
        told.append(
            "A leak would have been found, with 95 % probability, from these shares of the training people "
            f"on: {shares}. A smaller one may be there unseen."
        )
    if left := [name for name in limits if name not in known]:
        told.append(f"No such share is established for: {', '.join(left)}.")
    return tuple(told)


def first_line(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> SensitivityLine:
    """What would have been found, in one line: the detection limit, or else what known answers say."""
    stated = (m for m in evidence.measurements if m.id.quantity == DETECTION_LIMIT and not m.id.setting)
    limit = next((m.value for m in stated if m.finite), None)
    if limit is None:
        return sensitivity_line(evidence, found)
    if limit >= 1:
        unknown = "It is not established from which size on a leak would have been found."
        return SensitivityLine("open", (detection_limits(evidence) or (unknown,))[-1])
    share = words.number(limit, "share")
    text = f"Had {share} of the people left a trace in a row each, this audit would have found it with 95 % "
    return SensitivityLine("pass", f"{text}probability.")
