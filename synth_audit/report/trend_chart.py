"""One gate over the audits of a table: value and interval of each, against its limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.core.verdict import GateResult
from synth_audit.report import svg, words
from synth_audit.report.result_marks import RESULT_WORDS, result_mark

WIDTH, HEIGHT = 300.0, 96.0
_TOP, _BOTTOM, _RIGHT = 8.0, 78.0, 10.0


@dataclass(frozen=True)
class TrendPoint:
    """A gate in one audit.

    Attributes:
        day: of the audit, in words. released: the table went out on it.
    """

    gate: GateResult
    day: str
    released: bool


def trend_svg(points: Sequence[TrendPoint], *, title: str, unit: str, anchor: str) -> str:
    """The audits from left to right, the oldest first; a line under those that were released."""
    shown = [p for p in points if svg.drawable(p.gate.value)]
    ends = [x for p in shown for x in _numbers(p.gate) if x is not None and svg.drawable(x)]
    if not ends:
        body = svg.text(0, 20, "No number to draw", muted=True)
        return svg.document(WIDTH, HEIGHT, body, anchor=anchor, title=title, description="No number.")
    marks, step = svg.outer_ticks(*svg.domain(ends), 3)
    names = [words.tick(v, step, unit) for v in marks]
    left = max(svg.text_width(name, 10) for name in names) + 6
    y = svg.Linear(marks[0], marks[-1], _BOTTOM, _TOP)
    body = ""
    for value, name in zip(marks, names, strict=True):
        body += svg.line(left, y(value), WIDTH, y(value), rule=True)
        body += svg.text(left - 4, y(value) + 3, name, size=10, anchor="end", muted=True)
    for limit in {shown[-1].gate.minimum, shown[-1].gate.maximum} - {None}:
        body += svg.line(left, y(limit), WIDTH, y(limit), dash="4 3", width=1.5)  # type: ignore[arg-type]
    gap = (WIDTH - _RIGHT - left - 14) / max(len(shown) - 1, 1)
    for i, point in enumerate(shown):
        body += _point(point, left + 14 + i * gap, y)
    body += svg.text(left + 4, HEIGHT - 4, shown[0].day, size=10, muted=True)
    if len(shown) > 1:
        body += svg.text(WIDTH, HEIGHT - 4, shown[-1].day, size=10, anchor="end", muted=True)
    told = "; ".join(_told(p, unit) for p in shown)
    return svg.document(WIDTH, HEIGHT, body, anchor=anchor, title=title, description=told)


def _numbers(gate: GateResult) -> tuple[float | None, ...]:
    return gate.value, gate.low, gate.high, gate.minimum, gate.maximum


def _point(point: TrendPoint, x: float, y: svg.Linear) -> str:
    gate, out = point.gate, ""
    assert gate.value is not None
    if gate.low is not None and gate.high is not None and svg.drawable(gate.low) and svg.drawable(gate.high):
        out = svg.line(x, y(gate.low), x, y(gate.high), width=2)
    if point.released:
        out += svg.line(x - 5, _BOTTOM + 4, x + 5, _BOTTOM + 4, width=3)
    return out + result_mark(gate.result, x, y(gate.value), 5)


def _told(point: TrendPoint, unit: str) -> str:
    gate = point.gate
    known = gate.low is not None and gate.high is not None
    span = f" ({words.interval(gate.low, gate.high, unit)})" if known else ""  # type: ignore[arg-type]
    out = ", released" if point.released else ""
    return f"{point.day}: {words.number(gate.value, unit)}{span}, {RESULT_WORDS[gate.result].lower()}{out}"
