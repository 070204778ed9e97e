"""Leak-equivalents drawn as intervals on one scale of shares, stretched towards none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from synth_audit.findings.measurement import Measurement
from synth_audit.report import svg, words

WIDTH, HEIGHT = 360.0, 46.0
_PAD, _BELOW, _TOP, _BAND = 10.0, 26.0, 4.0, 22.0
_MIDDLE, _BOTTOM = _TOP + _BAND / 2, _TOP + _BAND
_MARKS = (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_REACHES = (0.05, 0.1, 0.25, 0.5, 1.0)


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
    hatch = svg.element(
        "pattern",
        svg.element("path", d="M0 6 L6 0", class_="s-rule", stroke=svg.RULE, stroke_width=1),
        id=f"{anchor}-below",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
    below = svg.element("rect", x=_PAD, y=_TOP, width=_BELOW, height=_BAND, fill=f"url(#{anchor}-below)")
    track = svg.element(
        "rect",
        class_="f-track",
        x=scale.zero,
        y=_TOP,
        width=WIDTH - _PAD - scale.zero,
        height=_BAND,
        fill="#eef1f4",
    )
    return svg.element("defs", hatch) + below + track


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
    mark: dict[str, Any] = {"class_": "f-ink s-paper", "fill": svg.INK, "stroke": svg.PAPER}
    return out + svg.element("circle", cx=scale(value), cy=_MIDDLE, r=5, stroke_width=1.2, **mark)


def _end(x: float, beyond: int) -> str:
    """The end of an interval: a bar, or an arrow where it goes on."""
    if not beyond:
        return svg.line(x, _MIDDLE - 5, x, _MIDDLE + 5, width=2)
    d = f"M{x - 5 * beyond:.1f} {_MIDDLE - 5:g}L{x:.1f} {_MIDDLE:g}L{x - 5 * beyond:.1f} {_MIDDLE + 5:g}"
    return svg.element("path", d=d, class_="s-ink", fill="none", stroke=svg.INK, stroke_width=2)
