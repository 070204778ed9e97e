"""The chapter on planted leaks: what was planted, what saw it, and what the candidate's numbers amount to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from synth_audit.findings.measurement import Measurement
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, PlantedResult, Sensitivity
from synth_audit.findings.verdict import Result
from synth_audit.report import svg, words
from synth_audit.report.gates import GateView, sign_of
from synth_audit.report.sensitivity import (
    MeasurementSensitivity,
    best_of_audits,
    detection_picture,
    sensitivities,
    sharpest,
)
from synth_audit.report.view import Cells, Chapter, LeakRow, SensitivityRow, Shown, Sign
from synth_audit.store.evidence import Evidence

ANCHOR = "known-answer"
TITLE = "Would a leak have been seen?"
_HEADER = ("Measurement", "Full copy", "Leaks that show", "Gates")
MOST_ROWS = 12
"""Rows of a long table that are shown at once; the others are folded away."""

WIDTH, HEIGHT = 360.0, 46.0
_PAD, _BELOW, _TOP, _BAND = 10.0, 26.0, 4.0, 22.0
_MIDDLE, _BOTTOM = _TOP + _BAND / 2, _TOP + _BAND
_MARKS = (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_REACHES = (0.05, 0.1, 0.25, 0.5, 1.0)


def known_answer(evidence: Evidence, _: Sequence[GateView]) -> Chapter:
    """The chapter; it stands in every report, for a check that was not made is worth saying too."""
    found = sensitivities(evidence)
    anchors = {o.audit: f"audit-{i}" for i, o in enumerate(evidence.outcomes, 1)}
    shares = evidence.planting.shares or tuple(sorted({a.share for w in found for a in w.response.answers}))
    rows = tuple(_row(w, shares, anchors[w.outcome.audit]) for w in sorted(found, key=_rank))
    leaks = _leak_rows(found)
    body = {
        "headline": _headline(found),
        "planted": _planted(evidence),
        "alarm": _alarm(evidence, found),
        "header": (*_HEADER[:2], *map(_share_label, shares), *_HEADER[2:]),
        "rows": rows[:MOST_ROWS],
        "more_rows": rows[MOST_ROWS:],
        "picture": detection_picture(found, f"{ANCHOR}-detection"),
        "best": _best(found),
        "leaks": leaks[:MOST_ROWS],
        "more_leaks": leaks[MOST_ROWS:],
        "leak_table": _leak_table(leaks),
    }
    return Chapter(ANCHOR, TITLE, "known_answer.html.j2", body)


def sensitivity_sign(sensitivity: Sensitivity) -> Sign:
    """Shape and word of seeing and blindness."""
    sign = sign_of(Result.PASS if sensitivity is Sensitivity.SENSITIVE else Result.INSUFFICIENT)
    return Sign(sign.kind, "Sees" if sensitivity is Sensitivity.SENSITIVE else "Blind", sign.icon)


def sensitivity_text(w: MeasurementSensitivity) -> str:
    """What a measurement sees, in short: beside its number."""
    if not w.sees:
        return f"blind here: {w.response.reason}" if w.response.reason else "blind here"
    if w.least is None:
        return "sees a full copy"
    return f"sees a full copy, and {words.smallest_leak(w.least)} or more"


def _rank(w: MeasurementSensitivity) -> tuple[bool, float]:
    """Blind ones first, then the sharpest; those without a smallest leak last."""
    return (w.sees, math.inf if w.least is None else w.least)


def _share_label(share: float) -> str:
    return (
        "All rows copied"
        if share == 1
        else f"{words.number(share, 'share')} copied"
        if share
        else "New people"
    )


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


def _row(w: MeasurementSensitivity, shares: Sequence[float], anchor: str) -> SensitivityRow:
    answers = {a.share: a for a in w.response.answers}
    return SensitivityRow(
        anchor=anchor,
        audit=w.audit_title,
        title=w.title,
        scope=w.response.id.label,
        sign=sensitivity_sign(w.response.sensitivity),
        reason=words.sentence(w.response.reason),
        shown=tuple(_shown(w, share, answers.get(share)) for share in shares),
        least=_least(w),
        gates=w.gates,
    )


def _shown(w: MeasurementSensitivity, share: float, answer: PlantedResult | None) -> Shown:
    label = _share_label(share)
    if answer is None:
        return Shown(label, "–")
    unit = w.measurement.unit if w.measurement else ""
    value, interval = words.measured(unit, answer.value, answer.low, answer.high)
    called = w.response.flags(answer)
    return Shown(
        label=label,
        value=value,
        interval=interval,
        verdict=_called(share, called) if w.sees else "",
        wrong=w.sees and share in (0, 1) and called != (share > 0),
    )


def _called(share: float, called: bool) -> str:
    if share == 0:
        return "false alarm" if called else "no alarm"
    return "noticed" if called else "not noticed"


def _least(w: MeasurementSensitivity) -> str:
    if not w.sees:
        return "none"
    if not w.proportional:
        return "not in proportion, so not known"
    if w.least is None:
        half = w.response.half_width
        return "none with certainty" if half is not None and math.isfinite(half) else words.NOT_COMPUTED
    return f"from {words.detectable(w.least)}"


def _best(found: Sequence[MeasurementSensitivity]) -> Cells:
    rows = tuple(
        (w.audit_title, w.name, words.detectable(w.least))
        for w in best_of_audits(found)
        if w.least is not None
    )
    return Cells("The sharpest measurement of each audit", ("Audit", "Measurement", "Shows leaks from"), rows)


def _leak_rows(found: Sequence[MeasurementSensitivity]) -> tuple[LeakRow, ...]:
    known = [(w, w.restated) for w in found if w.restated is not None]
    scale = common_scale([m for _, m in known])
    worst = sorted(known, key=lambda x: (not math.isnan(x[1].value), -x[1].value))
    return tuple(
        LeakRow(
            audit=w.audit_title,
            title=w.title,
            scope=w.response.id.label,
            sentence=leak_sentence(m),
            drawing=Markup(leak_interval_svg(m, scale, title=w.name, anchor=f"{ANCHOR}-leak-{i}")),  # noqa: S704
            numbers=_leak_numbers(m),
        )
        for i, (w, m) in enumerate(worst, 1)
    )


def _leak_numbers(m: Measurement) -> tuple[str, str, str]:
    value, interval = words.of_measurement(m)
    return value, interval or "none", words.percent_level(m.interval.level) if m.interval else ""


def _leak_table(rows: Sequence[LeakRow]) -> Cells:
    header = ("Measurement", "Audit", "Copied rows", "Interval", "Level")
    cells = tuple((f"{r.title} ({r.scope})" if r.scope else r.title, r.audit, *r.numbers) for r in rows)
    return Cells(LEAK_EQUIVALENT.title, header, cells)


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
        return self.zero + part * (WIDTH - 2 * _PAD - _BELOW)


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
        body += _interval(m.value, low, high, scale)
    return svg.document(WIDTH, HEIGHT, body, anchor=anchor, title=title, description=leak_sentence(m))


def _ground(scale: LeakScale, anchor: str) -> str:
    below = svg.element("rect", x=_PAD, y=_TOP, width=_BELOW, height=_BAND, fill=f"url(#{anchor}-below)")
    hatch = svg.hatch(f"{anchor}-below", "rule", 1)
    return hatch + below + svg.track(scale.zero, _TOP, WIDTH - _PAD - scale.zero, _BAND)


def _axis(scale: LeakScale) -> str:
    out = svg.line(scale.zero, _TOP, scale.zero, _BOTTOM + 3)
    taken = svg.text_width("none", 10) / 2 + scale.zero
    out += svg.text(scale.zero, _BOTTOM + 14, "none", size=10, anchor="middle", muted=True)
    marks = [m for m in _MARKS if 0 < m <= scale.reach]
    for mark in marks:
        x, label = scale(mark), "all" if mark == 1 else words.number(mark, "share")
        half = svg.text_width(label, 10) / 2
        out += svg.line(x, _BOTTOM, x, _BOTTOM + 3, rule=True)
        place = min(x, WIDTH - half)
        last = scale(marks[-1]) - svg.text_width(words.number(marks[-1], "share"), 10)
        if place - half > taken + 4 and (mark == marks[-1] or place + half < last):
            out += svg.text(place, _BOTTOM + 14, label, size=10, anchor="middle", muted=True)
            taken = place + half
    return out


def _interval(value: float, low: float, high: float, scale: LeakScale) -> str:
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
