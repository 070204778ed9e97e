"""Where rows lie on a plane: the area of a square is the share of rows in its cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds import PanelKind
from synth_audit.report.view import Cells

WIDTH = 290.0
"""Three of them fit side by side."""

_SPECK = 0.7
_LARGEST = 24.0


def _span(places: Sequence[float | str]) -> tuple[float, float]:
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


def fullest(series: Iterable[Series]) -> float:
    """The largest share of any cell, which is the scale that pictures share; 0 where there is none."""
    shares = [y for s in series for ys in s.lines.values() for y in ys if svg.drawable(y)]
    return max(0.0, *shares) if shares else 0.0


def density_svg(series: Series, most: float, anchor: str, title: str) -> str:
    """One density.

    Args:
        most: share of rows that fills a cell; the same for all pictures that are to be compared.
    """
    description = describe(series)
    if most <= 0 or not series.x:
        told = "There are no values to draw."
        return svg.nothing(WIDTH, told, anchor=anchor, title=title, description=description)
    across, up = _span(series.x), _span(list(series.lines))
    marks, step = svg.ticks(*up, 4)
    names = [words.tick(v, step) for v in marks]
    left = max(svg.text_width(name, 12) for name in names) + 10
    top, side = 20.0, WIDTH - left - 4
    x = svg.Linear(*across, left, left + side)
    y = svg.Linear(*up, top + side, top)
    body = svg.text(0, 12, svg.fitted(series.y_label, WIDTH, 12), size=12, muted=True)
    body += svg.frame(left, top, side, side)
    for value, name in zip(marks, names, strict=True):
        body += svg.line(left - 4, y(value), left, y(value))
        body += svg.text(left - 7, y(value) + 4, name, size=12, anchor="end", muted=True)
    body += _squares(series, most, (left, top), side)
    body += _x_axis(x, top + side, series.x_label)
    return svg.document(WIDTH, top + side + 42, body, anchor=anchor, title=title, description=description)


def scale_svg(most: float, anchor: str) -> str:
    """What the squares mean, at three round shares, each in the frame of its cell."""
    body, x = "", 2.0
    for share in dict.fromkeys(_round_share(most / part) for part in (1, 5, 25)):
        size = _LARGEST * math.sqrt(share / most)
        start = x + (_LARGEST - size) / 2
        body += svg.frame(x, 1, _LARGEST, _LARGEST)
        body += _path([svg.square(start, (_LARGEST - size) / 2 + 1, size)])
        name = words.number(share, "share")
        body += svg.text(x + _LARGEST + 6, 18, name, size=12)
        x += _LARGEST + 6 + svg.text_width(name, 12) + 18
    return svg.document(
        svg.WIDTH,
        _LARGEST + 4,
        body,
        anchor=anchor,
        title="Scale of the squares",
        description="The area of a square is the share of rows in its cell.",
    )


def _round_share(share: float) -> float:
    """The largest of 1, 2, 5 × 10ⁿ that is no more; 1 for what is no share at all."""
    if not share > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(share) + 1e-9)
    return next(round(k * power, 12) for k in (5, 2, 1) if k * power <= share * (1 + 1e-9))


def describe(series: Series) -> str:
    """The picture in words: its axes, and where most rows lie."""
    places: Sequence[float | str] = series.x
    cells = [
        (share, x, y)
        for y, shares in series.lines.items()
        for x, share in zip(places, shares, strict=True)
        if svg.drawable(share)
    ]
    head = f"Shares of rows by {series.x_label} and {series.y_label}"
    withheld = len(series.x) * len(series.lines) - len(cells)
    if not cells:
        return f"{head}. No cell can be told."
    share, x, y = max(cells, key=lambda c: c[0])
    place = f"{place_name(x)} across, {place_name(y)} up"
    return (
        f"{head}, {words.counted(len(series.x) * len(series.lines), 'cell')}, {withheld} with none or "
        f"too few rows to tell. Most rows in one cell: {words.number(share, 'share')}, at {place}."
    )


def place_name(at: float | str) -> str:
    """The centre of a cell as text."""
    try:
        return words.number(float(at))
    except ValueError:
        return str(at)


def _squares(series: Series, most: float, corner: tuple[float, float], side: float) -> str:
    """All squares in one path: hundreds of elements would make the page heavy."""
    wide, high = side / len(series.x), side / max(len(series.lines), 1)
    room, found = min(wide, high) - 0.6, []
    for i, shares in enumerate(series.lines.values(), 1):
        for j, share in enumerate(shares):
            if not svg.drawable(share) or share <= 0:
                continue
            size = max(room * math.sqrt(min(share / most, 1.0)), _SPECK)
            x = corner[0] + (j + 0.5) * wide - size / 2
            y = corner[1] + side - (i - 0.5) * high - size / 2
            found.append(svg.square(x, y, size))
    return _path(found)


def _path(squares: Sequence[str]) -> str:
    return svg.element("path", d="".join(squares), fill="line-0") if squares else ""


def _x_axis(x: svg.Linear, bottom: float, label: str) -> str:
    marks, step = svg.ticks(x.low, x.high, 5)
    out = ""
    for value in marks:
        out += svg.line(x(value), bottom, x(value), bottom + 4)
        out += svg.centred(x(value), bottom + 17, words.tick(value, step), 12, WIDTH)
    shown = svg.fitted(label, WIDTH - x.start + 20, 12)
    return out + svg.centred((x.start + x.end) / 2, bottom + 36, shown, 12, WIDTH)


def _density_table(series: Sequence[Series], title: str) -> Cells:
    """One row for each cell of which some panel tells."""
    first = series[0]
    alike = [s for s in series if s.x == first.x and tuple(s.lines) == tuple(first.lines)]
    rows = []
    places: Sequence[float | str] = first.x
    for up in first.lines:
        for i, across in enumerate(places):
            shares = [s.lines[up][i] for s in alike]
            if any(svg.drawable(share) for share in shares):
                cell = f"{place_name(across)} across, {place_name(up)} up"
                rows.append((cell, *(_share(share) for share in shares)))
    header = ("Cell", *(s.id.label or title for s in alike))
    return Cells(
        f"{title}: shares of rows; cells that are not listed hold none or too few to tell",
        header,
        tuple(rows),
    )


def _share(share: float) -> str:
    return words.number(share, "share") if svg.drawable(share) else "–"


PLOT = PanelKind(
    most=fullest,
    draw=density_svg,
    describe=describe,
    scale=lambda series, most, anchor: scale_svg(most, anchor),
    table=_density_table,
    note="The more of its cell a square fills, the larger its share of rows, in all panels alike. "
    "A blank cell holds no row, or too few to show.",
    narrow=3,
)
