"""Pictures in panels on one scale: correlations of columns, and where rows lie on a plane.

The area of a square is the strength of a correlation (full is positive, hollow negative) or a share of rows.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.svg import WIDTH, Cells, Panel, Picture
from synth_audit.text import clean

_NAMES, _MOST_CELL, _TOP = 130.0, 30.0, 18.0
_MOST_PAIRS = 300
"""Pairs of columns in the table of a matrix."""

_NARROW = 290.0
"""Width of a density: three of them fit side by side."""
_SPECK = 0.7
"""Side of the smallest square that can be seen."""
_LARGEST = 24.0
"""Side of a cell in the scale of a density."""

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class PanelKind:
    """Series of one quantity side by side as one figure, on one scale.

    Attributes:
        most: the value that fills the scale, of all panels together.
        draw: one panel as a picture that stands alone: series, that value, anchor of its ids, title.
        scale: the scale as a picture: all panels, that value, anchor.
        table: the numbers behind all panels, under a title.
        note: how to read it.
        narrow: from how many panels on each takes a third of the width; 0 for never.
    """

    most: Callable[[Sequence[Series]], float]
    draw: Callable[[Series, float, str, str], Markup]
    scale: Callable[[Sequence[Series], float, str], Markup]
    table: Callable[[Sequence[Series], str], Cells]
    note: str
    narrow: int = 0


def panels_picture(series: Sequence[Series], kind: PanelKind, anchor: str) -> Picture:
    """The figure of several series of one quantity side by side.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    title, most = series[0].title, kind.most(series)
    panels = tuple(
        Panel(
            words.sentence(s.id.label, "") or title,
            kind.draw(s, most, f"{anchor}-{i}", f"{title}: {s.id.label}"),
        )
        for i, s in enumerate(series, 1)
    )
    scale = kind.scale(series, most, f"{anchor}-scale")
    narrow = bool(kind.narrow) and len(series) >= kind.narrow
    return Picture(title, scale, kind.table(series, title), kind.note, panels, narrow)


def matrix_svg(
    names: Sequence[str], values: Matrix, *, anchor: str, title: str, marked: bool = False
) -> Markup:
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
    size = min(10.0, max(cell - 0.5, 6.5))
    every = next(k for k in (1, 2, 5, 10, 20, 50) if k * cell >= svg.text_width(str(len(labels)), 9) + 2)
    body = ""
    for i, label in enumerate(labels):
        y = _TOP + (i + 0.5) * cell + size * 0.35
        body += svg.text(left - 5, y, svg.fitted(label, left - 6, size), size=size, anchor="end", muted=True)
        if every == 1 or (i + 1) % every == 0:
            x = left + (i + 0.5) * cell
            body += svg.text(x, _TOP - 5, str(i + 1), size=9, anchor="middle", muted=True)
    # The diagonal says nothing, so it is shaded instead of drawn.
    diagonal = "".join(svg.square(left + i * cell, _TOP + i * cell, cell) for i in range(len(names)))
    body += svg.element("path", d=diagonal, fill="track")
    places = [
        (left + j * cell, _TOP + i * cell, value)
        for i, row in enumerate(values)
        for j, value in enumerate(row)
        if i != j
    ]
    body += _signed_squares(places, cell)
    if marked:
        absent = [(x + 0.2 * cell, y + 0.8 * cell) for x, y, v in places if not math.isfinite(v)]
        body += _strokes(absent, 0.6 * cell)
    side = cell * len(names)
    body += svg.frame(left, _TOP, side, side)
    told = _described_matrix(names, values)
    return svg.document(WIDTH, _TOP + side + 4, body, anchor=anchor, title=title, description=told)


def correlation_scale(anchor: str, *, withheld: bool = False) -> Markup:
    """What the squares of :func:`matrix_svg` mean, and what is crossed out where something is withheld."""
    body, x, size = "", 2.0, 22.0
    for value in (1.0, 0.5, 0.1, -0.1, -0.5, -1.0):
        name = words.number(value)
        body += _signed_squares([(x, 2.0, value)], size) + svg.text(x + size + 6, 17, name, size=12)
        x += size + 6 + svg.text_width(name, 12) + 18
    height = size + 4
    if withheld:
        body += _strokes([(3, height + size - 3)], size - 6)
        body += svg.text(size + 8, height + 15, "withheld: rests on too few rows to tell", size=12)
        height += size
    told = "Full squares are positive correlations, hollow ones negative; the area is the strength."
    return svg.document(
        WIDTH, height, body, anchor=anchor, title="Scale of the correlations", description=told
    )


def _described_matrix(names: Sequence[str], values: Matrix) -> str:
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


def _strokes(starts: Sequence[tuple[float, float]], length: float) -> str:
    """Strokes to the upper right."""
    path = "".join(f"M{x:.1f} {y:.1f}l{length:.1f} {-length:.1f}" for x, y in starts)
    return svg.element("path", d=path, fill="none", stroke="rule") if path else ""


