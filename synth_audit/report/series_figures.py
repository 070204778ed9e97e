"""A series as a figure: its picture with the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from synth_audit.core.measurement import Measurement
from synth_audit.core.series import Series
from synth_audit.report import words
from synth_audit.report.plot_kinds import plot_kind
from synth_audit.report.plot_kinds._contract import Beside, Comparison, PanelKind, line_rows
from synth_audit.report.series_plot import full_title, series_svg
from synth_audit.report.view import Cells, Panel, Picture


def pictures_of(
    series: Sequence[Series], measurements: Sequence[Measurement], anchor: str
) -> tuple[tuple[Picture, bool], ...]:
    """The figures of an audit in order, each with whether it shows the whole table rather than a part.

    Series of one quantity whose kind has panels become panels of one figure, at the place of the first.
    Their settings say which table they show.
    """
    together: dict[tuple[str, str, int], list[Series]] = {}
    for i, s in enumerate(series):
        joined = isinstance(plot_kind(s.kind), PanelKind)
        together.setdefault((s.kind, s.id.quantity, -1 if joined else i), []).append(s)
    return tuple(
        (panels_picture(group, kind, f"{anchor}-{i}"), True)
        if isinstance(kind := plot_kind(group[0].kind), PanelKind)
        else (
            picture_of(group[0], f"{anchor}-{i}", beside=references(group[0], measurements)),
            group[0].id == group[0].id.whole,
        )
        for i, group in enumerate(together.values(), 1)
    )


def picture_of(series: Series, anchor: str, *, beside: Beside | None = None) -> Picture:
    """The figure of one series with axes.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    beside, kind = beside or Beside(), plot_kind(series.kind)
    title = full_title(series)
    drawing = series_svg(series, anchor=anchor, heading=False, beside=beside)
    rows_of = line_rows if kind is None or isinstance(kind, PanelKind) else kind.rows
    header, rows = rows_of(series, beside)
    return Picture(title, Markup(drawing), Cells(title, header, rows))  # noqa: S704  (escapes its texts)


def panels_picture(series: Sequence[Series], kind: PanelKind, anchor: str) -> Picture:
    """The figure of several series of one quantity side by side.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    title, most = series[0].title, kind.most(series)
    panels = tuple(
        Panel(
            words.sentence(s.id.label, "") or title,
            Markup(kind.draw(s, most, f"{anchor}-{i}", f"{title}: {s.id.label}")),  # noqa: S704
        )
        for i, s in enumerate(series, 1)
    )
    scale = Markup(kind.scale(series, most, f"{anchor}-scale"))  # noqa: S704  (escapes its texts)
    narrow = bool(kind.narrow) and len(series) >= kind.narrow
    return Picture(title, scale, kind.table(series, title), kind.note, panels, narrow)


def references(series: Series, measurements: Iterable[Measurement]) -> Beside:
    """Reference values of the measurements that a series pictures, at each place or the same for all."""
    known = {m.id: m.reference.value for m in measurements if m.reference is not None}
    own = tuple(known.get(place) for place in series.places or (series.id,) * len(series.x))
    return Beside((Comparison("reference", own),))
