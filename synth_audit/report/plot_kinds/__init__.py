"""Pictures of series, and what a kind of picture must say of itself; its file's name is the kind."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.svg import WIDTH, LineStyle, Plot, legend
from synth_audit.report.view import Cells

_NOTHING = "There are no values to draw."

_UNKNOWN = "This version draws no such picture; its numbers are in the table."


Styles = Mapping[str, LineStyle]
Rows = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""A header, and rows of texts as long as it."""


@dataclass(frozen=True)
class Comparison:
    """Values to compare boxes with, one for each box; None where there is none."""

    name: str
    values: tuple[float | None, ...]

    def at(self, place: int) -> float | None:
        """The value for a box."""
        value = self.values[place]
        return value if svg.drawable(value) else None

    @property
    def known(self) -> tuple[float, ...]:
        """Every value there is."""
        return tuple(v for i in range(len(self.values)) if (v := self.at(i)) is not None)


@dataclass(frozen=True)
class Beside:
    """What stands beside the boxes; other kinds have no place for it.

    Attributes:
        comparisons: at most one for each of the dashes; further ones are only in the table.
        strong: labels whose boxes are drawn heavier.
        reach: values that the axis must hold too, so that several pictures share it.
    """

    comparisons: tuple[Comparison, ...] = ()
    strong: frozenset[str] = frozenset()
    reach: tuple[float, ...] = ()

    @property
    def told(self) -> tuple[Comparison, ...]:
        """Comparisons that have a value."""
        return tuple(c for c in self.comparisons if c.known)


@dataclass(frozen=True)
class ChartKind:
    """One series with axes.

    Attributes:
        draw: series, styles of its lines, height at which to start, what stands beside; the drawing.
        describe: the picture in words.
        rows: the numbers behind it.
        legend: how lines are told apart above the drawing; ``none`` where the drawing does it itself.
    """

    draw: Callable[[Series, Styles, float, Beside], Plot]
    describe: Callable[[Series, Beside], str]
    rows: Callable[[Series, Beside], Rows]
    legend: Literal["lines", "bars", "none"] = "lines"


@dataclass(frozen=True)
class PanelKind:
    """Series of one quantity side by side as one figure, on one scale.

    Attributes:
        most: the value that fills the scale, of all panels together.
        draw: one panel as a picture that stands alone: series, that value, anchor of its ids, title.
        describe: one panel in words.
        scale: the scale as a picture: all panels, that value, anchor.
        table: the numbers behind all panels, under a title.
        note: how to read it.
        narrow: from how many panels on each takes a third of the width; 0 for never.
    """

    most: Callable[[Sequence[Series]], float]
    draw: Callable[[Series, float, str, str], str]
    describe: Callable[[Series], str]
    scale: Callable[[Sequence[Series], float, str], str]
    table: Callable[[Sequence[Series], str], Cells]
    note: str
    narrow: int = 0


def describe_lines(series: Series, chart: str) -> str:
    """A chart in words: its axes and the range of each line.

    Args:
        chart: what it is, such as ``"Line chart"``.
    """
    parts = [f"{chart} of {series.y_label} by {series.x_label}, {words.counted(len(series.x), 'position')}"]
    for label, ys in list(series.lines.items())[:8]:
        values = [y for y in ys if svg.drawable(y)]
        missing = len(ys) - len(values)
        span = f"from {words.number(min(values))} to {words.number(max(values))}" if values else "no values"
        parts.append(f"{label}: {span}" + (f", {missing} not computed" if missing else ""))
    if len(series.lines) > len(parts) - 1:
        parts.append(f"and {len(series.lines) - len(parts) + 1} more lines")
    return ". ".join(parts) + "."


def line_rows(series: Series, beside: Beside) -> Rows:
    """The numbers of every line, one row for each position."""
    labels = tuple(label or series.y_label for label in series.lines)
    xs: Sequence[float | str] = series.x
    rows = tuple(
        (words.position(x), *(words.number(ys[i]) for ys in series.lines.values())) for i, x in enumerate(xs)
    )
    return (series.x_label, *labels), rows


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
