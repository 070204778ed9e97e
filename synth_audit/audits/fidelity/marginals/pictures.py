"""Bars of one column of the release over those of the real rows, without a value that few real rows hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.fidelity.marginals.columns import discrete_cells, number_edges
from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.identity import MeasurementId
from synth_audit.core.schema import Column
from synth_audit.core.series import Series
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels import distributions as dist

_MOST_BARS = 20
_REAL, _SYNTHETIC, _CONTROL = "real", "synthetic", "control rows"


def picture(column: Column, subject: Subject, most_cells: int) -> Series:
    """Bars of the shares of real, synthetic and control rows; small cells are drawn together as one.

    Control rows are left out where a bar would stand for too few of them.
    """
    edges = number_edges(subject, column, most_cells) if column.kind.numeric else None
    held = _Cells.of(column, subject, edges)
    shown = held.shown(subject.suppression, ordered=column.kind.numeric)
    bars = held.bars(shown)
    if _CONTROL in bars and np.any(bars[_CONTROL] < subject.suppression):
        del bars[_CONTROL]
    others = ("all others",) if len(bars[_REAL]) > len(shown) else ()
    return Series(
        id=MeasurementId("", "distribution", column=column.name),
        title=f"Distribution of {column.name}",
        kind="bar",
        x_label="cells of equal real mass, low to high" if column.kind.numeric else "category",
        y_label="share of rows",
        x=(*(held.names[i] for i in shown), *others),
        lines={label: tuple((counts / counts.sum()).tolist()) for label, counts in bars.items()},
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one column, the last for missing, and how many rows of each table lie in them."""

    names: tuple[str, ...]
    counts: dict[str, Codes]

    @classmethod
    def of(cls, column: Column, subject: Subject, edges: Floats | None) -> _Cells:
        tables = {_REAL: subject.train, _SYNTHETIC: subject.synthetic}
        if subject.control is not None:
            tables[_CONTROL] = subject.control
        if edges is None:
            cells, names = _label_cells(column, list(tables.values()))
        else:
            cells, names = _number_cells(column, list(tables.values()), edges)
        counts = [np.bincount(c, minlength=len(names)) for c in cells]
        return cls(names, dict(zip(tables, counts, strict=True)))

    def shown(self, suppression: int, *, ordered: bool) -> list[int]:
        """Cells of enough real rows, of categories the most frequent of them.

        The numbers join the same cells and more, so that none can be told from the two together.
        """
        real = self.counts[_REAL]
        shown = dist.tellable_cells([real], suppression, ordered=ordered)
        return shown if ordered else sorted(shown, key=lambda i: -real[i])[:_MOST_BARS]

    def bars(self, shown: list[int]) -> dict[str, Codes]:
        """Rows in each shown cell, and in all others together where real or synthetic rows are there."""
        rest = np.setdiff1d(np.arange(len(self.names)), shown)
        more = any(self.counts[label][rest].any() for label in (_REAL, _SYNTHETIC))
        return {
            label: np.append(counts[shown], counts[rest].sum()) if more else counts[shown]
            for label, counts in self.counts.items()
            if more or not counts[rest].any()
        }


def _number_cells(column: Column, tables: list[Table], edges: Floats) -> tuple[list[Codes], tuple[str, ...]]:
    names = tuple(f"cell {i + 1}" for i in range(len(edges) + 1))
    return [dist.cell_codes(t.numbers(column.name), edges) for t in tables], (*names, "missing")


def _label_cells(column: Column, tables: list[Table]) -> tuple[list[Codes], tuple[str, ...]]:
    """Of several spellings of a label the most frequent one, of train if it is there, names it."""
    cells = discrete_cells(tables, column)
    labels: dict[int, str] = {}
    for table, of_table in zip(tables, cells, strict=True):
        spelt = Counter(zip(of_table.tolist(), table.labels(column.name).tolist(), strict=True))
        labels = {code: label for (code, label), _ in reversed(spelt.most_common())} | labels
    last = 1 + max((i for i, label in labels.items() if label is not None), default=-1)
    return cells, (*(labels[i] for i in range(last)), "missing")
