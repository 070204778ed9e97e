"""Tables prepared for Gower's distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.anchored_parts import (
    AnchoredPart,
    ScaledNumbers,
    SharedLabels,
    Vectors,
    anchored_parts,
    varies,
)
from synth_audit.encoding.codes import Wanted, wanted_codes, wanted_rows
from synth_audit.kernels import robust_scale
from synth_audit.kernels.gower import MISSING, Mixed
from synth_audit.kernels.labels import side_by_side

_LABEL = 1e110
"""Numbers that are labels are put at multiples of it: at least 1 from all else."""


@dataclass(frozen=True, eq=False)
class _RangedNumbers:
    """Numbers of a column, in units of their range in train from the least one."""

    column: Column
    part: NumberPart
    low: float
    span: float

    def read(self, table: Table) -> Floats:
        """Halves, since the difference of two huge numbers may be infinite where that of halves is not."""
        values = self.part.read(table.column(self.column.name))
        with np.errstate(over="ignore"):
            inside = np.clip(
                (values / 2 - self.low / 2) / (self.span / 2), -robust_scale.FAR, robust_scale.FAR
            )
        return np.where(np.isnan(values), MISSING, inside)


@dataclass(frozen=True, eq=False)
class GowerEncoder:
    """Prepares tables for Gower's distance, anchored on real rows, so a candidate cannot move its yardstick.

    ``d(a, b) = Σ_j w_j d_j / Σ_j w_j`` over the parts of all columns, in [0, 1]: ``d_j = [a_j ≠ b_j]`` for
    labels, ``min(1, |a_j − b_j| / range)`` for numbers and datetimes, its mean over the coordinates for
    vectors (in units of what unrelated ones differ by); both missing 0, one missing 1.

    The range is the robust one of :class:`~synth_audit.kernels.robust_scale.RobustScale`, whose labels among
    numbers are at distance 1 from all else; as published (Gower 1971) it is that of train, and a column has
    one part.

    A column that is constant in train (missing counted as a value) tells no two training rows apart and is
    left out: otherwise a copy of train could hide behind another value in it. Where all columns are, every
    distance is 0.

    Attributes:
        parts: of the columns compared, those that vary in train: numbers and vectors first, then labels.
        weights: one per part, positive.
    """

    parts: tuple[AnchoredPart | _RangedNumbers, ...]
    weights: tuple[float, ...]

    @classmethod
    def anchored_on(
        cls, train: Table, columns: Sequence[Column], *, beside: Sequence[Table] = ()
    ) -> GowerEncoder:
        """Read robust ranges off train.

        Args:
            beside: further real tables whose rows set the ranges with those of train.
        """
        kept = [c for c in columns if varies(train, c)]
        return cls._of([(part, part.part.weight) for part in anchored_parts([train, *beside], kept)])

    @classmethod
    def by_range(
        cls, train: Table, columns: Sequence[Column], weights: Sequence[float] | None = None
    ) -> GowerEncoder:
        """As published: in units of the whole range of train.

        Args:
            weights: how much each of ``columns`` counts, not negative; all alike if left out.

        Raises:
            ValueError: another number of weights than columns, or a weight that is negative or not finite.
        """
        given = np.ones(len(columns)) if weights is None else np.asarray(weights, dtype=np.float64)
        if given.shape != (len(columns),) or not np.isfinite(given).all() or (given < 0).any():
            raise ValueError("weights need one finite number per column, none of them negative")
        kept = [i for i, c in enumerate(columns) if given[i] > 0 and varies(train, c)]
        return cls._of([(_published(train, columns[i]), float(given[i])) for i in kept])

    @classmethod
    def _of(cls, weighed: Sequence[tuple[AnchoredPart | _RangedNumbers, float]]) -> GowerEncoder:
        ordered = sorted(weighed, key=lambda part: isinstance(part[0], SharedLabels))
        return cls(tuple(part for part, _ in ordered), tuple(weight for _, weight in ordered))

    @property
    def order(self) -> tuple[str, ...]:
        """Name of the column of each number, then of each label, of a preparation."""
        return tuple(p.column.name for p in self.parts for _ in range(_width(p)))

    def encode(self, tables: Sequence[Table], rows: Wanted | None = None) -> list[Mixed]:
        """Prepare tables with shared codes, so that any of them may be compared with any other.

        Args:
            rows: positions of those that are wanted of each table, None for all; all of all if left out. The
                codes are those that they have among all rows.
        """
        wanted = rows or [None] * len(tables)
        numbers = [p for p in self.parts if not isinstance(p, SharedLabels)]
        joint = [wanted_codes(p.read(tables), wanted) for p in self.parts if isinstance(p, SharedLabels)]
        widths = [_width(p) for p in self.parts]
        weights = np.repeat(np.array(self.weights) / widths, widths)
        prepared = []
        for position, (table, some) in enumerate(zip(tables, wanted, strict=True)):
            read = wanted_rows(table, some)
            dense = np.empty((read.n_rows, sum(map(_width, numbers))))
            start = 0
            for part in numbers:  # each written where it stays: there may be millions
                found = _coordinates(part, read)
                dense[:, start : start + found.shape[1]] = found
                start += found.shape[1]
            labels = side_by_side([part[position] for part in joint], read.n_rows)
            prepared.append(Mixed.of(dense, labels, weights))
        return prepared


def _width(part: AnchoredPart | _RangedNumbers) -> int:
    return part.part.width if isinstance(part, Vectors) else 1


def _coordinates(part: ScaledNumbers | Vectors | _RangedNumbers, table: Table) -> Floats:
    """A part in units of a distance of 1, shape (n, width)."""
    match part:
        case _RangedNumbers():
            return part.read(table)[:, None]
        case Vectors():
            return np.nan_to_num(part.read(table) / part.spread, nan=MISSING)
    numbers, what = part.read(table)
    placed = np.where(what == robust_scale.REGULAR, numbers, what * _LABEL)
    return np.where(what == robust_scale.MISSING, MISSING, placed)[:, None]


def _published(train: Table, column: Column) -> SharedLabels | _RangedNumbers:
    part = column.kind.part
    if not isinstance(part, NumberPart):
        return SharedLabels(column, part)
    return _RangedNumbers(column, part, *_range(part.read(train.column(column.name))))


def _range(values: Floats) -> tuple[float, float]:
    """Least value and range of the present values; infinite without a range, so that no difference counts.

    A range beyond the largest number is cut to it.
    """
    known = values[~np.isnan(values)]
    half = known.max() / 2 - known.min() / 2 if len(known) else 0.0
    if half == 0:
        return (float(known[0]) if len(known) else 0.0), np.inf
    return float(known.min()), float(min(half, np.finfo(np.float64).max / 2)) * 2
