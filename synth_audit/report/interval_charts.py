"""Intervals drawn against limits: one number, and all gates of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from synth_audit.findings.measurement import MeasurementId, is_share
from synth_audit.findings.sensitivity import DERIVED
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.report import svg, words
from synth_audit.report.svg import result_mark
from synth_audit.report.words import RESULT_WORDS
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.criteria import ANSWERS

WIDTH, HEIGHT = 360.0, 54.0
PAD, _TOP, _BAND = 10.0, 17.0, 20.0
MIDDLE, _BOTTOM = _TOP + _BAND / 2, _TOP + _BAND


def gate_picture(gate: GateResult, unit: str, anchor: str) -> Markup | None:
    """The number of a gate, its interval and its limit with the safe side shaded; None without a number."""
    beside = (gate.low, gate.high, gate.minimum, gate.maximum)
    if not svg.drawable(gate.value) or not any(map(svg.drawable, beside)):
        return None
    body, told = drawing(gate, unit, WIDTH, anchor), _told(gate, unit)
    return Markup(  # noqa: S704  (escapes its texts)
        svg.document(WIDTH, HEIGHT, body, anchor=anchor, title=gate.title, description=told)
    )


def _told(gate: GateResult, unit: str) -> str:
    """The picture in words."""
    places = words.decimals(unit, gate.value, low=gate.low, high=gate.high)
    parts = [f"Value {words.number(gate.value, unit, places)}"]
    if gate.low is not None and gate.high is not None:
        parts.append(f"interval {words.interval(gate.low, gate.high, unit, places)}")
    if limit := words.limits(gate.minimum, gate.maximum, unit):
        parts.append(f"limit {limit}")
    return words.sentence(", ".join((*parts, f"result: {RESULT_WORDS[gate.result].lower()}")))


def drawing(gate: GateResult, unit: str, width: float, anchor: str) -> str:
    """What is inside the picture, to be put into a larger one."""
    if not svg.drawable(gate.value):
        return svg.text(PAD, MIDDLE + 4, "No number to draw: not computed", muted=True)
    scale = svg.Linear(*_domain(gate, unit), PAD, width - PAD)
    parts = [_band(gate, scale, anchor), _axis(scale, unit), _interval(gate, scale)]
    return "".join(parts) + _limits(gate, unit, scale)


def _domain(gate: GateResult, unit: str) -> tuple[float, float]:
    seen = (gate.value, gate.low, gate.high, gate.minimum, gate.maximum)
    values = [x for x in seen if x is not None and svg.drawable(x)]
    share = is_share(unit)
    if not any(values):
        return 0.0, 0.01 if share else 1.0
    low, high = svg.domain(values, zero=share and min(values) >= 0 and max(values) < 0.45)
    room = (high - low) * 0.08
    if gate.minimum is not None and gate.maximum is not None:
        room *= 3
    right = min(high + room, 1.0) if share and high <= 1.0 else high + room
    return (0.0 if low == 0.0 else low - room), right


def _band(gate: GateResult, scale: svg.Linear, anchor: str) -> str:
    whole: dict[str, Any] = {"y": _TOP, "height": _BAND}
    x0, x1 = scale.start, scale.end
    if gate.minimum is None and gate.maximum is None:
        return svg.track(x0, _TOP, x1 - x0, _BAND)
    a = scale(gate.minimum) if gate.minimum is not None and svg.drawable(gate.minimum) else x0
    b = scale(gate.maximum) if gate.maximum is not None and svg.drawable(gate.maximum) else x1
    unsafe = svg.element("rect", x=x0, width=x1 - x0, fill=f"url(#{anchor}-hatch)", **whole)
    paper = svg.element("rect", x=a, width=max(b - a, 0), fill="paper", **whole)
    safe = svg.element("rect", x=a, width=max(b - a, 0), fill="safe", **whole)
    return svg.hatch(f"{anchor}-hatch", "unsafe", 1.2) + unsafe + paper + safe


def _axis(scale: svg.Linear, unit: str) -> str:
    marks, step = svg.ticks(scale.low, scale.high, 4)
    out = svg.line(scale.start, _BOTTOM, scale.end, _BOTTOM, rule=True)
    for value in marks:
        x, label = scale(value), words.tick(value, step, unit)
        out += svg.line(x, _BOTTOM, x, _BOTTOM + 3, rule=True)
        out += svg.centred(x, _BOTTOM + 14, label, 10, scale.end + PAD)
    return out


def _interval(gate: GateResult, scale: svg.Linear) -> str:
    out = ""
    low, high = gate.low, gate.high
    if low is not None and high is not None and svg.drawable(low) and svg.drawable(high):
        out += svg.Pen(upright=False).interval(scale(low), scale(high), MIDDLE)
    return out + svg.dot(scale(gate.value or 0.0), MIDDLE)


def _limits(gate: GateResult, unit: str, scale: svg.Linear) -> str:
    """A line at each limit, and what they ask for above: of two in one text, which two could cover."""
    places = [scale(x) for x in (gate.minimum, gate.maximum) if x is not None and svg.drawable(x)]
    if not places:
        return ""
    told = words.limits(gate.minimum, gate.maximum, unit)
    middle, right = sum(places) / len(places), scale.end + PAD
    label = svg.centred(middle, _TOP - 6, told, 11, right, muted=False, weight="600")
    return "".join(svg.line(x, _TOP - 3, x, _BOTTOM + 2, width=2) for x in places) + label


def suite_overview_svg(
    gates: Sequence[GateResult], *, units: Mapping[MeasurementId, str] | None = None, anchor: str = "gates"
) -> str:
    """All gates of a suite below each other, as a picture that stands alone.

    Args:
        gates: in the order in which they are drawn.
        units: unit by quantity, see :func:`units_of`; plain numbers without it.
    """
    units = units or {}
    width, row, label = 880.0, 66.0, 490.0
    height = max(len(gates), 1) * row + 8
    body = svg.element("rect", width=width, height=height, fill="paper")
    for i, gate in enumerate(gates):
        y = i * row + 4
        unit = units.get(gate.measurement.whole, "") if gate.measurement else ""
        if i:
            body += svg.line(8, y - 3, width - 8, y - 3, rule=True)
        word = RESULT_WORDS[gate.result] + ("" if gate.blocking else " (advisory)")
        body += result_mark(gate.result, 20, y + 28, 8)
        body += svg.text(38, y + 24, svg.fitted(gate.title, label - 50, 13), size=13, weight="600")
        body += svg.text(38, y + 42, word, size=12, muted=True)
        where = "Follows from the other gates" if gate.gate == ANSWERS else "Checked on the table itself"
        content = svg.text(PAD, MIDDLE + 4, where, muted=True)
        if gate.measurement:
            content = drawing(gate, unit, width - label, f"{anchor}-{i + 1}")
        body += svg.element("g", content, transform=f"translate({label:g} {y:g})")
    if not gates:
        body += svg.text(12, row / 2, "The suite has no gates.", muted=True)
    tally = [f"{RESULT_WORDS[r]}: {n}" for r in Result if (n := sum(g.result is r for g in gates))]
    listed = [f"{g.title}: {RESULT_WORDS[g.result].lower()}" for g in gates[:40]]
    return svg.document(
        width,
        height,
        body,
        anchor=anchor,
        title="Gates: " + (", ".join(tally) or "none"),
        description="; ".join(listed) or "No gates.",
    )


def units_of(evidence: Evidence) -> dict[MeasurementId, str]:
    """Unit by quantity, for :func:`suite_overview_svg`."""
    declared = {
        MeasurementId(o.audit, q.name): q.unit
        for o in evidence.outcomes
        for q in (*(o.info.quantities if o.info else ()), *DERIVED)
    }
    return declared | {m.id.whole: m.unit for m in evidence.measurements}
