"""Bars of one column of the release over those of the real rows, without a value that few real rows hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.audits.fidelity.marginals.columns import real_tables
from synth_audit.core.arrays import Codes
from synth_audit.core.identity import MeasurementId
from synth_audit.core.kind_cells import SharedCells
from synth_audit.core.schema import Column
from synth_audit.core.series import Series
from synth_audit.core.subject import Subject
from synth_audit.kernels import distributions as dist

_MOST_BARS = 20
_REAL, _SYNTHETIC, _CONTROL = "real", "synthetic", "control rows"


def picture(column: Column, subject: Subject, cells: SharedCells) -> Series:
    """Bars of the shares of real, synthetic and control rows; small cells are drawn together as one.

    Control rows are left out where a bar would stand for too few of them.

    Args:
        cells: of the real tables, then of the release, and of whatever tables come after it.
    """
    held = _Cells.of(subject, cells)
    shown = held.shown(subject.suppression)
    bars = held.bars(shown)
    if _CONTROL in bars and np.any(bars[_CONTROL] < subject.suppression):
        del bars[_CONTROL]
    others = ("all others",) if len(bars[_REAL]) > len(shown) else ()
    return Series(
        id=MeasurementId("", "distribution", column=column.name),
        title=f"Distribution of {column.name}",
        kind="bar",
        x_label=held.cells.axis,
        y_label="share of rows",
        x=(*(held.cells.names[i] for i in shown), *others),
        lines={label: tuple((counts / counts.sum()).tolist()) for label, counts in bars.items()},
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one column, the last for missing, and how many rows of each table lie in them."""

    cells: SharedCells
    counts: dict[str, Codes]

    @classmethod
    def of(cls, subject: Subject, cells: SharedCells) -> _Cells:
        release = len(real_tables(subject))
        places = {_REAL: 0, _SYNTHETIC: release} | ({_CONTROL: 1} if release > 1 else {})
        size = len(cells.names)
        return cls(cells, {k: np.bincount(cells.codes[i], minlength=size) for k, i in places.items()})

    def shown(self, suppression: int) -> list[int]:
        """Cells of enough real rows, of categories the most frequent of them.

        The numbers join the same cells and more, so that none can be told from the two together.
        """
        real, ordered = self.counts[_REAL], self.cells.ordered
        shown = dist.tellable_cells([real], suppression, ordered=ordered)
        return shown if ordered else sorted(shown, key=lambda i: -real[i])[:_MOST_BARS]

    def bars(self, shown: list[int]) -> dict[str, Codes]:
        """Rows in each shown cell, and in all others together where real or synthetic rows are there."""
        rest = np.setdiff1d(np.arange(len(self.cells.names)), shown)
        more = any(self.counts[label][rest].any() for label in (_REAL, _SYNTHETIC))
        return {
            label: np.append(counts[shown], counts[rest].sum()) if more else counts[shown]
            for label, counts in self.counts.items()
            if more or not counts[rest].any()
        }
