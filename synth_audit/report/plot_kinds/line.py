"""Lines that join their points."""

from __future__ import annotations

import math

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds import Beside, ChartKind, Styles, describe_lines, line_rows
from synth_audit.report.svg import WIDTH, LineStyle, Plot, axis_title, position_labels, value_axis

Point = tuple[float, float]


def draw(series: Series, styles: Styles, top: float, beside: Beside, *, step: bool = False) -> Plot:
    """Axes and one path per line; a value that is not a number leaves a gap.

    Args:
        step: hold each value until the next, instead of joining the points.
    """
    xs, names = _positions(series)
    ys = [y for line in series.lines.values() for y in line if svg.drawable(y)]
    axis, y_scale, left = value_axis(*svg.domain(ys), top, series.y_label)
    known = [x for x in xs if svg.drawable(x)] or [0.0]
    low, high = _reach(known) if names is None else (min(known) - 0.5, max(known) + 0.5)
    x_scale = svg.Linear(low, high, left + 4, WIDTH - 10)
    bottom = top + axis.height
    body = axis.body + svg.line(left, bottom, WIDTH - 4, bottom)
    body += _x_axis(xs, names, x_scale, bottom) + axis_title(series.x_label, left, bottom + 36)
    for i, (label, values) in enumerate(series.lines.items()):
        pieces = _pieces(xs, values, x_scale, y_scale)
        body += _curve(pieces, styles[label], step=step, offset=i)
    return Plot(body, axis.height + 44)


def _positions(series: Series) -> tuple[list[float], list[str] | None]:
    if all(isinstance(x, int | float) for x in series.x):
        return [float(x) for x in series.x], None
    return [float(i) for i in range(len(series.x))], [str(x) for x in series.x]


def _reach(known: list[float]) -> tuple[float, float]:
    low, high = min(known), max(known)
    return (low, high) if high - low > 1e-9 * max(abs(low), abs(high)) else svg.domain(known)


def _x_axis(xs: list[float], names: list[str] | None, scale: svg.Linear, bottom: float) -> str:
    if names is not None:
        room = (scale.end - scale.start) / max(len(names), 1)
        return position_labels(names, [scale(x) for x in xs], bottom + 17, room)
    whole = all(x == round(x) for x in xs if svg.drawable(x))
    marks, step = svg.ticks(scale.low, scale.high, 6, whole=whole)
    out = position_labels(
        [words.tick(v, step) for v in marks],
        [scale(v) for v in marks],
        bottom + 17,
        (scale.end - scale.start) / max(len(marks), 1),
    )
    return out + "".join(svg.line(scale(v), bottom, scale(v), bottom + 4) for v in marks)


def _pieces(
    xs: list[float], ys: tuple[float, ...], x_scale: svg.Linear, y_scale: svg.Linear
) -> list[list[Point]]:
    pieces: list[list[Point]] = [[]]
    for x, y in zip(xs, ys, strict=True):
        if svg.drawable(x) and svg.drawable(y):
            pieces[-1].append((x_scale(x), y_scale(y)))
        elif pieces[-1]:
            pieces.append([])
    return [p for p in pieces if p]


def _curve(pieces: list[list[Point]], style: LineStyle, *, step: bool, offset: int) -> str:
    path = "".join(_path(piece, step=step) for piece in pieces if len(piece) > 1)
    out = style.path(path) if path else ""
    every = max(1, math.ceil(sum(map(len, pieces)) / 12))
    points = [p for piece in pieces for p in piece]
    chosen = {i for i in range(len(points)) if (i - offset * every // 3) % every == 0}
    chosen |= {_index(pieces, i) for i, piece in enumerate(pieces) if len(piece) == 1}
    return out + "".join(style.marker(*points[i]) for i in sorted(chosen))


def _index(pieces: list[list[Point]], which: int) -> int:
    return sum(len(p) for p in pieces[:which])


def _path(piece: list[Point], *, step: bool) -> str:
    (x0, y0), *rest = piece
    out = f"M{x0:.1f} {y0:.1f}"
    for x, y in rest:
        out += f"H{x:.1f}V{y:.1f}" if step else f"L{x:.1f} {y:.1f}"
    return out


def describe(series: Series, beside: Beside) -> str:
    """The lines in words."""
    return describe_lines(series, "Line chart")


PLOT = ChartKind(draw, describe, line_rows)
