"""One number on one line: its interval drawn against a limit or beside a reference value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Measurement
from synth_audit.core.verdict import GateResult, Result
from synth_audit.report import svg, words

WIDTH, HEIGHT = 360.0, 54.0
_PAD, _TOP, _BAND = 10.0, 17.0, 20.0
_MIDDLE, _BOTTOM = _TOP + _BAND / 2, _TOP + _BAND
RESULT_WORDS = {Result.PASS: "Pass", Result.FAIL: "Fail", Result.INSUFFICIENT: "Not enough evidence"}
RESULT_COLOURS = {Result.PASS: "#1b6a44", Result.FAIL: "#a3241f", Result.INSUFFICIENT: "#855700"}
RESULT_CLASSES = {Result.PASS: "pass", Result.FAIL: "fail", Result.INSUFFICIENT: "open"}


@dataclass(frozen=True)
class IntervalPlot:
    """What is drawn: a value, its interval, the limits it is judged by, a value to compare with."""

    value: float | None
    low: float | None = None
    high: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    reference: float | None = None
    unit: str = ""
    result: Result | None = None

    @classmethod
    def of_gate(cls, gate: GateResult, unit: str) -> IntervalPlot:
        """The picture of a gate."""
        return cls(
            gate.value,
            gate.low,
            gate.high,
            gate.minimum,
            gate.maximum,
            unit=unit,
            result=gate.result,
        )

    @classmethod
    def of_measurement(cls, m: Measurement) -> IntervalPlot:
        """The picture of a measurement beside its reference value."""
        low, high = (m.interval.low, m.interval.high) if m.interval else (None, None)
        reference = m.reference.value if m.reference else None
        return cls(m.value, low, high, reference=reference, unit=m.unit)

    @property
    def anything(self) -> bool:
        """True when there is a value to draw and something to draw it against."""
        beside = (self.low, self.high, self.minimum, self.maximum, self.reference)
        return svg.drawable(self.value) and any(svg.drawable(x) for x in beside)

    @property
    def sentence(self) -> str:
        """The picture in words."""
        places = words.decimals(self.unit, self.value, low=self.low, high=self.high)
        parts = [f"Value {words.number(self.value, self.unit, places)}"]
        if self.low is not None and self.high is not None:
            parts.append(f"interval {words.interval(self.low, self.high, self.unit, places)}")
        if limit := words.limits(self.minimum, self.maximum, self.unit):
            parts.append(f"limit {limit}")
        if self.reference is not None:
            parts.append(f"reference value {words.number(self.reference, self.unit)}")
        if self.result is not None:
            parts.append(f"result: {RESULT_WORDS[self.result].lower()}")
        return words.sentence(", ".join(parts))


def gate_strip_svg(gate: GateResult, *, unit: str = "", anchor: str = "gate") -> str:
    """One gate's interval against its limit, the safe side shaded."""
    strip = IntervalPlot.of_gate(gate, unit)
    return svg.document(
        WIDTH,
        HEIGHT,
        _drawing(strip, WIDTH, anchor),
        anchor=anchor,
        title=gate.title,
        description=strip.sentence,
    )


def measurement_strip_svg(m: Measurement, *, title: str = "", anchor: str = "number") -> str:
    """One measurement with its interval beside its reference value."""
    strip = IntervalPlot.of_measurement(m)
    body = _drawing(strip, WIDTH, anchor)
    return svg.document(
        WIDTH, HEIGHT, body, anchor=anchor, title=title or str(m.id), description=strip.sentence
    )


