"""Pictures with axes: series as lines, steps, bars and boxes, and intervals of gates against their limits.

Each has its words and its numbers.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, Literal

from markupsafe import Markup

from synth_audit.findings.measurement import BOX_LINES, MeasurementId, Series, is_share
from synth_audit.findings.sensitivity import DERIVED
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.report import svg, words
from synth_audit.report.panels import PANELS
from synth_audit.report.svg import WIDTH, Axes, Cells, LineStyle, Picture, Plot, result_mark
from synth_audit.store.evidence import Evidence
from synth_audit.text import clean
from synth_audit.verdict.criteria import ANSWERS

_NOTHING = "There are no values to draw."
_UNKNOWN = "This version draws no such picture; its numbers are in the table."
_MOST_TOLD = 8
"""Lines or boxes that a description names."""
_MARKERS = 12
"""Markers of one line, about."""
_ROOM_FOR_A_SIGN = 7.0
"""Width of a bar that a question mark fits into."""
_BOX_ROW, _WIDEST_BOX = 24.0, 15.0
_DASHES = {"dashed": "5 3", "dotted": "1.5 2.5", "dash and dot": "7 2 1.5 2"}
_SAME = 0.02
"""Comparisons whose values differ by less than this share of the axis are one line."""

_STRIP_WIDTH, _STRIP_HEIGHT = 360.0, 54.0
"""Of the picture of one gate."""
_PAD, _TOP, _BAND = 10.0, 17.0, 20.0
_MIDDLE, _BOTTOM = _TOP + _BAND / 2, _TOP + _BAND

Styles = Mapping[str, LineStyle]
Rows = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""A header, and rows of texts as long as it."""


@dataclass(frozen=True)
class Beside:
    """What stands beside the boxes; other kinds have no place for it.

    Attributes:
        comparisons: by name, a value for each box, None where there is none; at most one for each of the
            dashes, further ones are only in the table.
        strong: labels whose boxes are drawn heavier.
        reach: values that the axis must hold too, so that several pictures share it.
    """

    comparisons: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    strong: frozenset[str] = frozenset()
    reach: tuple[float, ...] = ()

    @property
    def told(self) -> dict[str, list[float | None]]:
        """Comparisons that have a value, without what cannot be drawn."""
        drawn = {name: [v if svg.drawable(v) else None for v in vs] for name, vs in self.comparisons.items()}
        return {name: values for name, values in drawn.items() if any(v is not None for v in values)}


@dataclass(frozen=True)
class ChartKind:
    """A kind of picture with axes.

    Attributes:
        draw: series, styles of its lines, height at which to start, what stands beside; the drawing.
        describe: the picture in words.
        rows: the numbers behind it.
        legend: how lines are told apart above the drawing; ``none`` where the drawing does it itself.
    """

    draw: Callable[[Series, Styles, float, Beside], Plot]
    describe: Callable[[Series, Beside], str]
    rows: Callable[[Series, Beside], Rows]
    legend: Literal["lines", "bars", "none"] = "lines"


def series_svg(
    series: Series, *, anchor: str = "series", heading: bool = True, beside: Beside | None = None
) -> Markup:
    """The picture of one series.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
        heading: write the title above the picture, for where nothing else does; panels have it in their
            description only.
        beside: what stands beside boxes; other kinds have no place for it.
    """
    title, beside, kind = full_title(series), beside or Beside(), CHARTS.get(series.kind)
    if panels := PANELS.get(series.kind):
        return panels.draw(series, panels.most([series]), anchor, title)
    top, body = 0.0, ""
    if heading:
        body += svg.text(0, 16, svg.fitted(title, WIDTH, 14), size=14, weight="600")
        top = 30.0
    if kind is None or not any(svg.drawable(y) for ys in series.lines.values() for y in ys):
        body += svg.text(0, top + 16, _NOTHING if kind else _UNKNOWN, muted=True)
        height = top + 26
    else:
        styles = {label: LineStyle(i, anchor) for i, label in enumerate(series.lines)}
        alone = len(styles) == 1 and next(iter(styles)) in ("", series.y_label, series.title)
        key = Plot("", 4.0)
        if kind.legend != "none" and not alone:
            key = svg.legend(styles, top, as_bars=kind.legend == "bars")
        drawn = kind.draw(series, styles, top + key.height, beside)
        body += key.body + drawn.body
        height = top + key.height + drawn.height
    told = kind.describe(series, beside) if kind else words.sentence(_UNKNOWN)
    return svg.document(WIDTH, height, body, anchor=anchor, title=title, description=told)


