"""Boxes: the middle half of the values, their median and how far they reach, one box for each label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from synth_audit.findings.measurement import BOX_LINES, Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds import Beside, ChartKind, Rows, Styles
from synth_audit.report.svg import WIDTH, Axes, Pen, Plot, lying_axes, standing_axes
from synth_audit.text import clean

_ROW = 24.0
_WIDEST = 15.0
_DASHES = {"dashed": "5 3", "dotted": "1.5 2.5", "dash and dot": "7 2 1.5 2"}
_SAME = 0.02
"""Comparisons whose values differ by less than this share of the axis are one line."""


def draw(series: Series, styles: Styles, top: float, beside: Beside) -> Plot:
    """Axes and boxes: standing where the names fit below them, else lying."""
    key, names = _key(series, beside), _names(series)
    body = "".join(
        svg.text(0, top + 10 + 15 * i, svg.fitted(line, WIDTH, 11), size=11, muted=True)
        for i, line in enumerate(key)
    )
    high, labels = 15.0 * len(key) + 5, (series.x_label, series.y_label)
    values = [v for i in range(len(names)) for v in five(series, i) or ()]
    span = svg.domain([*values, *beside.reach, *(v for c in beside.told for v in c.known)] or [0.0])
    if svg.short(names):
        axes = standing_axes(names, span, top + high, labels)
    else:
        axes = lying_axes(names, span, top + high, labels, _ROW)
    body += axes.plot.body + (axes.across(axes.scale.low) if axes.upright else "")
    half = min(axes.room * 0.32, _WIDEST)
    for i, centre in enumerate(axes.centres):
        if (found := five(series, i)) is None:
            body += axes.missing(centre, axes.scale.start)
            continue
        places = [axes.scale(v) for v in found]
        body += _glyph(places, centre, half, Pen(axes.upright), strong=names[i] in beside.strong)
    return Plot(body + _compared(beside, axes), axes.plot.height + high)


def five(series: Series, place: int) -> tuple[float, ...] | None:
    """Low, quartiles and median, high of one box; None when one of them is not a number."""
    values = tuple(series.lines[name][place] for name in BOX_LINES)
    return values if all(svg.drawable(v) for v in values) else None


def describe(series: Series, beside: Beside) -> str:
    """The boxes in words."""
    count = words.counted(len(series.x), "box", "boxes")
    by = f" by {series.x_label}" if series.x_label else ""
    head = f"Box plot of {series.y_label}{by}, {count}"
    return ". ".join((head, *_described(series, beside))) + "."


def _described(series: Series, beside: Beside) -> Iterator[str]:
    """Each box in words, the first eight of them."""
    for i, name in enumerate(_names(series)[:8]):
        values = five(series, i)
        if values is None:
            yield f"{name}: {words.NOT_COMPUTED}"
            continue
        low, lower, median, upper, high = (words.number(v) for v in values)
        known = [(c.name, value) for c in beside.told if (value := c.at(i)) is not None]
        aside = "".join(f", {other} {words.number(value)}" for other, value in known)
        yield f"{name}: median {median}, middle half {lower} to {upper}, from {low} to {high}{aside}"
    if len(series.x) > 8:
        yield f"and {len(series.x) - 8} more boxes"


def _key(series: Series, beside: Beside) -> list[str]:
    """What the strokes mean, in one line or two."""
    parts = ["box: middle half, median", "whiskers: lowest to highest"]
    if svg.short(_names(series)) and any(five(series, i) is None for i in range(len(series.x))):
        parts.append("?: no number")
    compared = [f"{dash}: {c.name}" for dash, c in zip(_DASHES, beside.told, strict=False)]
    return [" · ".join(line) for line in (parts, compared) if line]


def _names(series: Series) -> list[str]:
    return [clean(words.position(x)) for x in series.x]


def _glyph(places: Sequence[float], centre: float, half: float, pen: Pen, *, strong: bool) -> str:
    low, lower, median, upper, high = places
    thin = 2.0 if strong else 1.0
    body = pen.line((low, centre), (lower, centre), width=thin)
    body += pen.line((upper, centre), (high, centre), width=thin)
    body += pen.ends(low, high, centre, half / 2, width=thin)
    body += _middle(lower, upper, centre, half, pen, thin)
    return body + pen.line((median, centre - half), (median, centre + half), width=3.0)


def _middle(lower: float, upper: float, centre: float, half: float, pen: Pen, width: float) -> str:
    """The box itself: the middle half of the values."""
    low, length = min(lower, upper), abs(upper - lower)
    x, y, wide, high = low, centre - half, length, 2 * half
    if pen.upright:
        x, y, wide, high = centre - half, low, 2 * half, length
    return svg.element(
        "rect",
        x=x,
        y=y,
        width=max(wide, 0.6),
        height=max(high, 0.6),
        fill="track",
        stroke="ink",
        stroke_width=width,
    )


def _compared(beside: Beside, axes: Axes) -> str:
    """A line through all boxes where the values are the same for the eye, else one across each box."""
    body, scale, reach = "", axes.scale, axes.room * 0.45
    for dash, comparison in zip(_DASHES.values(), beside.told, strict=False):
        known = comparison.known
        if max(known) - min(known) <= _SAME * (scale.high - scale.low):
            body += axes.across(sum(known) / len(known), width=1.4, dash=dash)
            continue
        for i, centre in enumerate(axes.centres):
            if (value := comparison.at(i)) is not None:
                ends = (scale(value), centre - reach), (scale(value), centre + reach)
                body += Pen(axes.upright).line(*ends, width=1.6, dash=dash)
    return body


def box_rows(series: Series, beside: Beside) -> Rows:
    """The numbers behind the boxes: header and one row for each box."""
    rows = []
    for i, name in enumerate(_names(series)):
        own = (series.lines[line][i] for line in BOX_LINES)
        others = (c.at(i) for c in beside.told)
        cells = (*map(words.number, own), *("–" if v is None else words.number(v) for v in others))
        rows.append((name, *cells))
    return (series.x_label or "box", *BOX_LINES, *(c.name for c in beside.told)), tuple(rows)


PLOT = ChartKind(draw, describe, box_rows, legend="none")
