"""Boxes: the middle half of the values, their median and how far they reach, one box for each label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from synth_audit.findings.measurement import BOX_LINES, Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds._contract import Beside, ChartKind, Rows, Styles
from synth_audit.report.svg import WIDTH, Pen, Plot, axis_title, position_labels, value_axis
from synth_audit.text import clean

MOST_BOXES = 40
_NAME_WIDTH = 180.0
_ROW = 24.0
_WIDEST = 15.0
_DASHES = {"dashed": "5 3", "dotted": "1.5 2.5", "dash and dot": "7 2 1.5 2"}
_SAME = 0.02
"""Comparisons whose values differ by less than this share of the axis are one line."""


def draw(series: Series, styles: Styles, top: float, beside: Beside) -> Plot:
    """Axes and boxes: standing where the names fit below them, else lying."""
    key = _key(series, beside)
    body = "".join(
        svg.text(0, top + 10 + 15 * i, svg.fitted(line, WIDTH, 11), size=11, muted=True)
        for i, line in enumerate(key)
    )
    high = 15.0 * len(key) + 5
    plot = (_standing if _short(series) else _lying)(series, top + high, beside)
    return Plot(body + plot.body, plot.height + high)


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
    if _short(series) and any(five(series, i) is None for i in range(len(series.x))):
        parts.append("?: no number")
    compared = [f"{dash}: {c.name}" for dash, c in zip(_DASHES, beside.told, strict=False)]
    return [" · ".join(line) for line in (parts, compared) if line]


def _short(series: Series) -> bool:
    room = (WIDTH - 50) / max(len(series.x), 1)
    return all(svg.text_width(name, 11) <= room - 6 for name in _names(series))


def _names(series: Series) -> list[str]:
    labels: Sequence[float | str] = series.x
    return [clean(x) if isinstance(x, str) else words.number(float(x)) for x in labels]


def _span(series: Series, beside: Beside) -> tuple[float, float]:
    values = [v for i in range(len(series.x)) for v in five(series, i) or ()]
    return svg.domain([*values, *beside.reach, *(v for c in beside.told for v in c.known)] or [0.0])


def _standing(series: Series, top: float, beside: Beside) -> Plot:
    axis, scale, left = value_axis(*_span(series, beside), top, series.y_label)
    slot = (WIDTH - 4 - left) / len(series.x)
    bottom = top + axis.height
    body = axis.body + svg.line(left, bottom, WIDTH - 4, bottom)
    centres = [left + (i + 0.5) * slot for i in range(len(series.x))]
    body += _boxes(series, centres, slot, scale, beside, Pen(upright=True))
    body += _compared(beside, centres, slot, scale, Pen(upright=True))
    body += position_labels(_names(series), centres, bottom + 17, slot)
    return Plot(body + axis_title(series.x_label, left, bottom + 36), axis.height + 44)


def _lying(series: Series, top: float, beside: Beside) -> Plot:
    shown = min(len(series.x), MOST_BOXES)
    names = _names(series)[:shown]
    left = min(max(svg.text_width(n, 12) for n in names) + 10, _NAME_WIDTH)
    low, high = _span(series, beside)
    marks, step = svg.outer_ticks(low, high, 4)
    scale = svg.Linear(min(low, *marks), max(high, *marks), left, WIDTH - 14)
    start = top + 18
    bottom = start + shown * _ROW + 2
    body = svg.text(0, top + 10, svg.fitted(series.x_label, WIDTH, 12), muted=True)
    for value in marks:
        x = scale(value)
        body += svg.line(x, start, x, bottom, rule=True)
        body += svg.text(x, bottom + 15, words.tick(value, step), size=11, anchor="middle", muted=True)
    centres = [start + (i + 0.5) * _ROW for i in range(shown)]
    for name, y in zip(_fitted(names, left - 10), centres, strict=True):
        body += svg.text(left - 8, y + 4, name, anchor="end")
    body += _boxes(series, centres, _ROW, scale, beside, Pen(upright=False))
    body += _compared(beside, centres, _ROW, scale, Pen(upright=False))
    title = svg.fitted(series.y_label, WIDTH - left, 12)
    body += svg.text((left + WIDTH) / 2, bottom + 34, title, anchor="middle", muted=True)
    height = bottom + 42
    if shown < len(series.x):
        more = f"{len(series.x) - shown} more boxes in the table below the picture"
        body += svg.text(0, height + 12, more, muted=True)
        height += 20
    return Plot(body, height - top)


def _fitted(names: Sequence[str], room: float) -> list[str]:
    """Names cut in their middle, numbered when that makes two of them alike."""
    cut = [svg.fitted(name, room, middle=True) for name in names]
    if len(set(cut)) < len(cut):
        cut = [svg.fitted(f"{i}. {name}", room) for i, name in enumerate(names, 1)]
    return cut


def _boxes(
    series: Series, centres: Sequence[float], slot: float, scale: svg.Linear, beside: Beside, pen: Pen
) -> str:
    half = min(slot * 0.32, _WIDEST)
    body = ""
    for i, (centre, name) in enumerate(zip(centres, _names(series), strict=False)):
        values = five(series, i)
        if values is None:
            body += _nothing(centre, scale, pen)
            continue
        body += _glyph([scale(v) for v in values], centre, half, pen, strong=name in beside.strong)
    return body


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


def _nothing(centre: float, scale: svg.Linear, pen: Pen) -> str:
    if pen.upright:
        return svg.text(centre, scale.start - 5, "?", size=11, anchor="middle", muted=True)
    return svg.text(scale.start + 5, centre + 4, words.NOT_COMPUTED, size=10, muted=True)


def _compared(beside: Beside, centres: Sequence[float], slot: float, scale: svg.Linear, pen: Pen) -> str:
    """A line through all boxes where the values are the same for the eye, else one across each box."""
    body = ""
    for dash, comparison in zip(_DASHES.values(), beside.told, strict=False):
        known = comparison.known
        if max(known) - min(known) <= _SAME * (scale.high - scale.low):
            at = scale(sum(known) / len(known))
            ends = (centres[0] - slot / 2, centres[-1] + slot / 2)
            body += pen.line((at, ends[0]), (at, ends[1]), width=1.4, dash=dash)
            continue
        for i, centre in enumerate(centres):
            value = comparison.at(i)
            if value is not None:
                at = scale(value)
                body += pen.line((at, centre - slot * 0.45), (at, centre + slot * 0.45), width=1.6, dash=dash)
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