def _signed_squares(places: Sequence[tuple[float, float, float]], cell: float) -> str:
    """Squares whose area is in proportion to the strength, in one path for each sign: many would be heavy."""
    paths = {True: "", False: ""}
    for x, y, value in places:
        strength, inset = min(abs(value), 1.0), 0.0 if value > 0 else 0.6
        side = (cell - 1) * math.sqrt(strength) - 2 * inset if math.isfinite(value) else 0.0
        if strength >= 0.01 and side > 0:
            gap = (cell - side) / 2
            paths[value > 0] += svg.square(x + gap, y + gap, side)
    out = svg.element("path", d=paths[True], fill="line-0") if paths[True] else ""
    if paths[False]:
        out += svg.element("path", d=paths[False], fill="none", stroke="line-1", stroke_width=1.2)
    return out


def _matrix(series: Series) -> tuple[list[str], list[tuple[float, ...]]]:
    """Names and values with one row for each column, in the order of the columns."""
    names = [str(x) for x in series.x]
    return names, [series.lines.get(name, (math.nan,) * len(names)) for name in names]


def _pairs(matrices: Sequence[Matrix], n: int) -> Iterator[tuple[int, int]]:
    """Places of every two columns; both orders where some matrix tells them apart."""
    for i in range(n):
        for j in range(i):
            yield i, j
            both = ((m[i][j], m[j][i]) for m in matrices)
            if any(a != b and not (math.isnan(a) and math.isnan(b)) for a, b in both):
                yield j, i


def _matrix_table(series: Sequence[Series], title: str) -> Cells:
    """One row for each pair of columns, those first in which the panels differ most."""
    names = [str(x) for x in series[0].x]
    alike = [s for s in series if [str(x) for x in s.x] == names]
    matrices = [_matrix(s)[1] for s in alike]
    rows = []
    for i, j in _pairs(matrices, len(names)):
        values = [m[i][j] for m in matrices]
        known = [v for v in values if math.isfinite(v)]
        spread = max(known) - min(known) if len(values) > 1 and known else abs(known[0]) if known else -1.0
        told = (words.number(v, places=2) if math.isfinite(v) else "withheld" for v in values)
        rows.append((-spread, i, j, (f"{names[i]} with {names[j]}", *told)))
    rows.sort(key=lambda row: row[:3])
    caption = title
    if len(rows) > _MOST_PAIRS:
        caption += f": the {_MOST_PAIRS} of {len(rows):,} pairs of columns that stand out most"
    header = ("Columns", *(s.id.label or title for s in alike))
    return Cells(caption, header, tuple(row[3] for row in rows[:_MOST_PAIRS]))


def density_svg(series: Series, most: float, anchor: str, title: str) -> Markup:
    """One density.

    Args:
        most: share of rows that fills a cell; the same for all pictures that are to be compared.
    """
    told = _described_density(series)
    if most <= 0 or not series.x:
        why = "There are no values to draw."
        return svg.nothing(_NARROW, why, anchor=anchor, title=title, description=told)
    across, up = _reach(series.x), _reach(list(series.lines))
    marks, step = svg.ticks(*up, 4)
    names = [words.tick(v, step) for v in marks]
    left = max(svg.text_width(name, 12) for name in names) + 10
    top, side = 20.0, _NARROW - left - 4
    bottom = top + side
    x, y = svg.Linear(*across, left, left + side), svg.Linear(*up, bottom, top)
    body = svg.text(0, 12, svg.fitted(series.y_label, _NARROW, 12), size=12, muted=True)
    body += svg.frame(left, top, side, side)
    for value, name in zip(marks, names, strict=True):
        body += svg.line(left - 4, y(value), left, y(value))
        body += svg.text(left - 7, y(value) + 4, name, size=12, anchor="end", muted=True)
    wide, high = side / len(series.x), side / max(len(series.lines), 1)
    squares = ""
    for i, shares in enumerate(series.lines.values(), 1):
        for j, share in enumerate(shares):
            if svg.drawable(share) and share > 0:
                size = max((min(wide, high) - 0.6) * math.sqrt(min(share / most, 1.0)), _SPECK)
                corner = (left + (j + 0.5) * wide - size / 2, bottom - (i - 0.5) * high - size / 2)
                squares += svg.square(*corner, size)
    body += _filled(squares)
    marks, step = svg.ticks(*across, 5)
    for value in marks:
        body += svg.line(x(value), bottom, x(value), bottom + 4)
        body += svg.centred(x(value), bottom + 17, words.tick(value, step), 12, _NARROW)
    label = svg.fitted(series.x_label, _NARROW - left + 20, 12)
    body += svg.centred(left + side / 2, bottom + 36, label, 12, _NARROW)
    return svg.document(_NARROW, bottom + 42, body, anchor=anchor, title=title, description=told)


