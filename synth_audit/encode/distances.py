"""Tables prepared for distances: Euclidean coordinates, Gower's scales, cells of near copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Codes, Floats, Positions
from synth_audit.encode.codes import cells_of
from synth_audit.neighbours.coordinates import Coordinates, side_by_side, smallest_type
from synth_audit.neighbours.gower import MISSING_NUMBER, NEAR, NOWHERE, OUTSIDE, Mixed
from synth_audit.stats import distributions
from synth_audit.stats.distributions import RobustScale
from synth_audit.table.kind import LabelPart, NumberPart, VectorPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_LOOK = 1000
"""Rows that are looked at first."""

_GOWER_LABEL = 1e110
"""Numbers that are labels are put at multiples of it: at least 1 from all else."""

_FARTHEST = 1e100
"""Standard deviations from train's mean beyond which no number counts: every distance is then finite."""

Wanted: TypeAlias = Sequence[Positions | None]
"""Positions of the rows of each table that are wanted; None for all of them."""


@dataclass(frozen=True, eq=False)
class ScaledNumbers:
    """Numbers of a column, with the scale on which they are compared."""

    column: Column
    part: NumberPart
    scale: RobustScale

    def read(self, table: Table) -> tuple[Floats, Codes]:
        """Numbers in ranges from the centre, and what each cell is; see :meth:`RobustScale.read`."""
        return self.scale.read(self.part.read(cells_of(table, self.column)))