def gate_chart_svg(
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
    body = svg.element("rect", class_="f-paper", width=width, height=height, fill=svg.PAPER)
    for i, gate in enumerate(gates):
        y = i * row + 4
        strip = IntervalPlot.of_gate(gate, units.get(gate.measurement.whole, "") if gate.measurement else "")
        if i:
            body += svg.line(8, y - 3, width - 8, y - 3, rule=True)
        word = RESULT_WORDS[gate.result] + ("" if gate.blocking else " (advisory)")
        body += mark(gate.result, 20, y + 28, 8)
        body += svg.text(38, y + 24, svg.fitted(gate.title, label - 50, 13), size=13, weight="600")
        body += svg.text(38, y + 42, word, size=12, muted=True)
        content = svg.text(_PAD, _MIDDLE + 4, "Checked on the table itself", muted=True)
        if gate.measurement:
            content = _drawing(strip, width - label, f"{anchor}-{i + 1}")
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


def mark(result: Result, x: float, y: float, r: float) -> str:
    """The sign of a result: a disc with a tick, a square with a cross, a diamond with a question mark."""
    colour, name = RESULT_COLOURS[result], f"f-{RESULT_CLASSES[result]}"
    if result is Result.PASS:
        shape = svg.element("circle", class_=name, cx=x, cy=y, r=r, fill=colour)
        path = f"M{x - r * 0.45:g} {y + r * 0.02:g} l{r * 0.32:g} {r * 0.36:g} l{r * 0.56:g} {-r * 0.72:g}"
    elif result is Result.FAIL:
        side = r * 0.92
        shape = svg.element(
            "rect", class_=name, x=x - side, y=y - side, width=2 * side, height=2 * side, rx=1.5, fill=colour
        )
        arm = r * 0.42
        path = f"M{x - arm:g} {y - arm:g} l{2 * arm:g} {2 * arm:g} m0 {-2 * arm:g} l{-2 * arm:g} {2 * arm:g}"
    else:
        tip = r * 1.2
        points = f"{x:g},{y - tip:g} {x + tip:g},{y:g} {x:g},{y + tip:g} {x - tip:g},{y:g}"
        shape = svg.element("polygon", class_=name, points=points, fill=colour)
        question = svg.element(
            "text",
            "?",
            class_="f-paper",
            x=x,
            y=y + r * 0.48,
            fill=svg.PAPER,
            font_size=r * 1.35,
            font_weight="700",
            text_anchor="middle",
        )
        return shape + question
    stroke = svg.element(
        "path",
        d=path,
        class_="s-paper",
        fill="none",
        stroke=svg.PAPER,
        stroke_width=max(r * 0.24, 1.2),
        stroke_linecap="round",
        stroke_linejoin="round",
    )
    return shape + stroke


def _drawing(strip: IntervalPlot, width: float, anchor: str) -> str:
    if not svg.drawable(strip.value):
        return svg.text(_PAD, _MIDDLE + 4, "No number to draw: not computed", muted=True)
    scale = svg.Linear(*_domain(strip), _PAD, width - _PAD)
    parts = [_band(strip, scale, anchor), _axis(scale, strip.unit), _interval(strip, scale)]
    parts += _limit_lines(strip, scale)
    if strip.reference is not None and svg.drawable(strip.reference):
        parts.append(_reference(strip, scale))
    return "".join(parts)


def _domain(strip: IntervalPlot) -> tuple[float, float]:
    seen = (strip.value, strip.low, strip.high, strip.minimum, strip.maximum, strip.reference)
    values = [x for x in seen if x is not None and svg.drawable(x)]
    if not any(values):
        return 0.0, 0.01 if strip.unit == "share" else 1.0
    low, high = svg.domain(values, zero=strip.unit == "share" and min(values) >= 0 and max(values) < 0.45)
    room = (high - low) * 0.08
    natural = 0.0 if low == 0.0 else None
    top = 1.0 if strip.unit == "share" and high <= 1.0 else None
    left, right = low - room, high + room
    if strip.minimum is not None and strip.maximum is not None:
        left, right = left - 2 * room, right + 2 * room
    return (natural if natural is not None else left), (min(right, top) if top is not None else right)


def _band(strip: IntervalPlot, scale: svg.Linear, anchor: str) -> str:
    whole: dict[str, Any] = {"y": _TOP, "height": _BAND}
    x0, x1 = scale.start, scale.end
    if strip.minimum is None and strip.maximum is None:
        return svg.element("rect", class_="f-track", x=x0, width=x1 - x0, fill="#eef1f4", **whole)
    hatch = svg.element(
        "pattern",
        svg.element("path", d="M0 6 L6 0", class_="s-unsafe", stroke=svg.UNSAFE, stroke_width=1.2),
        id=f"{anchor}-hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
    a = scale(strip.minimum) if strip.minimum is not None and svg.drawable(strip.minimum) else x0
    b = scale(strip.maximum) if strip.maximum is not None and svg.drawable(strip.maximum) else x1
    unsafe = svg.element("rect", x=x0, width=x1 - x0, fill=f"url(#{anchor}-hatch)", **whole)
    paper = svg.element("rect", class_="f-paper", x=a, width=max(b - a, 0), fill=svg.PAPER, **whole)
    safe = svg.element("rect", class_="f-safe", x=a, width=max(b - a, 0), fill=svg.SAFE, **whole)
    return svg.element("defs", hatch) + unsafe + paper + safe


def _axis(scale: svg.Linear, unit: str) -> str:
    marks, step = svg.ticks(scale.low, scale.high, 4)
    out = svg.line(scale.start, _BOTTOM, scale.end, _BOTTOM, rule=True)
    for value in marks:
        x, label = scale(value), words.tick(value, step, unit)
        half = svg.text_width(label, 10) / 2
        place = min(max(x, half), scale.end + _PAD - half)
        out += svg.line(x, _BOTTOM, x, _BOTTOM + 3, rule=True)
        out += svg.text(place, _BOTTOM + 14, label, size=10, anchor="middle", muted=True)
    return out


def _interval(strip: IntervalPlot, scale: svg.Linear) -> str:
    out = ""
    low, high = strip.low, strip.high
    if low is not None and high is not None and svg.drawable(low) and svg.drawable(high):
        x0, x1 = scale(low), scale(high)
        out += svg.line(x0, _MIDDLE, x1, _MIDDLE, width=2)
        out += svg.line(x0, _MIDDLE - 5, x0, _MIDDLE + 5, width=2)
        out += svg.line(x1, _MIDDLE - 5, x1, _MIDDLE + 5, width=2)
    x = scale(strip.value or 0.0)
    return out + svg.element(
        "circle",
        class_="f-ink s-paper",
        cx=x,
        cy=_MIDDLE,
        r=5,
        fill=svg.INK,
        stroke=svg.PAPER,
        stroke_width=1.2,
    )


def _limit_lines(strip: IntervalPlot, scale: svg.Linear) -> list[str]:
    both = strip.minimum is not None and strip.maximum is not None
    lines = []
    for limit, words_before, leans_left in (
        (strip.minimum, "at least", both),
        (strip.maximum, "at most", False),
    ):
        if limit is None or not svg.drawable(limit):
            continue
        x, label = scale(limit), f"{words_before} {words.number(limit, strip.unit)}"
        lines.append(svg.line(x, _TOP - 3, x, _BOTTOM + 2, width=2))
        lines.append(_label(x, label, scale, leans_left=leans_left))
    return lines


def _label(x: float, label: str, scale: svg.Linear, *, leans_left: bool) -> str:
    half, right = svg.text_width(label, 12) / 2, scale.end + _PAD
    if leans_left:
        x, anchor = max(x + 2, 2 * half), "end"
    elif x + half > right:
        x, anchor = right, "end"
    elif x < half:
        x, anchor = 0.0, "start"
    else:
        anchor = "middle"
    return svg.text(x, _TOP - 6, label, size=11, weight="600", anchor=anchor)


def _reference(strip: IntervalPlot, scale: svg.Linear) -> str:
    x = scale(strip.reference or 0.0)
    label = f"reference {words.number(strip.reference, strip.unit)}"
    diamond = svg.element(
        "polygon",
        points=f"{x:.2f},{_TOP - 2:g} {x + 5:.2f},{_TOP + 3:g} {x:.2f},{_TOP + 8:g} {x - 5:.2f},{_TOP + 3:g}",
        class_="f-paper s-ink",
        fill=svg.PAPER,
        stroke=svg.INK,
        stroke_width=1.4,
    )
    dashed = svg.line(x, _TOP, x, _BOTTOM + 2, width=1.4, dash="3 2")
    return dashed + diamond + _label(x, label, scale, leans_left=False)
