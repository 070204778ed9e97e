"""Bars of one column of the release over those of the real rows, without a value that few real rows hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.audits.fidelity._marginal_columns import discrete_cells
from synth_audit.core.measurement import Series
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels import distributions as dist

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_MOST_BARS = 20
_REAL, _SYNTHETIC, _CONTROL = "real", "synthetic", "control rows"


def picture(column: Column, subject: Subject, most_cells: int) -> Series:
    """Bars of the shares of real, synthetic and control rows; small cells are drawn together as one.

    Control rows are left out where a bar would stand for too few of them.
    """
    held = _Cells.of(column, subject, most_cells)
    shown = held.shown(subject.suppression, None if column.kind.numeric else _MOST_BARS)
    bars = held.bars(shown)
    if _CONTROL in bars and np.any(bars[_CONTROL] < subject.suppression):
        del bars[_CONTROL]
    others = ("all others",) if len(bars[_REAL]) > len(shown) else ()
    return Series(
        name="distribution",
        title=f"Distribution of {column.name}",
        kind="bar",
        x_label="cells of equal real mass, low to high" if column.kind.numeric else "category",
        y_label="share of rows",
        x=(*(held.names[i] for i in shown), *others),
        lines={label: tuple((counts / counts.sum()).tolist()) for label, counts in bars.items()},
        scope=column.name,
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one column, the last for missing, and how many rows of each table lie in them."""

    names: tuple[str, ...]
    counts: dict[str, Codes]

    @classmethod
    def of(cls, column: Column, subject: Subject, most_cells: int) -> _Cells:
        tables = {_REAL: subject.train, _SYNTHETIC: subject.synthetic}
        if subject.control is not None:
            tables[_CONTROL] = subject.control
        read = _number_cells if column.kind.numeric else _label_cells
        cells, names = read(column, list(tables.values()), most_cells)
        counts = [np.bincount(c, minlength=len(names)) for c in cells]
        return cls(names, dict(zip(tables, counts, strict=True)))

    def shown(self, suppression: int, most: int | None) -> list[int]:
        """Cells of enough real rows, the largest ``most`` of them if there is a limit.

        The rest must not be small either, or it would give away the one cell that is hidden in it.
        """
        real = self.counts[_REAL]
        shown = [i for i in range(len(real)) if real[i] >= suppression]
        if most is not None:
            shown = sorted(shown, key=lambda i: -real[i])[:most]
        while shown and 0 < real.sum() - real[shown].sum() < suppression:
            shown.remove(min(shown, key=lambda i: real[i]))
        return shown

    def bars(self, shown: list[int]) -> dict[str, Codes]:
        """Rows in each shown cell, and in all others together where real or synthetic rows are there."""
        rest = np.setdiff1d(np.arange(len(self.names)), shown)
        more = any(self.counts[label][rest].any() for label in (_REAL, _SYNTHETIC))
        return {
            label: np.append(counts[shown], counts[rest].sum()) if more else counts[shown]
            for label, counts in self.counts.items()
            if more or not counts[rest].any()
        }


def _number_cells(column: Column, tables: list[Table], most: int) -> tuple[list[Codes], tuple[str, ...]]:
    values = [t.numbers(column.name) for t in tables]
    edges = dist.quantile_cells(values[0], most)
    names = tuple(f"cell {i + 1}" for i in range(len(edges) + 1))
    return [dist.cell_codes(v, edges) for v in values], (*names, "missing")


def _label_cells(column: Column, tables: list[Table], most: int) -> tuple[list[Codes], tuple[str, ...]]:
    cells = discrete_cells(tables, column)
    labels: dict[int, str] = {}
    for table, of_table in zip(tables, cells, strict=True):
        labels |= dict(zip(of_table.tolist(), table.labels(column.name).tolist(), strict=True))
    last = 1 + max((i for i, label in labels.items() if label is not None), default=-1)
    return cells, (*(labels[i] for i in range(last)), "missing")
