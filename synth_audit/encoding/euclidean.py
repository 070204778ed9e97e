"""Coordinates of mixed records for the Euclidean distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
from synth_audit.encoding.codes import Wanted, codes, wanted_codes, wanted_rows
from synth_audit.kernels.coordinates import Coordinates, drawn_in
from synth_audit.kernels.labels import side_by_side

_FARTHEST = 1e100
"""Standard deviations from train's mean beyond which no number counts: every distance is then finite."""


@dataclass(frozen=True)
class EuclideanEncoder:
    """Coordinates in which the Euclidean distance is that of mixed records.

    Numeric columns are standardised on train (mean 0, standard deviation 1) with missing read as
    the mean; discrete columns are as one-hot. Every column has one more coordinate that is 1 where the
    value is missing. Anchored on train, so a candidate cannot move its own yardstick. A column that is
    constant in train tells no two training rows apart: all its coordinates are 0, or a copy of train
    could hide behind another value in it. Source: contrastive privacy metrics, section 4.1.

    Attributes:
        columns: the columns compared.
        centre, scale: mean and standard deviation of each numeric column in train.
        constant: names of the columns with a single value in train, missing counted as one.
    """

    columns: tuple[Column, ...]
    centre: dict[str, float]
    scale: dict[str, float]
    constant: frozenset[str] = frozenset()

    @classmethod
    def anchored_on(cls, train: Table, columns: Sequence[Column]) -> EuclideanEncoder:
        """Read centre and scale off train."""
        centre, scale = {}, {}
        for column in columns:
            part = column.kind.part
            if isinstance(part, NumberPart):
                known = part.read(train.column(column.name))
                centre[column.name], scale[column.name] = _centre_and_scale(known)
        constant = {c.name for c in columns if not varies(train, c)}
        return cls(tuple(columns), centre, scale, frozenset(constant))

    def encode(self, tables: Sequence[Table], rows: Wanted | None = None) -> list[Coordinates]:
        """Coordinates of several tables in one common space.

        Args:
            rows: positions of those that are wanted of each table, None for all; all of all if left out.
        """
        wanted = rows or [None] * len(tables)
        numeric, labels = list[_Numbers](), list[list[npt.NDArray[Any]]]()
        width = 0
        for column in self.columns:
            constant, part = column.name in self.constant, column.kind.part
            if not constant and not isinstance(part, NumberPart):
                labels.append(wanted_codes(codes(tables, column), wanted))
                continue
            if not constant and isinstance(part, NumberPart):
                gaps = any(t.n_missing(column.name) for t in tables)
                scale = self.centre[column.name], self.scale[column.name]
                numeric.append(_Numbers(column.name, part, *scale, width, width + 1 if gaps else None))
                width += gaps
            width += 1
        placed = []
        for i, (table, some) in enumerate(zip(tables, wanted, strict=True)):
            read = wanted_rows(table, some)
            dense = np.zeros((read.n_rows, width))
            for numbers in numeric:  # each written where it stays: there may be millions
                numbers.write(read, dense)
            placed.append(Coordinates.of(dense, side_by_side([part[i] for part in labels], read.n_rows)))
        return placed


@dataclass(frozen=True)
class _Numbers:
    """Numbers of a column: their coordinate, and that of whether they are missing, None where none is."""

    name: str
    part: NumberPart
    centre: float
    scale: float
    place: int
    gap: int | None

    def write(self, table: Table, out: Floats) -> None:
        """Put the coordinates of a table into its rows, which are 0, shape (n, width)."""
        values = self.part.read(table.column(self.name))
        missing = np.isnan(values)
        if self.gap is not None:
            out[:, self.gap] = missing
        if np.isfinite(self.scale):  # by infinity even an infinite difference is divided to 0
            with np.errstate(over="ignore"):
                scaled = np.clip((values - self.centre) / self.scale, -_FARTHEST, _FARTHEST)
            out[:, self.place] = np.where(missing, 0.0, scaled)


def _centre_and_scale(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the present values; of values without spread, the value and infinity,
    so that nothing else in that column counts.

    Rounding may give equal values a tiny deviation, huge values an infinite one, and the least numbers there
    are none: so equality is asked of the values themselves, the moments are taken in units of the largest,
    and no unit is below the least normal number.
    """
    known = values[~np.isnan(values)]
    if not len(known) or known.min() == known.max():
        return (float(known[0]) if len(known) else 0.0), np.inf
    unit = float(np.abs(known).max())
    deviation = max(unit * float((known / unit).std()), np.finfo(np.float64).tiny)
    return unit * float((known / unit).mean()), deviation


@dataclass(frozen=True)
class RobustEuclideanEncoder:
    """Coordinates on the robust scale, by all parts of each column.

    Every part adds ``w d²`` to the squared distance, w its weight. Numbers differ in units of the robust
    standard deviation (beyond ten of them only the logarithm grows, so that no absurd value drowns the other
    columns), and by 1 more where one is missing or one of the values that are labels. Labels that differ are
    as far apart as two one-hot rows, d² = 2, and so are vectors that have nothing in common. A column that
    is constant in train is left out, as in :class:`EuclideanEncoder`.
    """

    parts: tuple[AnchoredPart, ...]

    @classmethod
    def anchored_on(
        cls, train: Table, columns: Sequence[Column], *, beside: Sequence[Table] = ()
    ) -> RobustEuclideanEncoder:
        """Read the scale off train and the further real tables ``beside`` it."""
        kept = [c for c in columns if varies(train, c)]
        return cls(tuple(anchored_parts([train, *beside], kept)))

    def encode(self, tables: Sequence[Table], rows: Wanted | None = None) -> list[Coordinates]:
        """Coordinates of several tables in one common space; see :meth:`EuclideanEncoder.encode`."""
        wanted = rows or [None] * len(tables)
        shared = [p for p in self.parts if isinstance(p, SharedLabels)]
        joint = [wanted_codes(p.read(tables), wanted) for p in shared]
        numbers = [p for p in self.parts if isinstance(p, ScaledNumbers)]
        vectors = [p for p in self.parts if isinstance(p, Vectors)]
        unlike = [2 * p.part.weight for p in shared] + [p.part.weight for p in numbers]
        placed = []
        for i, (table, some) in enumerate(zip(tables, wanted, strict=True)):
            read = wanted_rows(table, some)
            labels = [part[i] for part in joint]
            dense = np.empty((read.n_rows, len(numbers) + sum(v.part.width for v in vectors)))
            for j, part in enumerate(numbers):
                scaled, what = part.read(read)
                dense[:, j] = np.sqrt(part.part.weight) * drawn_in(scaled * part.scale.deviations_in_range)
                labels.append(what.astype(np.int8))  # at most sixteen values of a column are labels
            start = len(numbers)
            for vector in vectors:
                found = np.sqrt(vector.part.weight) * np.nan_to_num(vector.read(read))
                dense[:, start : start + found.shape[1]] = found
                start += found.shape[1]
            placed.append(Coordinates.of(dense, side_by_side(labels, read.n_rows), np.array(unlike)))
        return placed
