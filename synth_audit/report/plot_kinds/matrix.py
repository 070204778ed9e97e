"""Matrices of correlations: the size of a square is the strength, full is positive, hollow is negative."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds import PanelKind
from synth_audit.report.svg import WIDTH
from synth_audit.report.view import Cells
from synth_audit.text import clean

_NAMES = 130.0
_MOST_CELL = 30.0
_TOP = 18.0

_MOST_PAIRS = 300
_WITHHELD = "withheld"

Matrix = Sequence[Sequence[float]]


def matrix_svg(names: Sequence[str], values: Matrix, *, anchor: str, title: str, marked: bool = False) -> str:
    """One matrix; every matrix of the same columns has the same scale and the same places.

    Args:
        values: correlations in [-1, 1]; NaN where there is none.
        marked: cross out what is NaN, for where a scale says what that means.
    """
    if not names:
        return svg.nothing(WIDTH, "There are no correlations to draw.", anchor=anchor, title=title)
    labels = [f"{i}  {clean(name)}" for i, name in enumerate(names, 1)]
    left = min(max(svg.text_width(label, 10) for label in labels) + 8, _NAMES)
    cell = min((WIDTH - left - 2) / len(names), _MOST_CELL)
    side = cell * len(names)
    body = _labels(labels, left, cell) + _cells(values, left, cell)
    body += _absent(values, left, cell) if marked else ""
    body += svg.frame(left, _TOP, side, side)
    return svg.document(
        WIDTH, _TOP + side + 4, body, anchor=anchor, title=title, description=describe(names, values)
    )


def scale_svg(anchor: str, *, withheld: bool = False) -> str:
    """What the squares of :func:`matrix_svg` mean, and what is crossed out where something is withheld."""
    body, x, size = "", 2.0, 22.0
    for value in (1.0, 0.5, 0.1, -0.1, -0.5, -1.0):
        name = words.number(value)
        body += _paths([(x, 2.0, value)], size) + svg.text(x + size + 6, 17, name, size=12)
        x += size + 6 + svg.text_width(name, 12) + 18
    height = size + 4
    if withheld:
        body += _stroke(f"M3 {height + size - 3:.1f}l{size - 6:.1f} {6 - size:.1f}")
        body += svg.text(size + 8, height + 15, "withheld: rests on too few rows to tell", size=12)
        height += size
    return svg.document(
        WIDTH,
        height,
        body,
        anchor=anchor,
        title="Scale of the correlations",
        description="Full squares are positive correlations, hollow ones negative; the area is the strength.",
    )


def describe(names: Sequence[str], values: Matrix) -> str:
    """The strongest three correlations in words."""
    pairs = [
        (abs(values[i][j]), values[i][j], f"{names[i]} with {names[j]}")
        for i in range(len(names))
        for j in range(i)
        if math.isfinite(values[i][j])
    ]
    if not pairs:
        return "No correlation between two columns could be computed."
    strongest = sorted(pairs, key=lambda p: -p[0])[:3]
    listed = ", ".join(f"{name} {words.number(value, places=2)}" for _, value, name in strongest)
    return f"Correlations of {words.counted(len(names), 'column')}; strongest: {listed}."


def _labels(labels: Sequence[str], left: float, cell: float) -> str:
    size = min(10.0, max(cell - 0.5, 6.5))
    every = next(k for k in (1, 2, 5, 10, 20, 50) if k * cell >= svg.text_width(str(len(labels)), 9) + 2)
    out = ""
    for i, label in enumerate(labels):
        y = _TOP + (i + 0.5) * cell + size * 0.35
        out += svg.text(left - 5, y, svg.fitted(label, left - 6, size), size=size, anchor="end", muted=True)
        if every == 1 or (i + 1) % every == 0:
            x = left + (i + 0.5) * cell
            out += svg.text(x, _TOP - 5, str(i + 1), size=9, anchor="middle", muted=True)
    return out


def _cells(values: Matrix, left: float, cell: float) -> str:
    """The diagonal says nothing, so it is shaded instead of drawn."""
    diagonal = "".join(svg.square(left + i * cell, _TOP + i * cell, cell) for i in range(len(values)))
    shade = svg.element("path", d=diagonal, fill="track")
    places = [
        (left + j * cell, _TOP + i * cell, value)
        for i, row in enumerate(values)
        for j, value in enumerate(row)
        if i != j
    ]
    return shade + _paths(places, cell)


def _absent(values: Matrix, left: float, cell: float) -> str:
    """A stroke through every place without a value."""
    return _stroke(
        "".join(
            f"M{left + (j + 0.2) * cell:.1f} {_TOP + (i + 0.8) * cell:.1f}l{0.6 * cell:.1f} {-0.6 * cell:.1f}"
            for i, row in enumerate(values)
            for j, value in enumerate(row)
            if i != j and not math.isfinite(value)
        )
    )


def _stroke(path: str) -> str:
    return svg.element("path", d=path, fill="none", stroke="rule") if path else ""


def _paths(places: Sequence[tuple[float, float, float]], cell: float) -> str:
    """All squares of a kind in one path: thousands of elements would make the page heavy."""
    full = [_square(x, y, v, cell) for x, y, v in places if math.isfinite(v) and v > 0]
    hollow = [_square(x, y, v, cell, inset=0.6) for x, y, v in places if math.isfinite(v) and v < 0]
    out = ""
    if any(full):
        out += svg.element("path", d="".join(full), fill="line-0")
    if any(hollow):
        out += svg.element("path", d="".join(hollow), fill="none", stroke="line-1", stroke_width=1.2)
    return out


def _square(x: float, y: float, value: float, cell: float, *, inset: float = 0.0) -> str:
    """A square whose area is in proportion to the strength; none where it would be a speck."""
    strength = min(abs(value), 1.0)
    side = (cell - 1) * math.sqrt(strength) - 2 * inset
    if strength < 0.01 or side <= 0:
        return ""
    gap = (cell - side) / 2
    return svg.square(x + gap, y + gap, side)


def _matrix(series: Series) -> tuple[list[str], list[tuple[float, ...]]]:
    """Names and values with one row for each column, in the order of the columns."""
    names = [str(x) for x in series.x]
    absent = (math.nan,) * len(names)
    return names, [series.lines.get(name, absent) for name in names]


def _pairs(matrices: Sequence[Sequence[tuple[float, ...]]], n: int) -> Iterator[tuple[int, int]]:
    """Places of every two columns; both orders where some matrix tells them apart."""
    for i in range(n):
        for j in range(i):
            yield i, j
            if any(not _same(m[i][j], m[j][i]) for m in matrices):
                yield j, i


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _matrix_table(series: Sequence[Series], title: str) -> Cells:
    """One row for each pair of columns, those first in which the panels differ most."""
    names = [str(x) for x in series[0].x]
    matrices = [_matrix(s)[1] for s in series if [str(x) for x in s.x] == names]
    labels = [s.id.label or title for s in series if [str(x) for x in s.x] == names]
    rows = []
    for i, j in _pairs(matrices, len(names)):
        values = [m[i][j] for m in matrices]
        known = [v for v in values if math.isfinite(v)]
        spread = max(known) - min(known) if len(values) > 1 and known else abs(known[0]) if known else -1.0
        rows.append((-spread, i, j, values))
    rows.sort(key=lambda row: row[:3])
    caption = title
    if len(rows) > _MOST_PAIRS:
        caption += f": the {_MOST_PAIRS} of {len(rows):,} pairs of columns that stand out most"
    shown = tuple(
        (
            f"{names[i]} with {names[j]}",
            *(words.number(v, places=2) if math.isfinite(v) else _WITHHELD for v in vs),
        )
        for _, i, j, vs in rows[:_MOST_PAIRS]
    )
    return Cells(caption, ("Columns", *labels), shown)


def _draw(series: Series, most: float, anchor: str, title: str) -> str:
    names, values = _matrix(series)
    return matrix_svg(names, values, anchor=anchor, title=title, marked=True)


def _scale(series: Sequence[Series], most: float, anchor: str) -> str:
    withheld = any(math.isnan(v) for s in series for row in s.lines.values() for v in row)
    return scale_svg(anchor, withheld=withheld)


PLOT = PanelKind(
    most=lambda series: 1.0,  # a correlation
    draw=_draw,
    describe=lambda series: describe(*_matrix(series)),
    scale=_scale,
    table=_matrix_table,
    note="A full square is a positive relation, a hollow one a negative; the larger, the stronger.",
)
