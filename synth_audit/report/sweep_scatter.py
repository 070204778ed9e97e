"""Privacy against utility: a point for each candidate, both intervals as whiskers, best at the top right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from synth_audit.core.verdict import Result
from synth_audit.report import result_marks, svg, words
from synth_audit.report.axes import WIDTH

_PLOT = 300.0
_EACH = 24.0
"""Height of the plot at least, and what each candidate adds to it of many."""

_TOP = 30.0
_R = 7.0

Span = tuple[float, float]
Frame = tuple[float, float, float, float]


@dataclass(frozen=True)
class Dot:
    """One candidate: value and interval (low, high) of privacy and of utility, what became of it."""

    label: str
    privacy: float
    privacy_span: Span
    utility: float
    utility_span: Span
    result: Result
    chosen: bool


@dataclass(frozen=True)
class Axis:
    """One of the two measurements.

    Attributes:
        higher_is_better: None when that is not known; the axis then runs as usual.
    """

    title: str
    unit: str
    higher_is_better: bool | None

    @property
    def turned(self) -> bool:
        """True when the axis runs against the numbers, so that better is always right or up."""
        return self.higher_is_better is False


def scatter_svg(dots: Sequence[Dot], privacy: Axis, utility: Axis, *, anchor: str, title: str) -> str:
    """The plot of all candidates that have both numbers."""
    if not dots:
        body = svg.text(0, 16, "No candidate has both numbers.", muted=True)
        return svg.document(WIDTH, 26, body, anchor=anchor, title=title, description="Nothing to draw.")
    bottom = _TOP + max(_PLOT, _EACH * len(dots))
    y_body, y_scale, left = _y_axis(utility, _reach([(d.utility, *d.utility_span) for d in dots]), bottom)
    x_body, x_scale = _x_axis(privacy, _reach([(d.privacy, *d.privacy_span) for d in dots]), left, bottom)
    body = y_body + x_body
    for d in dots:
        body += _whiskers(d, x_scale, y_scale)
    for d in dots:
        x, y = x_scale(d.privacy), y_scale(d.utility)
        if d.chosen:
            body += svg.element(
                "circle", class_="s-ink", cx=x, cy=y, r=_R + 5, fill="none", stroke=svg.INK, stroke_width=2.4
            )
        body += result_marks.result_mark(d.result, x, y, _R)
    places = [(x_scale(d.privacy), y_scale(d.utility)) for d in dots]
    body += _names(dots, places, (left + 2, _TOP, WIDTH - 2, bottom))
    about = _describe(dots, privacy, utility)
    return svg.document(WIDTH, bottom + 58, body, anchor=anchor, title=title, description=about)


def _reach(triples: Sequence[tuple[float, ...]]) -> Span:
    low, high = svg.domain([v for triple in triples for v in triple if svg.drawable(v)])
    room = (high - low) * 0.04
    return low - room, high + room


def _y_axis(axis: Axis, span: Span, bottom: float) -> tuple[str, svg.Linear, float]:
    marks, step = svg.ticks(*span, 6)
    names = [words.tick(v, step, axis.unit) for v in marks]
    left = max(svg.text_width(n, 11) for n in names) + 10
    ends = (_TOP, bottom) if axis.turned else (bottom, _TOP)
    scale = svg.Linear(*span, *ends)
    arrow = "" if axis.higher_is_better is None else "↑ more useful"
    body = _titled(axis.title, arrow, 0.0, 11.0)
    for value, name in zip(marks, names, strict=True):
        y = scale(value)
        body += svg.line(left, y, WIDTH - 2, y, rule=True)
        body += svg.text(left - 6, y + 4, name, size=11, anchor="end", muted=True)
    return body + svg.line(left, _TOP, left, bottom), scale, left


def _x_axis(axis: Axis, span: Span, left: float, bottom: float) -> tuple[str, svg.Linear]:
    marks, step = svg.ticks(*span, 6)
    scale = svg.Linear(*span, *((WIDTH - 2, left) if axis.turned else (left, WIDTH - 2)))
    body = ""
    for value in marks:
        x, name = scale(value), words.tick(value, step, axis.unit)
        half = svg.text_width(name, 11) / 2
        body += svg.line(x, _TOP, x, bottom, rule=True)
        place = min(max(x, half), WIDTH - half)
        body += svg.text(place, bottom + 16, name, size=11, anchor="middle", muted=True)
    arrow = "" if axis.higher_is_better is None else "safer →"
    body += _titled(axis.title, arrow, left, bottom + 38)
    if axis.turned:
        aside = "numbers fall towards the right, where it is safer"
        body += svg.text(left, bottom + 54, aside, size=11, muted=True)
    return body + svg.line(left, bottom, WIDTH - 2, bottom), scale


def _titled(title: str, arrow: str, left: float, y: float) -> str:
    room = WIDTH - left - (svg.text_width(arrow, 12) + 16 if arrow else 0)
    out = svg.text(left, y, svg.fitted(title, room, 12), muted=True)
    return out + (svg.text(WIDTH - 2, y, arrow, anchor="end", weight="600") if arrow else "")


def _whiskers(d: Dot, x_scale: svg.Linear, y_scale: svg.Linear) -> str:
    x, y, width = x_scale(d.privacy), y_scale(d.utility), 2.0 if d.chosen else 1.0
    out = ""
    if all(map(svg.drawable, d.privacy_span)):
        a, b = map(x_scale, d.privacy_span)
        out += svg.line(a, y, b, y, width=width)
        out += "".join(svg.line(end, y - 4, end, y + 4, width=width) for end in (a, b))
    if all(map(svg.drawable, d.utility_span)):
        a, b = map(y_scale, d.utility_span)
        out += svg.line(x, a, x, b, width=width)
        out += "".join(svg.line(x - 4, end, x + 4, end, width=width) for end in (a, b))
    return out


def _names(dots: Sequence[Dot], places: Sequence[tuple[float, float]], frame: Frame) -> str:
    """Labels where they cover least, the chosen one first."""
    taken = [(x - _R - 1, y - _R - 1, x + _R + 1, y + _R + 1) for x, y in places]
    out = ""
    for i in sorted(range(len(dots)), key=lambda i: not dots[i].chosen):
        shown = svg.fitted(dots[i].label, 150, 12)
        wide = svg.text_width(shown, 12) + (6 if dots[i].chosen else 0)
        spots = _spots(*places[i], wide)
        costs = [sum(_overlap(spot, t) for t in taken) + 30 * _outside(spot, frame) for spot in spots]
        best = spots[costs.index(min(costs))]
        taken.append(best)
        out += _leader(*places[i], best)
        out += _name(shown, (best[0] + best[2]) / 2, best[3] - 3, chosen=dots[i].chosen)
    return out


def _leader(x: float, y: float, spot: Frame) -> str:
    """A thin line to a label that is not close to its sign."""
    end = (min(max(x, spot[0]), spot[2]), min(max(y, spot[1]), spot[3]))
    away = math.hypot(end[0] - x, end[1] - y)
    if away < _R + 8:
        return ""
    start = _R / away
    return svg.line(x + (end[0] - x) * start, y + (end[1] - y) * start, *end, width=0.8)


def _spots(x: float, y: float, wide: float) -> list[Frame]:
    """Places for a label, the diagonal ones first: whiskers run straight."""
    out = []
    for gap in (_R + 3, _R + 17, _R + 31, _R + 45):
        right, left, middle = x + gap, x - gap - wide, x - wide / 2
        above, below, level = y - gap - 10, y + gap - 4, y - 7
        corners = ((right, above), (right, below), (left, above), (left, below))
        for a, b in (*corners, (right, level), (left, level), (middle, above - 5), (middle, below + 5)):
            out.append((a, b, a + wide, b + 14))
    return out


def _overlap(a: Frame, b: Frame) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(wide, 0.0) * max(high, 0.0)


def _outside(a: Frame, frame: Frame) -> float:
    beyond = (frame[0] - a[0], frame[1] - a[1], a[2] - frame[2], a[3] - frame[3])
    return sum(max(x, 0.0) for x in beyond)


def _name(shown: str, x: float, y: float, *, chosen: bool) -> str:
    return svg.element(
        "text",
        escape(shown),
        class_="f-ink s-paper",
        x=x,
        y=y,
        font_size=12,
        fill=svg.INK,
        stroke=svg.PAPER,
        stroke_width=3,
        paint_order="stroke",
        text_anchor="middle",
        font_weight="700" if chosen else None,
    )


def _describe(dots: Sequence[Dot], privacy: Axis, utility: Axis) -> str:
    parts = [f"{privacy.title} across, {utility.title} up; better is to the right and up"]
    for d in dots[:12]:
        p, u = words.number(d.privacy, privacy.unit), words.number(d.utility, utility.unit)
        word = result_marks.RESULT_WORDS[d.result].lower()
        parts.append(f"{d.label}: privacy {p}, utility {u}, {word}{', chosen' if d.chosen else ''}")
    if len(dots) > 12:
        parts.append(f"and {len(dots) - 12} more candidates")
    return ". ".join(parts) + "."