@dataclass(frozen=True, eq=False)
class SharedLabels:
    """Labels of a column."""

    column: Column
    part: LabelPart

    def read(self, tables: Sequence[Table]) -> list[Codes]:
        """Codes that the tables share."""
        return self.part.read([cells_of(table, self.column) for table in tables])


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of a column."""

    column: Column
    part: VectorPart

    @property
    def spread(self) -> float:
        """Mean difference of one number of two vectors that have nothing to do with each other."""
        return 2 / float(np.sqrt(np.pi * self.part.width))

    def read(self, table: Table) -> Floats:
        """Vectors of length 1, NaN where missing, shape (n, width)."""
        return self.part.read(cells_of(table, self.column)).astype(np.float64)


AnchoredPart = ScaledNumbers | SharedLabels | Vectors


def anchored_parts(reference: Sequence[Table], columns: Sequence[Column]) -> list[AnchoredPart]:
    """All parts of the columns that vary in the first table (train), in their order.

    A column that is constant in train tells no two of its rows apart, and a copy of train could hide behind
    another value in it.

    Args:
        reference: real tables whose rows together say which parts a column has and set the scale of its
            numbers; train and control where the two are compared, so that the scale favours neither.
    """
    found: list[AnchoredPart] = []
    for column in columns:
        if not varies(reference[0], column):
            continue
        values = [cells_of(table, column) for table in reference]
        for part in column.kind.parts(values):
            match part:
                case NumberPart():
                    scale = RobustScale.of(np.concatenate([part.read(v) for v in values]))
                    found.append(ScaledNumbers(column, part, scale))
                case LabelPart():
                    found.append(SharedLabels(column, part))
                case VectorPart():
                    found.append(Vectors(column, part))
    return found


def varies(train: Table, column: Column) -> bool:
    """Whether a column tells any two rows of train apart, missing counted as a value."""
    values = cells_of(train, column)
    for part in (values.slice(0, _LOOK), values):  # most columns vary among the first rows
        [found] = column.kind.codes([part])
        if len(found) and (found != found[0]).any():
            return True
    return False


def _rows_and_codes(
    tables: Sequence[Table], rows: Wanted | None, labels: Sequence[SharedLabels]
) -> Iterator[tuple[Table, list[npt.NDArray[Any]]]]:
    """The wanted rows of each table, and their codes of each label, which all rows of the tables share."""
    wanted, joint = rows or [None] * len(tables), list[list[npt.NDArray[Any]]]()
    for part in labels:
        codes = part.read(tables)
        small = np.result_type(*map(smallest_type, codes))
        kept = (c if some is None else c[some] for c, some in zip(codes, wanted, strict=True))
        joint.append([c.astype(small) for c in kept])
    for i, (table, some) in enumerate(zip(tables, wanted, strict=True)):
        yield table if some is None else table.take(some), [codes_of_tables[i] for codes_of_tables in joint]


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
        # Of each column of numbers its coordinate, and whether the next one says where they are missing.
        numeric, labels = list[tuple[str, NumberPart, int, bool]](), list[SharedLabels]()
        width = 0
        for column in self.columns:
            constant, part = column.name in self.constant, column.kind.part
            if not constant and isinstance(part, LabelPart):
                labels.append(SharedLabels(column, part))
                continue
            if not constant and isinstance(part, NumberPart):
                gaps = any(t.n_missing(column.name) for t in tables)
                numeric.append((column.name, part, width, gaps))
                width += gaps
            width += 1
        placed = []
        for read, codes_of_labels in _rows_and_codes(tables, rows, labels):
            dense = np.zeros((read.n_rows, width))
            for name, part, place, gaps in numeric:  # each written where it stays: there may be millions
                values = part.read(read.column(name))
                missing = np.isnan(values)
                if gaps:
                    dense[:, place + 1] = missing
                if np.isfinite(self.scale[name]):  # by infinity even an infinite difference is divided to 0
                    with np.errstate(over="ignore"):
                        scaled = (values - self.centre[name]) / self.scale[name]
                    dense[:, place] = np.where(missing, 0.0, np.clip(scaled, -_FARTHEST, _FARTHEST))
            placed.append(Coordinates.of(dense, side_by_side(codes_of_labels, read.n_rows)))
        return placed


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


@dataclass(frozen=True, eq=False)
class _RangedNumbers:
    """Numbers of a column, on their range in train.

    Attributes:
        low: least number of train.
        half: half of the range, since that of two huge numbers may be infinite; infinite without a range, so
            that no difference counts.
    """

    column: Column
    part: NumberPart
    low: float
    half: float

    @classmethod
    def of(cls, train: Table, column: Column, part: NumberPart) -> _RangedNumbers:
        """Read least number and range off the present values of train."""
        values = part.read(train.column(column.name))
        known = values[~np.isnan(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        return cls(column, part, low, high / 2 - low / 2 or np.inf)

    def read(self, table: Table) -> Floats:
        """Numbers in ranges from the least one, NaN where missing, shape (n,)."""
        with np.errstate(over="ignore"):
            ranges = (self.part.read(table.column(self.column.name)) / 2 - self.low / 2) / self.half
        return np.clip(ranges, -distributions.FAR, distributions.FAR)


_AnyNumbers = ScaledNumbers | _RangedNumbers | Vectors


@dataclass(frozen=True, eq=False)
class GowerEncoder:
    """Prepares tables for Gower's distance, anchored on real rows, so a candidate cannot move its yardstick.

    ``d(a, b) = Σ_j w_j d_j / Σ_j w_j`` over the parts of all columns, in [0, 1]: ``d_j = [a_j ≠ b_j]`` for
    labels, ``min(1, |a_j − b_j| / range)`` for numbers and datetimes, its mean over the coordinates for
    vectors (in units of what unrelated ones differ by); both missing 0, one missing 1.

    The range is the robust one of :class:`~synth_audit.stats.distributions.RobustScale`, whose labels among
    numbers are at distance 1 from all else; as published (Gower 1971) it is that of train, and a column has
    one part.

    A column that is constant in train (missing counted as a value) tells no two training rows apart and is
    left out: otherwise a copy of train could hide behind another value in it. Where all columns are, every
    distance is 0.

    Attributes:
        parts: of the columns compared, those that vary in train: numbers and vectors first, then labels.
        weights: one per part, positive.
    """

    parts: tuple[_AnyNumbers | SharedLabels, ...]
    weights: tuple[float, ...]

    @classmethod
    def anchored_on(
        cls, train: Table, columns: Sequence[Column], *, beside: Sequence[Table] = ()
    ) -> GowerEncoder:
        """Read robust ranges off train.

        Args:
            beside: further real tables whose rows set the ranges with those of train.
        """
        parts = anchored_parts([train, *beside], columns)
        return cls._of([(part, part.part.weight) for part in parts])

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
    def _of(cls, weighed: Sequence[tuple[_AnyNumbers | SharedLabels, float]]) -> GowerEncoder:
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
        labels = [p for p in self.parts if isinstance(p, SharedLabels)]
        numbers = [p for p in self.parts if not isinstance(p, SharedLabels)]
        widths = [_width(p) for p in self.parts]
        weights = np.repeat(np.array(self.weights) / widths, widths)
        prepared = []
        for read, codes_of_labels in _rows_and_codes(tables, rows, labels):
            dense = np.empty((read.n_rows, sum(map(_width, numbers))))
            start = 0
            for part in numbers:  # each written where it stays: there may be millions
                found = _gower_coordinates(part, read)
                dense[:, start : start + found.shape[1]] = found
                start += found.shape[1]
            prepared.append(Mixed.of(dense, side_by_side(codes_of_labels, read.n_rows), weights))
        return prepared


def _width(part: _AnyNumbers | SharedLabels) -> int:
    return part.part.width if isinstance(part, Vectors) else 1


def _gower_coordinates(part: _AnyNumbers, table: Table) -> Floats:
    """A part in units of a distance of 1, shape (n, width)."""
    if isinstance(part, Vectors):
        return np.nan_to_num(part.read(table) / part.spread, nan=NOWHERE)
    if isinstance(part, _RangedNumbers):
        return np.nan_to_num(part.read(table), nan=NOWHERE)[:, None]
    numbers, what = part.read(table)
    placed = np.where(what == distributions.REGULAR, numbers, what * _GOWER_LABEL)
    return np.where(what == distributions.MISSING, NOWHERE, placed)[:, None]


def _published(train: Table, column: Column) -> SharedLabels | _RangedNumbers:
    part = column.kind.part
    return (
        _RangedNumbers.of(train, column, part) if isinstance(part, NumberPart) else SharedLabels(column, part)
    )


def cells(
    tables: Sequence[Table], columns: Sequence[Column], *, rows: Wanted | None = None
) -> list[Coordinates]:
    """Prepare several tables for near copies as published, the first of which (train) sets the ranges.

    A numeric column without range in train tells no training rows apart and is left out.

    Args:
        rows: positions of those that are wanted of each table, None for all; all of all if left out.
    """
    parts = [_published(tables[0], column) for column in columns]
    numbers = [p for p in parts if isinstance(p, _RangedNumbers) and np.isfinite(p.half)]
    labels = [p for p in parts if isinstance(p, SharedLabels)]
    found = []
    for read, codes_of_labels in _rows_and_codes(tables, rows, labels):
        near = np.empty((read.n_rows, len(numbers)))
        for j, p in enumerate(numbers):
            places = np.clip(p.read(read) * NEAR, -OUTSIDE, OUTSIDE)
            near[:, j] = np.nan_to_num(places, nan=MISSING_NUMBER).astype(np.float32)  # as is allowed for
        found.append(Coordinates.of(near, side_by_side(codes_of_labels, read.n_rows)))
    return found