def _reach(places: Sequence[float | str]) -> tuple[float, float]:
    """From the lower end of the first cell to the upper end of the last, all of which are equally wide.

    They lie at 1, 2, … where their centres are no ascending numbers.
    """
    try:
        centres = [float(x) for x in places]
    except ValueError:
        centres = []
    room = centres[-1] - centres[0] if all(map(svg.drawable, centres)) and len(centres) > 1 else 0.0
    if room <= 0 or any(b - a <= 0.1 * room / len(centres) for a, b in pairwise(centres)):
        centres = [float(i) for i, _ in enumerate(places, 1)]
    first, last = centres[0], centres[-1]
    half = (last - first) / (len(centres) - 1) / 2 if len(centres) > 1 else 0.5
    return first - half, last + half


def _fullest(series: Iterable[Series]) -> float:
    """The largest share of any cell, which is the scale that pictures share; 0 where there is none."""
    return max((y for s in series for ys in s.lines.values() for y in ys if svg.drawable(y)), default=0.0)


def density_scale(most: float, anchor: str) -> Markup:
    """What the squares of a density mean, at three round shares, each in the frame of its cell."""
    body, x = "", 2.0
    for share in dict.fromkeys(_round_share(most / part) for part in (1, 5, 25)):
        size, name = _LARGEST * math.sqrt(share / most), words.number(share, "share")
        gap = (_LARGEST - size) / 2
        body += svg.frame(x, 1, _LARGEST, _LARGEST) + _filled(svg.square(x + gap, gap + 1, size))
        body += svg.text(x + _LARGEST + 6, 18, name, size=12)
        x += _LARGEST + 6 + svg.text_width(name, 12) + 18
    told = "The area of a square is the share of rows in its cell."
    return svg.document(
        WIDTH, _LARGEST + 4, body, anchor=anchor, title="Scale of the squares", description=told
    )


def _filled(squares: str) -> str:
    return svg.element("path", d=squares, fill="line-0") if squares else ""


def _round_share(share: float) -> float:
    """The largest of 1, 2, 5 × 10ⁿ that is no more; 1 for what is no share at all."""
    if not share > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(share) + 1e-9)
    return next(round(k * power, 12) for k in (5, 2, 1) if k * power <= share * (1 + 1e-9))


def _described_density(series: Series) -> str:
    """The picture in words: its axes, and where most rows lie."""
    xs: Sequence[float | str] = series.x
    told = [(y, at, up) for up, ys in series.lines.items() for at, y in zip(xs, ys, strict=True)]
    known = [cell for cell in told if svg.drawable(cell[0])]
    head = f"Shares of rows by {series.x_label} and {series.y_label}"
    if not known:
        return f"{head}. No cell has enough rows to show."
    share, at, up = max(known, key=lambda c: c[0])
    return (
        f"{head}, {words.counted(len(told), 'cell')}, {len(told) - len(known)} with no rows or too few "
        f"to show. Most rows in one cell: {words.number(share, 'share')}, at {_cell_name(at, up)}."
    )


def _cell_name(*places: float | str) -> str:
    """``0 across, −1 up``."""
    told = []
    for at in places:
        try:
            told.append(words.number(float(at)))
        except ValueError:
            told.append(str(at))
    return f"{told[0]} across, {told[1]} up"


def _density_table(series: Sequence[Series], title: str) -> Cells:
    """One row for each cell of which some panel tells."""
    first = series[0]
    alike = [s for s in series if s.x == first.x and tuple(s.lines) == tuple(first.lines)]
    rows = []
    xs: Sequence[float | str] = first.x
    for up in first.lines:
        for i, across in enumerate(xs):
            shares = [s.lines[up][i] for s in alike]
            if any(map(svg.drawable, shares)):
                told = (words.number(share, "share") if svg.drawable(share) else "–" for share in shares)
                rows.append((_cell_name(across, up), *told))
    caption = f"{title}: shares of rows; cells that are not listed hold none or too few to tell"
    return Cells(caption, ("Cell", *(s.id.label or title for s in alike)), tuple(rows))


def _draw_matrix(series: Series, _most: float, anchor: str, title: str) -> Markup:
    names, values = _matrix(series)
    return matrix_svg(names, values, anchor=anchor, title=title, marked=True)


def _matrix_scale(series: Sequence[Series], _most: float, anchor: str) -> Markup:
    withheld = any(math.isnan(v) for s in series for row in s.lines.values() for v in row)
    return correlation_scale(anchor, withheld=withheld)


PANELS = {
    "matrix": PanelKind(
        most=lambda series: 1.0,  # a correlation
        draw=_draw_matrix,
        scale=_matrix_scale,
        table=_matrix_table,
        note="A full square is a positive relation, a hollow one a negative; the larger, the stronger.",
    ),
    "density": PanelKind(
        most=_fullest,
        draw=density_svg,
        scale=lambda series, most, anchor: density_scale(most, anchor),
        table=_density_table,
        note="The more of its cell a square fills, the larger its share of rows, in all panels alike. "
        "A blank cell holds no row, or too few to show.",
        narrow=3,
    ),
}
"""By the kind of a series."""
