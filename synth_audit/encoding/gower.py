"""Tables prepared for Gower's distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.gower import MISSING, Mixed

_FAR = 1e100
"""Where numbers beyond all reason are put, so that no difference overflows."""


@dataclass(frozen=True, eq=False)
class GowerEncoder:
    """Prepares tables for Gower's distance, anchored on train, so a candidate cannot move its yardstick.

    ``d(a, b) = Σ_j w_j d_j / Σ_j w_j`` with ``d_j = min(1, |a_j − b_j| / range of train)`` for numbers and
    datetimes, ``[a_j ≠ b_j]`` for labels; both missing 0, one missing 1. In [0, 1].

    A column that is constant in train (missing counted as a value) tells no two training rows apart and is
    left out: otherwise a copy of train could hide behind another value in it. Where all columns are, every
    distance is 0. Source: Gower 1971.

    Attributes:
        columns: the columns compared, those that vary in train.
        weights: one per column, positive.
        low, span: least value and range of each numeric column in train.
    """

    columns: tuple[Column, ...]
    weights: tuple[float, ...]
    low: dict[str, float]
    span: dict[str, float]

    @classmethod
    def anchored_on(
        cls, train: Table, columns: Sequence[Column], weights: Sequence[float] | None = None
    ) -> GowerEncoder:
        """Read ranges off train.

        Args:
            weights: how much each of ``columns`` counts, not negative; all alike if left out.

        Raises:
            ValueError: another number of weights than columns, or a weight that is negative or not finite.
        """
        given = np.ones(len(columns)) if weights is None else np.asarray(weights, dtype=np.float64)
        if given.shape != (len(columns),) or not np.isfinite(given).all() or (given < 0).any():
            raise ValueError("weights need one finite number per column, none of them negative")
        kept = [i for i, c in enumerate(columns) if given[i] > 0 and _varies(train, c)]
        ranges = {
            c.name: _range(part.read(train.column(c.name)))
            for c in columns
            if isinstance(part := c.kind.part, NumberPart)
        }
        return cls(
            tuple(columns[i] for i in kept),
            tuple(float(given[i]) for i in kept),
            {name: low for name, (low, _) in ranges.items()},
            {name: span for name, (_, span) in ranges.items()},
        )

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the columns in the order of a preparation: the numeric ones, then the discrete ones."""
        return tuple(c.name for c in sorted(self.columns, key=lambda c: c.name not in self.span))

    def encode(self, tables: Sequence[Table]) -> list[Mixed]:
        """Prepare tables with shared codes, so that any of them may be compared with any other."""
        numeric = [i for i, c in enumerate(self.columns) if c.name in self.span]
        discrete = [i for i, c in enumerate(self.columns) if c.name not in self.span]
        joint = [codes(tables, self.columns[i]) for i in discrete]
        weights = np.array([self.weights[i] for i in (*numeric, *discrete)])
        prepared = []
        for position, table in enumerate(tables):
            numbers, labels = np.empty((table.n_rows, len(numeric))), [part[position] for part in joint]
            for j, i in enumerate(numeric):
                numbers[:, j] = self._scaled(table, self.columns[i].name)
            stacked = np.array(labels, dtype=np.int64).reshape(len(joint), table.n_rows).T
            prepared.append(Mixed.of(numbers, stacked, weights))
        return prepared

    def _scaled(self, table: Table, name: str) -> Floats:
        """Halves, since the difference of two huge numbers may be infinite where that of halves is not."""
        values = table.numbers(name)
        with np.errstate(over="ignore"):
            inside = np.clip((values / 2 - self.low[name] / 2) / (self.span[name] / 2), -_FAR, _FAR)
        return np.where(np.isnan(values), MISSING, inside)


def _varies(train: Table, column: Column) -> bool:
    [values] = codes([train], column)
    return bool(len(values)) and bool((values != values[0]).any())


def _range(values: Floats) -> tuple[float, float]:
    """Least value and range of the present values; infinite without a range, so that no difference counts.

    A range beyond the largest number is cut to it.
    """
    known = values[~np.isnan(values)]
    half = known.max() / 2 - known.min() / 2 if len(known) else 0.0
    if half == 0:
        return (float(known[0]) if len(known) else 0.0), np.inf
    return float(known.min()), float(min(half, np.finfo(np.float64).max / 2)) * 2
