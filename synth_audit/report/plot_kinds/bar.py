"""Bars: standing for numbers and few short names, lying for many or long names."""

from __future__ import annotations

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds._contract import Beside, ChartKind, Styles, describe_lines, line_rows
from synth_audit.report.svg import WIDTH, Plot, axis_title, position_labels, value_axis

MOST_BARS = 40
_NAME_WIDTH = 180.0


def draw(series: Series, styles: Styles, top: float, beside: Beside) -> Plot:
    """Bars of every line side by side at each position."""
    defs = svg.element("defs", "".join(style.pattern() for style in styles.values()))
    if any(isinstance(x, str) for x in series.x) and not _short(series):
        plot = _lying(series, styles, top)
    else:
        plot = _standing(series, styles, top)
    return Plot(defs + plot.body, plot.height)


def _short(series: Series) -> bool:
    room = (WIDTH - 50) / len(series.x)
    return all(svg.text_width(str(x), 11) <= room - 6 for x in series.x)


def _span(series: Series) -> tuple[float, float]:
    values = [y for ys in series.lines.values() for y in ys if svg.drawable(y)]
    return svg.domain([*values, 0.0], zero=True)


def _standing(series: Series, styles: Styles, top: float) -> Plot:
    axis, scale, left = value_axis(*_span(series), top, series.y_label)
    slot = (WIDTH - 4 - left) / len(series.x)
    width = min(slot * 0.8 / len(styles), 36.0)
    base, bottom = scale(0.0), top + axis.height
    body = axis.body
    for j, (label, ys) in enumerate(series.lines.items()):
        for i, y in enumerate(ys):
            x = left + (i + 0.5) * slot + (j - len(styles) / 2) * width
            if svg.drawable(y):
                edge = scale(y)
                body += styles[label].bar(x, min(edge, base), width * 0.92, abs(edge - base))
            elif width >= 7:
                body += svg.text(x + width / 2, base - 3, "?", size=11, anchor="middle", muted=True)
    body += svg.line(left, base, WIDTH - 4, base)
    names = [x if isinstance(x, str) else words.number(float(x)) for x in series.x]
    places = [left + (i + 0.5) * slot for i in range(len(names))]
    body += position_labels(names, places, bottom + 17, slot)
    return Plot(body + axis_title(series.x_label, left, bottom + 36), axis.height + 44)


def _lying(series: Series, styles: Styles, top: float) -> Plot:
    shown = min(len(series.x), MOST_BARS)
    thick = 11.0 if len(styles) > 1 else 13.0
    row = thick * len(styles) + 8
    left = min(max(svg.text_width(str(x), 12) for x in series.x[:shown]) + 10, _NAME_WIDTH)
    names = _names(series, shown, left - 10)
    low, high = _span(series)
    marks, step = svg.outer_ticks(low, high, 4)
    scale = svg.Linear(min(low, *marks), max(high, *marks), left, WIDTH - 14)
    start = top + 22
    bottom = start + shown * row + 2
    body = svg.text(0, top + 10, svg.fitted(series.x_label, WIDTH, 12), muted=True)
    for value in marks:
        body += svg.line(scale(value), start, scale(value), bottom, rule=True)
        body += svg.text(
            scale(value), bottom + 15, words.tick(value, step), size=11, anchor="middle", muted=True
        )
    for i in range(shown):
        body += _row(series, styles, i, names[i], start + i * row + 4, thick, scale)
    body += svg.line(scale(0.0), start, scale(0.0), bottom)
    body += axis_title(series.y_label, left, bottom + 34)
    if len(series.x) > shown:
        rest = f"{words.counted(len(series.x) - shown, 'more row')} in the table below the picture"
        body += svg.text(0, bottom + 54, rest, muted=True)
        return Plot(body, bottom + 62 - top)
    return Plot(body, bottom + 42 - top)


def _names(series: Series, shown: int, room: float) -> list[str]:
    """Names cut to fit, and numbered where the cut made them alike."""
    whole = [str(x) for x in series.x[:shown]]
    names = [svg.fitted(name, room, middle=True) for name in whole]
    if len(set(names)) < len(names):
        names = [svg.fitted(f"{i}. {name}", room) for i, name in enumerate(whole, 1)]
    return names


def _row(
    series: Series,
    styles: Styles,
    i: int,
    name: str,
    y: float,
    thick: float,
    scale: svg.Linear,
) -> str:
    middle = y + thick * len(styles) / 2 + 4
    body = svg.text(scale.start - 8, middle, name, anchor="end")
    base = scale(0.0)
    for label, ys in series.lines.items():
        if svg.drawable(ys[i]):
            edge = scale(ys[i])
            body += styles[label].bar(min(edge, base), y, abs(edge - base), thick - 2)
        else:
            body += svg.text(base + 5, y + thick - 2, words.NOT_COMPUTED, size=10, muted=True)
        y += thick
    return body


def describe(series: Series, beside: Beside) -> str:
    """The bars in words."""
    return describe_lines(series, "Bar chart")


PLOT = ChartKind(draw, describe, line_rows, legend="bars")
