"""Pictures of series: the file's name is the kind that a series names."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.plot_kinds._contract import Beside, ChartKind, PanelKind, Styles
from synth_audit.report.svg import WIDTH, LineStyle, Plot, legend

_NOTHING = "There are no values to draw."

_UNKNOWN = "This version draws no such picture; its numbers are in the table."


@cache
def plot_kinds() -> frozenset[str]:
    """Every kind there is."""
    return frozenset(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


@cache
def plot_kind(name: str) -> ChartKind | PanelKind | None:
    """How a kind is drawn; None for one that this version does not know, whose numbers are still shown."""
    if name not in plot_kinds():
        return None
    found: ChartKind | PanelKind = importlib.import_module(f"{__name__}.{name}").PLOT
    return found


def series_svg(
    series: Series, *, anchor: str = "series", heading: bool = True, beside: Beside | None = None
) -> str:
    """The picture of one series.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
        heading: write the title above the picture, for where nothing else does; panels have it in their
            description only.
        beside: what stands beside boxes; other kinds have no place for it.
    """
    kind, beside, title = plot_kind(series.kind), beside or Beside(), full_title(series)
    if isinstance(kind, PanelKind):
        return kind.draw(series, kind.most([series]), anchor, title)
    top, body = 0.0, ""
    if heading:
        body += svg.text(0, 16, svg.fitted(title, WIDTH, 14), size=14, weight="600")
        top = 30.0
    styles = {label: LineStyle(i, anchor) for i, label in enumerate(series.lines)}
    if kind is None or not any(svg.drawable(y) for ys in series.lines.values() for y in ys):
        body += svg.text(0, top + 16, _NOTHING if kind else _UNKNOWN, muted=True)
        height = top + 26
    else:
        key = _legend(kind, series, styles, top)
        drawn = kind.draw(series, styles, top + key.height, beside)
        body += key.body + drawn.body
        height = top + key.height + drawn.height
    return svg.document(WIDTH, height, body, anchor=anchor, title=title, description=describe(series, beside))


def full_title(series: Series) -> str:
    """The title, with setting and column unless the title names them already."""
    label = series.id.label
    return series.title if label in series.title else f"{series.title}: {label}"


def describe(series: Series, beside: Beside) -> str:
    """The picture in words: its kind, axes and the range of each line or box."""
    kind = plot_kind(series.kind)
    if kind is None:
        return words.sentence(_UNKNOWN)
    return kind.describe(series) if isinstance(kind, PanelKind) else kind.describe(series, beside)


def _legend(kind: ChartKind, series: Series, styles: Styles, top: float) -> Plot:
    only = next(iter(styles)) if len(styles) == 1 else None
    if kind.legend == "none" or only in ("", series.y_label, series.title):
        return Plot("", 4.0)
    return legend(styles, top, as_bars=kind.legend == "bars")
