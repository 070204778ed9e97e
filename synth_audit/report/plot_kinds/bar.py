"""Bars: standing for numbers and few short names, lying for many or long names."""

from __future__ import annotations

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds import Beside, ChartKind, Styles, describe_lines, line_rows
from synth_audit.report.svg import Axes, Plot, lying_axes, standing_axes


def draw(series: Series, styles: Styles, top: float, beside: Beside) -> Plot:
    """Bars of every line side by side at each position."""
    values = [y for ys in series.lines.values() for y in ys if svg.drawable(y)]
    span = svg.domain([*values, 0.0], zero=True)
    names = [words.position(x) for x in series.x]
    if any(isinstance(x, str) for x in series.x) and not svg.short(names):
        thick = 11.0 if len(styles) > 1 else 13.0
        axes = lying_axes(names, span, top, (series.x_label, series.y_label), thick * len(styles) + 8)
    else:
        axes = standing_axes(names, span, top, (series.x_label, series.y_label))
        thick = min(axes.room * 0.8 / len(styles), 36.0)
    defs = svg.element("defs", "".join(style.pattern() for style in styles.values()))
    bars = "".join(
        _bar(axes, centre + (j - len(styles) / 2) * thick, thick, ys[i], styles[label])
        for i, centre in enumerate(axes.centres)
        for j, (label, ys) in enumerate(series.lines.items())
    )
    return Plot(defs + axes.plot.body + bars + axes.across(0.0), axes.plot.height)


def _bar(axes: Axes, start: float, thick: float, value: float, style: svg.LineStyle) -> str:
    """One bar whose side begins at ``start``, or a sign that there is no number."""
    base = axes.scale(0.0)
    if not svg.drawable(value):
        return axes.missing(start + thick / 2, base) if thick >= _ROOM_FOR_A_SIGN else ""
    edge = axes.scale(value)
    low, length = min(edge, base), abs(edge - base)
    return (
        style.bar(start, low, thick * 0.92, length)
        if axes.upright
        else style.bar(low, start, length, thick - 2)
    )


_ROOM_FOR_A_SIGN = 7.0
"""Width of a bar that a question mark fits into."""


def describe(series: Series, beside: Beside) -> str:
    """The bars in words."""
    return describe_lines(series, "Bar chart")


PLOT = ChartKind(draw, describe, line_rows, legend="bars")
