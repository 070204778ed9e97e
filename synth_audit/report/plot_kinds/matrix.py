"""Matrices of correlations, those of one quantity side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from synth_audit.findings.measurement import Series
from synth_audit.report import heatmap, words
from synth_audit.report.plot_kinds._contract import PanelKind
from synth_audit.report.view import Cells

_MOST_PAIRS = 300
_WITHHELD = "withheld"


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
    return heatmap.matrix_svg(names, values, anchor=anchor, title=title, marked=True)


def _scale(series: Sequence[Series], most: float, anchor: str) -> str:
    withheld = any(math.isnan(v) for s in series for row in s.lines.values() for v in row)
    return heatmap.scale_svg(anchor, withheld=withheld)


PLOT = PanelKind(
    most=lambda series: 1.0,  # a correlation
    draw=_draw,
    describe=lambda series: heatmap.describe(*_matrix(series)),
    scale=_scale,
    table=_matrix_table,
    note="A full square is a positive relation, a hollow one a negative; the larger, the stronger.",
)
