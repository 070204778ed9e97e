"""Matrices and densities: those of one quantity side by side as one figure, on one scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from synth_audit.core.series import Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds import density_map, heatmap
from synth_audit.report.view import Cells, Panel, Picture

KINDS = ("matrix", "density")
"""The kinds of series that are drawn as a grid of squares."""

_NOTES = {
    "matrix": "A full square is a positive relation, a hollow one a negative; the larger, the stronger.",
    "density": "The more of its cell a square fills, the larger the share of rows in it, in all panels "
    "alike; a blank cell holds none or too few to tell.",
}
_MOST_PAIRS = 300
_WITHHELD = "withheld"


def grid_svg(series: Series, *, anchor: str, title: str, most: float | None = None) -> str:
    """The picture of one matrix or density.

    Args:
        most: share of rows that fills a cell of a density; its own largest if left out.
    """
    if series.kind == "density":
        most = density_map.fullest([series]) if most is None else most
        return density_map.density_svg(series, most=most, anchor=anchor, title=title)
    names, values = _matrix(series)
    return heatmap.matrix_svg(names, values, anchor=anchor, title=title, marked=True)


def describe(series: Series) -> str:
    """The picture in words."""
    return density_map.describe(series) if series.kind == "density" else heatmap.describe(*_matrix(series))


def grids_picture(series: Sequence[Series], anchor: str) -> Picture:
    """The figure of matrices, or of densities, of one quantity.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    first = series[0]
    title = first.title
    most = density_map.fullest(series)
    panels = tuple(
        Panel(
            words.sentence(s.id.label, "") or title,
            Markup(grid_svg(s, anchor=f"{anchor}-{i}", title=f"{title}: {s.id.label}", most=most)),  # noqa: S704
        )
        for i, s in enumerate(series, 1)
    )
    if first.kind == "density":
        scale, table = density_map.scale_svg(most, f"{anchor}-scale"), _density_table(series, title)
    else:
        withheld = any(math.isnan(v) for s in series for row in s.lines.values() for v in row)
        scale = heatmap.scale_svg(f"{anchor}-scale", withheld=withheld)
        table = _matrix_table(series, title)
    narrow = first.kind == "density" and len(series) > 2
    return Picture(title, Markup(scale), table, _NOTES[first.kind], panels, narrow)  # noqa: S704  (escaped)


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
                rows.append((_cell(across, up), *(_share(share) for share in shares)))
    header = ("Cell", *(s.id.label or title for s in alike))
    return Cells(
        f"{title}: shares of rows; cells that are not listed hold none or too few to tell",
        header,
        tuple(rows),
    )


def _cell(across: float | str, up: str) -> str:
    return f"{density_map.place_name(across)} across, {density_map.place_name(up)} up"


def _share(share: float) -> str:
    return words.number(share, "share") if svg.drawable(share) else "–"
