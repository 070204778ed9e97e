"""Axes with round numbers, and labels that do not touch."""

from __future__ import annotations

from dataclasses import dataclass

from synth_audit.report import svg, words

WIDTH = 460.0
SIZE = 12.0
_PLOT = 220.0


@dataclass(frozen=True)
class Plot:
    """A drawing and the height it takes."""

    body: str
    height: float


def value_axis(low: float, high: float, top: float, label: str) -> tuple[Plot, svg.Linear, float]:
    """Horizontal rules with numbers, its label above; returns the scale and where the plot starts."""
    marks, step = svg.outer_ticks(low, high, 5)
    low, high = min(low, *marks), max(high, *marks)
    names = [words.tick(v, step) for v in marks]
    left = max(svg.text_width(n, 11) for n in names) + 10
    start = top + 22
    scale = svg.Linear(low, high, start + _PLOT, start)
    out = svg.text(0, top + 10, svg.fitted(label, WIDTH, SIZE), muted=True, size=SIZE)
    for value, name in zip(marks, names, strict=True):
        y = scale(value)
        out += svg.line(left, y, WIDTH - 4, y, rule=True)
        out += svg.text(left - 6, y + 4, name, size=11, anchor="end", muted=True)
    return Plot(out, start - top + _PLOT), scale, left


def position_labels(names: list[str], places: list[float], y: float, room: float) -> str:
    """Names under their places, as many as fit without touching."""
    widest = max(svg.text_width(n, 11) for n in names) + 8
    every = 1
    while every < len(names) and every * room < min(widest, 110):
        every += 1
    out = ""
    for name, x in list(zip(names, places, strict=True))[::every]:
        shown = svg.fitted(name, max(every * room - 4, 24), 11, middle=True)
        half = svg.text_width(shown, 11) / 2
        x = min(max(x, half), WIDTH - half)
        out += svg.text(x, y, shown, size=11, anchor="middle", muted=True)
    return out


def axis_title(label: str, left: float, y: float) -> str:
    """The label under the horizontal axis, centred on the plot."""
    shown = svg.fitted(label, WIDTH - left, SIZE)
    return svg.text((left + WIDTH) / 2, y, shown, size=SIZE, anchor="middle", muted=True)
