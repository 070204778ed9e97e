"""Pictures of series that stay readable in print and without colour."""

from __future__ import annotations

from synth_audit.core.series import Series
from synth_audit.report import svg, words
from synth_audit.report.axes import WIDTH, Plot
from synth_audit.report.legend import legend
from synth_audit.report.line_styles import LineStyle
from synth_audit.report.plot_kinds import bar_chart, box_plot, line_chart, panel_grid
from synth_audit.report.plot_kinds.box_plot import Beside


def series_svg(
    series: Series, *, anchor: str = "series", heading: bool = True, beside: Beside | None = None
) -> str:
    """The picture of one series.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
        heading: write the title above the picture, for where nothing else does; matrices and densities
            have it in their description only.
        beside: what stands beside boxes; other kinds have no place for it.
    """
    beside = beside or Beside()
    top, body = 0.0, ""
    title = full_title(series)
    if series.kind in panel_grid.KINDS:
        return panel_grid.grid_svg(series, anchor=anchor, title=title)
    if heading:
        body += svg.text(0, 16, svg.fitted(title, WIDTH, 14), size=14, weight="600")
        top = 30.0
    styles = {label: LineStyle(i, anchor) for i, label in enumerate(series.lines)}
    if not any(svg.drawable(y) for ys in series.lines.values() for y in ys):
        body += svg.text(0, top + 16, "There are no values to draw.", muted=True)
        height = top + 26
    else:
        legend = _legend(series, styles, top)
        drawn = _plot(series, styles, top + legend.height, beside)
        body += legend.body + drawn.body
        height = top + legend.height + drawn.height
    return svg.document(WIDTH, height, body, anchor=anchor, title=title, description=describe(series, beside))


def full_title(series: Series) -> str:
    """The title, with setting and column unless the title names them already."""
    label = series.id.label
    return series.title if label in series.title else f"{series.title}: {label}"


def describe(series: Series, beside: Beside) -> str:
    """The picture in words: its kind, axes and the range of each line or box."""
    if series.kind in panel_grid.KINDS:
        return panel_grid.describe(series)
    if series.kind == "box":
        count = words.counted(len(series.x), "box", "boxes")
        by = f" by {series.x_label}" if series.x_label else ""
        head = f"Box plot of {series.y_label}{by}, {count}"
        return ". ".join((head, *box_plot.describe(series, beside))) + "."
    kind = {"line": "Line chart", "step": "Step chart", "bar": "Bar chart"}[series.kind]
    parts = [f"{kind} of {series.y_label} by {series.x_label}, {words.counted(len(series.x), 'position')}"]
    for label, ys in list(series.lines.items())[:8]:
        values = [y for y in ys if svg.drawable(y)]
        missing = len(ys) - len(values)
        span = f"from {words.number(min(values))} to {words.number(max(values))}" if values else "no values"
        parts.append(f"{label}: {span}" + (f", {missing} not computed" if missing else ""))
    if len(series.lines) > len(parts) - 1:
        parts.append(f"and {len(series.lines) - len(parts) + 1} more lines")
    return ". ".join(parts) + "."


def _plot(series: Series, styles: dict[str, LineStyle], top: float, beside: Beside) -> Plot:
    if series.kind == "box":
        return box_plot.draw(series, top, beside)
    if series.kind == "bar":
        return bar_chart.draw(series, styles, top)
    return line_chart.draw(series, styles, top)


def _legend(series: Series, styles: dict[str, LineStyle], top: float) -> Plot:
    only = next(iter(styles)) if len(styles) == 1 else None
    if series.kind == "box" or only in ("", series.y_label, series.title):
        return Plot("", 4.0)
    return legend(styles, top, as_bars=series.kind == "bar")
