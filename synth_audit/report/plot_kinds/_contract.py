"""What a kind of picture must say of itself, and what several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from synth_audit.findings.measurement import Series
from synth_audit.report import svg, words
from synth_audit.report.svg import LineStyle, Plot
from synth_audit.report.view import Cells

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
