"""Small multiples of a sweep: what the games found in each candidate, and the correlations each one keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Direction
from synth_audit.core.series import BOX_LINES, Series
from synth_audit.report import words
from synth_audit.report.heatmap import matrix_svg
from synth_audit.report.plot_kinds._contract import Beside, Comparison
from synth_audit.report.plot_kinds.box import five
from synth_audit.report.series_figures import picture_of
from synth_audit.report.series_plot import full_title
from synth_audit.report.sweep_candidates import direction_of
from synth_audit.report.view import Cells, Picture
from synth_audit.studies.correlations import Correlations
from synth_audit.studies.frontier import FrontierRecord

_ABSENT = (math.nan,) * len(BOX_LINES)
_MEDIAN = BOX_LINES.index("median")
_SAFER = {Direction.LOWER: "lower is safer", Direction.HIGHER: "higher is safer"}

Five = tuple[float, ...]


@dataclass(frozen=True)
class _Panel:
    """One box of a game, which every candidate may have.

    Attributes:
        place: of the box in its series. others: places of the boxes to compare it with.
    """

    series: Series
    place: int
    others: tuple[int, ...]

    @property
    def key(self) -> tuple[MeasurementId, str]:
        """What makes it the same panel in another candidate."""
        return self.series.id, self.label(self.place)

    @property
    def title(self) -> str:
        """The series and, where there are several to look at, the box."""
        parts = [full_title(self.series)]
        if not self.others and len(self.series.x) > 1:
            parts.append(self.label(self.place))
        return ": ".join(parts)

    def label(self, place: int) -> str:
        """What a box is called."""
        labels: Sequence[Any] = self.series.x
        return str(labels[place])

    def five(self, place: int) -> Five:
        """The five numbers of a box."""
        return five(self.series, place) or _ABSENT


@dataclass(frozen=True)
class _Sweep:
    """The candidates as an axis.

    Attributes:
        title: what tells them apart. strong: the label of the chosen one.
        reach: ends of all boxes of a series, by what it pictures, so that its pictures can be compared.
    """

    title: str
    labels: tuple[str, ...]
    strong: frozenset[str]
    reach: Mapping[MeasurementId, Five]


def box_panels(record: FrontierRecord, names: Sequence[str], varied: str) -> tuple[Picture, ...]:
    """One picture for each box of the games, with that box of every candidate in the order of the sweep."""
    found = [{p.key: p for series in c.boxes for p in _panels(series)} for c in record.candidates]
    kinds = {key: panel for panels in reversed(found) for key, panel in panels.items()}
    order = dict.fromkeys(key for panels in found for key in panels)
    reach = {key[0]: _reach(found, key[0]) for key in order}
    chosen = [c is record.best for c in record.candidates]
    labels = tuple(f"{n}*" if best else n for n, best in zip(names, chosen, strict=True))
    strong = frozenset(label for label, best in zip(labels, chosen, strict=True) if best)
    sweep = _Sweep(f"{varied} (* chosen)" if strong else varied, labels, strong, reach)
    return tuple(
        _picture(kinds[key], [panels.get(key) for panels in found], sweep, f"panel-{i}")
        for i, key in enumerate(order, 1)
    )


def _panels(series: Series) -> Iterator[_Panel]:
    """Boxes with places show one thing each; others show one thing and what to compare it with."""
    if series.kind != "box" or not series.x:
        return
    if not series.places:
        yield _Panel(series, 0, tuple(range(1, len(series.x))))
        return
    for i in range(len(series.x)):
        yield _Panel(series, i, ())


def _picture(kind: _Panel, panels: Sequence[_Panel | None], sweep: _Sweep, anchor: str) -> Picture:
    values = [_ABSENT if p is None else p.five(p.place) for p in panels]
    comparisons = tuple(
        Comparison(kind.label(other), tuple(_median(p, kind.label(other)) for p in panels))
        for other in kind.others
    )
    direction = direction_of(kind.series.id)
    safer = _SAFER.get(direction) if direction else None
    panel = Series(
        id=kind.series.id,
        title=kind.title,
        kind="box",
        x_label=sweep.title,
        y_label=f"{kind.series.y_label} ({safer})" if safer else kind.series.y_label,
        x=sweep.labels,
        lines={line: tuple(v[j] for v in values) for j, line in enumerate(BOX_LINES)},
    )
    return picture_of(panel, anchor, beside=Beside(comparisons, sweep.strong, sweep.reach[kind.key[0]]))


def _reach(found: Sequence[Mapping[tuple[MeasurementId, str], _Panel]], series: MeasurementId) -> Five:
    values = [v for panels in found for key, p in panels.items() if key[0] == series for v in p.five(p.place)]
    known = [v for v in values if math.isfinite(v)]
    return (min(known), max(known)) if known else ()


def _median(panel: _Panel | None, label: str) -> float | None:
    """The median of the box of that name in a candidate's own series."""
    if panel is None:
        return None
    place = next((i for i in panel.others if panel.label(i) == label), None)
    return None if place is None else panel.five(place)[_MEDIAN]


def matrix_pictures(record: FrontierRecord) -> tuple[Picture, ...]:
    """The correlations of the real table, then those of each candidate that has a table."""
    real = record.real_correlations
    pictures = [_matrix(real, "Real table (train)", "matrix-0")] if real.names else []
    for i, c in enumerate(record.candidates, 1):
        if c.correlations.names:
            chosen = " (chosen)" if c is record.best else ""
            note = _differs(real, c.correlations)
            pictures.append(_matrix(c.correlations, f"{c.name}{chosen}", f"matrix-{i}", note))
    return tuple(pictures)


def _matrix(correlations: Correlations, title: str, anchor: str, note: str = "") -> Picture:
    names, values = correlations.names, correlations.values
    drawing = matrix_svg(names, values, anchor=anchor, title=title)
    rows = tuple(
        (name, *(words.number(v, places=2) for v in row)) for name, row in zip(names, values, strict=True)
    )
    return Picture(title, Markup(drawing), Cells(title, ("Column", *names), rows), note)  # noqa: S704


def _differs(real: Correlations, other: Correlations) -> str:
    """How far the correlations are from the real ones, mean and most, over pairs of columns."""
    if real.names != other.names:
        return ""
    pairs = [(i, j) for i in range(len(real.names)) for j in range(i)]
    gaps = [(abs(real.values[i][j] - other.values[i][j]), i, j) for i, j in pairs]
    gaps = [g for g in gaps if math.isfinite(g[0])]
    if not gaps:
        return ""
    most, i, j = max(gaps)
    mean = math.fsum(g[0] for g in gaps) / len(gaps)
    return (
        f"Off by {words.number(mean, places=2)} on average, at most {words.number(most, places=2)} "
        f"({real.names[i]} with {real.names[j]})."
    )