def picture_of(series: Series, anchor: str, *, beside: Beside | None = None) -> Picture:
    """The figure of one series with axes.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    beside, kind, title = beside or Beside(), CHARTS.get(series.kind), full_title(series)
    drawing = series_svg(series, anchor=anchor, heading=False, beside=beside)
    header, rows = (kind.rows if kind else line_rows)(series, beside)
    return Picture(title, drawing, Cells(title, header, rows))


def full_title(series: Series) -> str:
    """The title, with setting and column unless the title names them already."""
    label = series.id.label
    return series.title if label in series.title else f"{series.title}: {label}"


def _described_lines(series: Series, _beside: Beside, *, chart: str) -> str:
    """A chart in words: its axes and the range of each line."""
    parts = [f"{chart} of {series.y_label} by {series.x_label}, {words.counted(len(series.x), 'position')}"]
    for label, ys in list(series.lines.items())[:_MOST_TOLD]:
        values = [y for y in ys if svg.drawable(y)]
        missing = len(ys) - len(values)
        span = f"from {words.number(min(values))} to {words.number(max(values))}" if values else "no values"
        parts.append(f"{label}: {span}" + (f", {missing} not computed" if missing else ""))
    if (more := len(series.lines) - _MOST_TOLD) > 0:
        parts.append(f"and {more} more lines")
    return ". ".join(parts) + "."


def line_rows(series: Series, _beside: Beside) -> Rows:
    """The numbers of every line, one row for each position."""
    labels = tuple(label or series.y_label for label in series.lines)
    xs: Sequence[float | str] = series.x
    rows = tuple(
        (words.position(x), *(words.number(ys[i]) for ys in series.lines.values())) for i, x in enumerate(xs)
    )
    return (series.x_label, *labels), rows


def _lines(series: Series, styles: Styles, top: float, _beside: Beside, *, step: bool = False) -> Plot:
    """Axes and one path per line; a value that is not a number leaves a gap.

    Args:
        step: hold each value until the next, instead of joining the points.
    """
    at: Sequence[float | str] = series.x
    named = any(isinstance(x, str) for x in at)
    xs = [float(i if named else x) for i, x in enumerate(at)]
    ys = [y for line in series.lines.values() for y in line if svg.drawable(y)]
    axis, y_scale, left = svg.value_axis(*svg.domain(ys), top, series.y_label)
    known = [x for x in xs if svg.drawable(x)] or [0.0]
    low, high = min(known), max(known)
    if named:
        low, high = low - 0.5, high + 0.5
    elif high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = svg.domain(known)
    x_scale = svg.Linear(low, high, left + 4, WIDTH - 10)
    bottom = top + axis.height
    body = axis.body + svg.line(left, bottom, WIDTH - 4, bottom)
    if named:
        names, places = [str(x) for x in at], xs
    else:
        marks, distance = svg.ticks(low, high, 6, whole=all(x == round(x) for x in known))
        names, places = [words.tick(v, distance) for v in marks], list(marks)
        body += "".join(svg.line(x_scale(v), bottom, x_scale(v), bottom + 4) for v in marks)
    room = (x_scale.end - x_scale.start) / max(len(names), 1)
    body += svg.position_labels(names, [x_scale(x) for x in places], bottom + 17, room)
    body += svg.axis_title(series.x_label, left, bottom + 36)
    for i, (label, values) in enumerate(series.lines.items()):
        points = [
            (x_scale(x), y_scale(y)) if svg.drawable(x) and svg.drawable(y) else None
            for x, y in zip(xs, values, strict=True)
        ]
        pieces = [[p for p in group if p] for joined, group in groupby(points, bool) if joined]
        body += _curve(pieces, styles[label], step=step, offset=i)
    return Plot(body, axis.height + 44)


def _curve(pieces: list[list[tuple[float, float]]], style: LineStyle, *, step: bool, offset: int) -> str:
    """The pieces of a line, with a marker on some points and on each that stands alone."""
    path = ""
    for (x0, y0), *rest in pieces:
        path += f"M{x0:.1f} {y0:.1f}" if rest else ""
        path += "".join(f"H{x:.1f}V{y:.1f}" if step else f"L{x:.1f} {y:.1f}" for x, y in rest)
    points = [(p, len(piece) == 1) for piece in pieces for p in piece]
    every = max(1, math.ceil(len(points) / _MARKERS))
    marked = (p for i, (p, one) in enumerate(points) if one or (i - offset * every // 3) % every == 0)
    return (style.path(path) if path else "") + "".join(style.marker(*p) for p in marked)


def _bars(series: Series, styles: Styles, top: float, _beside: Beside) -> Plot:
    """Bars of every line side by side at each position; they lie where names are many or long."""
    values = [y for ys in series.lines.values() for y in ys if svg.drawable(y)]
    span, labels = svg.domain([*values, 0.0], zero=True), (series.x_label, series.y_label)
    names = [words.position(x) for x in series.x]
    if any(isinstance(x, str) for x in series.x) and not svg.short(names):
        thick = 11.0 if len(styles) > 1 else 13.0
        axes = svg.lying_axes(names, span, top, labels, thick * len(styles) + 8)
    else:
        axes = svg.standing_axes(names, span, top, labels)
        thick = min(axes.room * 0.8 / len(styles), 36.0)
    body = svg.element("defs", "".join(style.pattern() for style in styles.values())) + axes.plot.body
    base = axes.scale(0.0)
    for i, centre in enumerate(axes.centres):
        for j, (label, ys) in enumerate(series.lines.items()):
            start = centre + (j - len(styles) / 2) * thick
            if not svg.drawable(ys[i]):
                body += axes.missing(start + thick / 2, base) if thick >= _ROOM_FOR_A_SIGN else ""
                continue
            edge = axes.scale(ys[i])
            along, across = (min(edge, base), abs(edge - base)), (start, thick * 0.92)
            body += styles[label].bar(*axes.pen.box(along, across))
    return Plot(body + axes.across(0.0), axes.plot.height)


def _names(series: Series) -> list[str]:
    places: Sequence[float | str] = series.x
    return [clean(words.position(x)) for x in places]


def five_numbers(series: Series, place: int) -> tuple[float, ...] | None:
    """Low, quartiles and median, high of one box; None when one of them is not a number."""
    values = tuple(series.lines[name][place] for name in BOX_LINES)
    return values if all(svg.drawable(v) for v in values) else None


def _boxes(series: Series, _styles: Styles, top: float, beside: Beside) -> Plot:
    """The middle half of the values, their median and how far they reach, one box for each label."""
    names = _names(series)
    fives = [five_numbers(series, i) for i in range(len(names))]
    key = ["box: middle half, median", "whiskers: lowest to highest"]
    key += ["?: no number"] * (svg.short(names) and None in fives)
    compared = [f"{dash}: {name}" for dash, name in zip(_DASHES, beside.told, strict=False)]
    body, start = "", top + 5
    for line in filter(None, (" · ".join(key), " · ".join(compared))):
        body += svg.text(0, start + 5, svg.fitted(line, WIDTH, 11), size=11, muted=True)
        start += 15
    values = [v for five in fives for v in five or ()]
    span = svg.domain(
        [*values, *beside.reach, *(v for c in beside.told.values() for v in c if v is not None)] or [0.0]
    )
    labels = (series.x_label, series.y_label)
    axes = (
        svg.standing_axes(names, span, start, labels)
        if svg.short(names)
        else svg.lying_axes(names, span, start, labels, _BOX_ROW)
    )
    body += axes.plot.body + (axes.across(axes.scale.low) if axes.upright else "")
    half = min(axes.room * 0.32, _WIDEST_BOX)
    for name, five, centre in zip(names, fives, axes.centres, strict=False):
        if five is None:
            body += axes.missing(centre, axes.scale.start)
            continue
        low, lower, median, upper, high = map(axes.scale, five)
        thin = 2.0 if name in beside.strong else 1.0
        for a, b in ((low, lower), (upper, high)):
            body += axes.pen.line((a, centre), (b, centre), width=thin)
        body += axes.pen.ends(low, high, centre, half / 2, width=thin)
        x, y, wide, tall = axes.pen.box((min(lower, upper), abs(upper - lower)), (centre - half, 2 * half))
        body += svg.filled(x, y, wide, tall, fill="track", stroke="ink", width=thin)
        body += axes.pen.line((median, centre - half), (median, centre + half), width=3.0)
    return Plot(body + _compared(beside, axes), axes.plot.height + start - top)


def _compared(beside: Beside, axes: Axes) -> str:
    """A line through all boxes where the values are the same for the eye, else one across each box."""
    body, scale, reach = "", axes.scale, axes.room * 0.45
    for dash, values in zip(_DASHES.values(), beside.told.values(), strict=False):
        known = [v for v in values if v is not None]
        if max(known) - min(known) <= _SAME * (scale.high - scale.low):
            body += axes.across(sum(known) / len(known), width=1.4, dash=dash)
            continue
        for value, centre in zip(values, axes.centres, strict=False):
            if value is not None:
                ends = (scale(value), centre - reach), (scale(value), centre + reach)
                body += axes.pen.line(*ends, width=1.6, dash=dash)
    return body


def _described_boxes(series: Series, beside: Beside) -> str:
    """The boxes in words."""
    by = f" by {series.x_label}" if series.x_label else ""
    head = f"Box plot of {series.y_label}{by}, {words.counted(len(series.x), 'box', 'boxes')}"
    return ". ".join((head, *_each_box(series, beside))) + "."


def _each_box(series: Series, beside: Beside) -> Iterator[str]:
    for i, name in enumerate(_names(series)[:_MOST_TOLD]):
        five = five_numbers(series, i)
        if five is None:
            yield f"{name}: {words.NOT_COMPUTED}"
            continue
        low, lower, median, upper, high = map(words.number, five)
        known = ((other, vs[i]) for other, vs in beside.told.items())
        aside = "".join(f", {other} {words.number(v)}" for other, v in known if v is not None)
        yield f"{name}: median {median}, middle half {lower} to {upper}, from {low} to {high}{aside}"
    if (more := len(series.x) - _MOST_TOLD) > 0:
        yield f"and {more} more boxes"


def _box_rows(series: Series, beside: Beside) -> Rows:
    """The numbers behind the boxes: header and one row for each box."""
    told = beside.told
    rows = tuple(
        (
            name,
            *(words.number(series.lines[line][i]) for line in BOX_LINES),
            *("–" if vs[i] is None else words.number(vs[i]) for vs in told.values()),
        )
        for i, name in enumerate(_names(series))
    )
    return (series.x_label or "box", *BOX_LINES, *told), rows


def _kind_of_lines(draw: Callable[..., Plot], chart: str, legend: Literal["lines", "bars"]) -> ChartKind:
    return ChartKind(draw, partial(_described_lines, chart=chart), line_rows, legend)


CHARTS = {
    "line": _kind_of_lines(_lines, "Line chart", "lines"),
    "step": _kind_of_lines(partial(_lines, step=True), "Step chart", "lines"),
    "bar": _kind_of_lines(_bars, "Bar chart", "bars"),
    "box": ChartKind(_boxes, _described_boxes, _box_rows, legend="none"),
}
"""By the kind of a series; what is neither here nor among :data:`PANELS` is shown as numbers only."""


def gate_picture(gate: GateResult, unit: str, anchor: str) -> Markup | None:
    """The number of a gate, its interval and its limit with the safe side shaded; None without a number."""
    beside = (gate.low, gate.high, gate.minimum, gate.maximum)
    if not svg.drawable(gate.value) or not any(map(svg.drawable, beside)):
        return None
    body, told = drawing(gate, unit, _STRIP_WIDTH, anchor), _told(gate, unit)
    return svg.document(_STRIP_WIDTH, _STRIP_HEIGHT, body, anchor=anchor, title=gate.title, description=told)


def _told(gate: GateResult, unit: str) -> str:
    """The picture in words."""
    places = words.decimals(unit, gate.value, low=gate.low, high=gate.high)
    parts = [f"Value {words.number(gate.value, unit, places)}"]
    if gate.low is not None and gate.high is not None:
        parts.append(f"interval {words.interval(gate.low, gate.high, unit, places)}")
    if limit := words.limits(gate.minimum, gate.maximum, unit):
        parts.append(f"limit {limit}")
    return words.sentence(", ".join((*parts, f"result: {words.RESULT_WORDS[gate.result].lower()}")))


def drawing(gate: GateResult, unit: str, width: float, anchor: str) -> str:
    """What is inside the picture, to be put into a larger one."""
    if not svg.drawable(gate.value):
        return svg.text(_PAD, _MIDDLE + 4, "No number to draw: not computed", muted=True)
    scale = svg.Linear(*_domain(gate, unit), _PAD, width - _PAD)
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
        out += svg.centred(x, _BOTTOM + 14, label, 10, scale.end + _PAD)
    return out


def _interval(gate: GateResult, scale: svg.Linear) -> str:
    out = ""
    low, high = gate.low, gate.high
    if low is not None and high is not None and svg.drawable(low) and svg.drawable(high):
        out += svg.Pen(upright=False).interval(scale(low), scale(high), _MIDDLE)
    return out + svg.dot(scale(gate.value or 0.0), _MIDDLE)


def _limits(gate: GateResult, unit: str, scale: svg.Linear) -> str:
    """A line at each limit, and what they ask for above: of two in one text, which two could cover."""
    places = [scale(x) for x in (gate.minimum, gate.maximum) if x is not None and svg.drawable(x)]
    if not places:
        return ""
    told = words.limits(gate.minimum, gate.maximum, unit)
    middle, right = sum(places) / len(places), scale.end + _PAD
    label = svg.centred(middle, _TOP - 6, told, 11, right, muted=False, weight="600")
    return "".join(svg.line(x, _TOP - 3, x, _BOTTOM + 2, width=2) for x in places) + label


def suite_overview_svg(
    gates: Sequence[GateResult], *, units: Mapping[MeasurementId, str] | None = None, anchor: str = "gates"
) -> Markup:
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
        word = words.RESULT_WORDS[gate.result] + ("" if gate.blocking else " (advisory)")
        body += result_mark(gate.result, 20, y + 28, 8)
        body += svg.text(38, y + 24, svg.fitted(gate.title, label - 50, 13), size=13, weight="600")
        body += svg.text(38, y + 42, word, size=12, muted=True)
        where = "Follows from the other gates" if gate.gate == ANSWERS else "Checked on the table itself"
        content = svg.text(_PAD, _MIDDLE + 4, where, muted=True)
        if gate.measurement:
            content = drawing(gate, unit, width - label, f"{anchor}-{i + 1}")
        body += svg.element("g", content, transform=f"translate({label:g} {y:g})")
    if not gates:
        body += svg.text(12, row / 2, "The suite has no gates.", muted=True)
    tally = [f"{words.RESULT_WORDS[r]}: {n}" for r in Result if (n := sum(g.result is r for g in gates))]
    listed = [f"{g.title}: {words.RESULT_WORDS[g.result].lower()}" for g in gates[:40]]
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
