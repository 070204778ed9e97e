"""A series as a figure: its picture with the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from synth_audit.core.measurement import Measurement
from synth_audit.core.series import Series
from synth_audit.report import series_plot, words
from synth_audit.report.plot_kinds import box_plot, panel_grid
from synth_audit.report.plot_kinds.box_plot import Beside, Comparison
from synth_audit.report.series_plot import full_title
from synth_audit.report.view import Cells, Picture


def pictures_of(
    series: Sequence[Series], measurements: Sequence[Measurement], anchor: str
) -> tuple[tuple[Picture, bool], ...]:
    """The figures of an audit in order, each with whether it shows the whole table rather than a part.

    Matrices, and densities, of one quantity become panels of one figure, at the place of the first. Their
    settings say which table they show.
    """
    together: dict[tuple[str, str, int], list[Series]] = {}
    for i, s in enumerate(series):
        together.setdefault((s.kind, s.id.quantity, -1 if s.kind in panel_grid.KINDS else i), []).append(s)
    return tuple(
        (panel_grid.grids_picture(group, f"{anchor}-{i}"), True)
        if group[0].kind in panel_grid.KINDS
        else (
            picture_of(group[0], f"{anchor}-{i}", beside=references(group[0], measurements)),
            group[0].id == group[0].id.whole,
        )
        for i, group in enumerate(together.values(), 1)
    )


def picture_of(series: Series, anchor: str, *, beside: Beside | None = None) -> Picture:
    """The figure of one series.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    beside = beside or Beside()
    title = full_title(series)
    drawing = series_plot.series_svg(series, anchor=anchor, heading=False, beside=beside)
    header, rows = box_plot.box_rows(series, beside) if series.kind == "box" else _line_rows(series)
    return Picture(title, Markup(drawing), Cells(title, header, rows))  # noqa: S704  (escapes its texts)


def references(series: Series, measurements: Iterable[Measurement]) -> Beside:
    """Reference values of the measurements that a series pictures, at each place or the same for all."""
    known = {m.id: m.reference.value for m in measurements if m.reference is not None}
    own = tuple(known.get(place) for place in series.places or (series.id,) * len(series.x))
    return Beside((Comparison("reference", own),))


def _line_rows(series: Series) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    labels = tuple(label or series.y_label for label in series.lines)
    xs: Sequence[float | str] = series.x
    rows = tuple(
        (_position(x), *(words.number(ys[i]) for ys in series.lines.values())) for i, x in enumerate(xs)
    )
    return (series.x_label, *labels), rows


def _position(x: float | str) -> str:
    return x if isinstance(x, str) else words.number(float(x))
