"""Columns of several tables, read once, and the views of their rows that all the tables share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.arrays import Codes, Floats, Floats32, Positions
from synth_audit.encode import scales
from synth_audit.encode.codes import cells_of, codes, split_rows
from synth_audit.encode.scales import RobustScale
from synth_audit.neighbours.coordinates import Coordinates, side_by_side, smallest_type
from synth_audit.neighbours.gower import MISSING_NUMBER, NEAR, NOWHERE, OUTSIDE, Mixed
from synth_audit.table.kind import LabelPart, NumberPart, VectorPart
from synth_audit.table.schema import Column, Schema
from synth_audit.table.table import Table

_LOOK = 1000
"""Rows that are looked at first."""

_GOWER_LABEL = 1e110
"""Numbers that are labels are put at multiples of it: at least 1 from all else."""

_FARTHEST = 1e100
"""Standard deviations from train's mean beyond which no number counts: every distance is then finite."""

_FEW = 0.125
"""Share of all rows up to which a column is coded for the rows at hand alone."""

_WORTHWHILE = 0.75
"""Share of the rows at hand that may stay when those that agree with no other are dropped."""

Wanted: TypeAlias = Sequence[Positions | None]
"""Positions of the rows of each table that are wanted; None for all of them."""

Places: TypeAlias = tuple[Column, int, Callable[[Table], Floats]]
"""A column, how many coordinates it has, and those of the rows of a table, shape (n, so many)."""


@dataclass(frozen=True, eq=False)
class ScaledNumbers:
    """Numbers of a column, with the robust scale on which they are compared."""

    column: Column
    part: NumberPart
    scale: RobustScale
    width = 1

    def read(self, table: Table) -> tuple[Floats, Codes]:
        """Numbers in ranges from the centre, and what each cell is; see :meth:`RobustScale.read`."""
        return self.scale.read(self.part.read(cells_of(table, self.column)))

    def places(self, table: Table) -> Floats:
        """In units of a distance of 1, shape (n, 1)."""
        numbers, what = self.read(table)
        placed = np.where(what == scales.REGULAR, numbers, what * _GOWER_LABEL)
        return np.where(what == scales.MISSING, NOWHERE, placed)[:, None]


@dataclass(frozen=True, eq=False)
class RangedNumbers:
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
    width = 1

    @classmethod
    def of(cls, train: Table, column: Column, part: NumberPart) -> RangedNumbers:
        """Read least number and range off the present values of train."""
        values = part.read(train.column(column.name))
        known = values[~np.isnan(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        return cls(column, part, low, high / 2 - low / 2 or np.inf)

    def read(self, table: Table) -> Floats:
        """Numbers in ranges from the least one, NaN where missing, shape (n, 1)."""
        with np.errstate(over="ignore"):
            ranges = (self.part.read(table.column(self.column.name)) / 2 - self.low / 2) / self.half
        return np.clip(ranges, -scales.FAR, scales.FAR)[:, None]

    def places(self, table: Table) -> Floats:
        """In units of a distance of 1, shape (n, 1)."""
        return np.nan_to_num(self.read(table), nan=NOWHERE)

    def near(self, table: Table) -> Floats:
        """In units of what counts as near, shape (n, 1)."""
        places = np.clip(self.read(table) * NEAR, -OUTSIDE, OUTSIDE)
        return np.nan_to_num(places, nan=MISSING_NUMBER).astype(np.float32)  # as is allowed for


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of a column."""

    column: Column
    part: VectorPart

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return self.part.width

    @property
    def spread(self) -> float:
        """Mean difference of one number of two vectors that have nothing to do with each other."""
        return 2 / float(np.sqrt(np.pi * self.part.width))

    def read(self, table: Table) -> Floats:
        """Vectors of length 1, NaN where missing, shape (n, width)."""
        return self.part.read(cells_of(table, self.column)).astype(np.float64)

    def places(self, table: Table) -> Floats:
        """In units of a distance of 1, shape (n, width)."""
        return np.nan_to_num(self.read(table) / self.spread, nan=NOWHERE)


@dataclass(frozen=True, eq=False)
class SharedLabels:
    """Labels of a column: codes that the tables share; see :meth:`Encoded.codes`."""

    column: Column
    part: LabelPart
    width = 1


AnchoredPart: TypeAlias = ScaledNumbers | RangedNumbers | Vectors | SharedLabels


@dataclass(frozen=True, eq=False)
class Encoded:
    """Columns of several tables, each read once.

    Real tables alone set scales, so that no candidate moves its own yardstick. A column that is constant in
    train (missing counted as a value) tells no two of its rows apart: distances leave it out, or a copy of
    train could hide behind another value in it.

    Attributes:
        tables: those whose rows are read. columns: those that are read.
        real: tables whose rows together set scales and say which parts a column has, train first; the first
            of ``tables`` if left out. Train and control where the two are compared, so that the scale favours
            neither.
    """

    tables: Sequence[Table]
    columns: Sequence[Column]
    real: Sequence[Table] = ()
    _known: dict[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)

    @property
    def train(self) -> Table:
        """The table that sets scales as published."""
        return (self.real or self.tables)[0]

    @property
    def n_rows(self) -> int:
        """Rows of all tables."""
        return sum(t.n_rows for t in self.tables)

    def only(self, columns: Sequence[Column]) -> Encoded:
        """Some of the columns; what was read of them stays read."""
        return replace(self, columns=columns)

    def codes(self, column: Column) -> list[npt.NDArray[Any]]:
        """A column as codes that the tables share, kept in the smallest type; see :func:`.codes.codes`."""
        return split_rows(self._joint(column, keep=True), self.tables)

    def _joint(self, column: Column, *, keep: bool) -> npt.NDArray[Any]:
        if (known := self._known.get(column.name)) is not None:
            return known
        joint = np.concatenate(codes(self.tables, column))
        if keep:
            self._known[column.name] = joint = joint.astype(smallest_type(joint))
            joint.flags.writeable = False  # all who ask share it
        return joint

    @cached_property
    def varying(self) -> tuple[Column, ...]:
        """The columns that tell rows of train apart."""
        return tuple(c for c in self.columns if varies(self.train, c))

    @cached_property
    def parts(self) -> tuple[ScaledNumbers | Vectors | SharedLabels, ...]:
        """All parts of the columns that vary in train, in their order, on robust scales."""
        found: list[ScaledNumbers | Vectors | SharedLabels] = []
        for column in self.varying:
            values = [cells_of(table, column) for table in self.real or self.tables[:1]]
            for part in column.kind.parts(values):
                match part:
                    case NumberPart():
                        scale = RobustScale.of(np.concatenate([part.read(v) for v in values]))
                        found.append(ScaledNumbers(column, part, scale))
                    case LabelPart():
                        found.append(SharedLabels(column, part))
                    case VectorPart():
                        found.append(Vectors(column, part))
        return tuple(found)

    def groups(self) -> list[Codes]:
        """Numbers that two rows share exactly when they agree in every column.

        Missing agrees with missing. Numbers are compared as float64, so integers beyond 2**53 may be
        taken for equal: an audit then errs to the safe side.

        Returns:
            One array of shape (n,) per table; numbers 0 … k−1 in order of appearance.
        """
        found = self._every
        for column in self.columns:
            found = found.told_by(self._of_rows(column, found.rows, keep=False))
        own = np.arange(self.n_rows) + self.n_rows  # a row that agrees with no other is alone in its group
        own[found.rows] = found.groups
        return split_rows(_factorized(own), self.tables)

    def groups_but_one(self) -> Iterator[tuple[Column, list[Codes]]]:
        """For each column, the groups of :meth:`groups` on all the others.

        Halving keeps it at about log2(d) times the work of one grouping instead of d times, and rows that
        agree with no other in some columns are not looked at again.

        Yields:
            The column, and for each table the groups of its rows in their order; rows of any table which
            agree with no other row may be left out.
        """
        ends = np.cumsum([t.n_rows for t in self.tables])[:-1]
        for column, found in self._without_each(self.columns, self._every):
            yield column, list(np.split(found.groups, np.searchsorted(found.rows, ends)))

    def _without_each(self, columns: Sequence[Column], others: _Alike) -> Iterator[tuple[Column, _Alike]]:
        """Each column with the groups by all other columns and those that ``others`` were told by."""
        if len(columns) == 1:
            yield columns[0], others
            return
        half = len(columns) // 2
        for left, right in ((columns[:half], columns[half:]), (columns[half:], columns[:half])):
            found = others
            for column in right:
                found = found.told_by(self._of_rows(column, found.rows, keep=True))
            yield from self._without_each(left, found)

    @property
    def _every(self) -> _Alike:
        """All rows, of which nothing is compared yet."""
        return _Alike(np.arange(self.n_rows), np.zeros(self.n_rows, dtype=np.int64))

    def _of_rows(self, column: Column, rows: Positions, *, keep: bool) -> npt.NDArray[Any]:
        """Codes of a column in some rows of all tables, shape of ``rows``."""
        if column.name in self._known or len(rows) > _FEW * self.n_rows:
            return self._joint(column, keep=keep)[rows]
        ends = np.cumsum([t.n_rows for t in self.tables])
        parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
        some = [
            t.column(column.name).take(pa.array(part - end + t.n_rows))
            for t, part, end in zip(self.tables, parts, ends, strict=True)
        ]
        return np.concatenate(column.kind.codes(some))

    def ranks(self, rows: Sequence[Positions] | None = None) -> list[Floats32]:
        """Whole numbers that the tables share, in the order of values, shape (n, d) each.

        A tree only asks which of two values is larger, so nothing is lost, and no value is too large for the
        single precision in which trees compute. Missing ranks last among numbers, first among labels. A
        column of several parts has a number for each, one for each coordinate of a vector.

        Args:
            rows: positions of the rows that are wanted of each table, with the numbers that they have among
                all rows; all if left out.
        """
        ends = np.cumsum([t.n_rows for t in self.tables])
        wanted = [np.arange(t.n_rows) for t in self.tables] if rows is None else rows
        shifted = zip(wanted, ends, self.tables, strict=True)
        place = np.concatenate([w + end - t.n_rows for w, end, t in shifted])
        joint = [  # one at a time in its full length
            ranks[place].astype(np.float32) for column in self.columns for ranks in self._ranked(column)
        ]
        return np.split(np.column_stack(joint), np.cumsum([len(w) for w in wanted])[:-1])

    def _ranked(self, column: Column) -> Iterator[npt.NDArray[Any]]:
        values = [cells_of(table, column) for table in self.tables]
        for part in column.kind.parts([cells_of(table, column) for table in self.real or self.tables[:1]]):
            if isinstance(part, LabelPart):
                yield self._joint(column, keep=False)
                continue
            found = np.concatenate([part.read(v) for v in values])
            for numbers in found.T if isinstance(part, VectorPart) else [found]:
                yield np.unique(numbers, return_inverse=True)[1]

    def coordinates(self, rows: Wanted | None = None) -> list[Coordinates]:
        """Coordinates in which the Euclidean distance is that of mixed records.

        Numeric columns are standardised on train (mean 0, standard deviation 1) with missing read as the
        mean; discrete columns are as one-hot. A column with missing values has one more coordinate that is 1
        where the value is missing. Source: contrastive privacy metrics, section 4.1.

        Args:
            rows: positions of those that are wanted of each table, None for all; all of all if left out.
                Labels have the codes that they have among all rows.
        """
        numbers, labels = list[Places](), list[Column]()
        for column in self.varying:
            if isinstance(column.kind.part, LabelPart):
                labels.append(column)
            else:
                gaps = any(t.n_missing(column.name) for t in self.tables)
                places = _standardised(self.train, column, column.kind.part, gaps)
                numbers.append((column, 1 + gaps, places))
        return [Coordinates.of(*placed) for placed in self._placed(rows, numbers, labels)]

    def mixed(self, rows: Wanted | None = None) -> list[Mixed]:
        """Rows for Gower's distance, so that any of them may be compared with any other.

        ``d(a, b) = Σ_j w_j d_j / Σ_j w_j`` over the parts of all columns, in [0, 1]: ``d_j = [a_j ≠ b_j]``
        for labels, ``min(1, |a_j − b_j| / range)`` for numbers and datetimes, its mean over the coordinates
        for vectors (in units of what unrelated ones differ by); both missing 0, one missing 1. The range is
        the robust one of :class:`.RobustScale`, whose labels among numbers
        are at distance 1 from all else. Where all columns are constant in train, every distance is 0.

        Args:
            rows: as of :meth:`coordinates`.
        """
        return [*self._mixed(rows, self.parts, [part.part.weight for part in self.parts])]

    def mixed_by_range(
        self, rows: Wanted | None = None, weights: Sequence[float] | None = None
    ) -> Iterator[Mixed]:
        """The same as published (Gower 1971): in units of the whole range of train, a part for each column.

        The rows of a table are encoded when they are asked for, so that large tables need not all be held.

        Args:
            rows: as of :meth:`coordinates`.
            weights: how much each column counts, not negative; all alike if left out.
        """
        given = [1.0] * len(self.columns) if weights is None else weights
        of_column = dict(zip([c.name for c in self.columns], given, strict=True))
        kept = [part for part in self._ranged if of_column[part.column.name] > 0]
        return self._mixed(rows, kept, [of_column[part.column.name] for part in kept])

    def near(self, rows: Wanted | None = None) -> list[Coordinates]:
        """Rows for near copies as published.

        A numeric column without range in train tells no training rows apart and is left out.

        Args:
            rows: as of :meth:`coordinates`.
        """
        numbers = [p for p in self._ranged if isinstance(p, RangedNumbers) and np.isfinite(p.half)]
        labels = [p.column for p in self._ranged if isinstance(p, SharedLabels)]
        placed = self._placed(rows, [(p.column, 1, p.near) for p in numbers], labels)
        return [Coordinates.of(*of_table) for of_table in placed]

    @property
    def order(self) -> tuple[str, ...]:
        """Name of the column of each number, then of each label, of :meth:`mixed`."""
        return tuple(p.column.name for p in sorted(self.parts, key=_is_label) for _ in range(p.width))

    @cached_property
    def _ranged(self) -> tuple[RangedNumbers | SharedLabels, ...]:
        """The one part that each column has by itself, of those that vary."""
        parts = ((column, column.kind.part) for column in self.varying)
        return tuple(
            SharedLabels(c, part) if isinstance(part, LabelPart) else RangedNumbers.of(self.train, c, part)
            for c, part in parts
        )

    def _mixed(
        self, rows: Wanted | None, parts: Sequence[AnchoredPart], weights: Sequence[float]
    ) -> Iterator[Mixed]:
        numbers = [p for p in parts if not isinstance(p, SharedLabels)]
        labels = [p.column for p in parts if isinstance(p, SharedLabels)]
        ordered = sorted(zip(parts, weights, strict=True), key=lambda weighed: _is_label(weighed[0]))
        each = np.array([weight / p.width for p, weight in ordered for _ in range(p.width)])
        placed = self._placed(rows, [(p.column, p.width, p.places) for p in numbers], labels)
        return (Mixed.of(*of_table, each) for of_table in placed)

    def _placed(
        self, rows: Wanted | None, numbers: Sequence[Places], labels: Sequence[Column]
    ) -> Iterator[tuple[Floats, npt.NDArray[Any]]]:
        """Coordinates of the wanted rows of each table, and codes of their labels."""
        wanted, of_labels = rows or [None] * len(self.tables), [self.codes(c) for c in labels]
        for i, (table, some) in enumerate(zip(self.tables, wanted, strict=True)):
            n = table.n_rows if some is None else len(some)
            dense, start = np.empty((n, sum(width for _, width, _ in numbers))), 0
            for column, width, places in numbers:  # one at a time, where it stays: there may be millions
                read = table if some is None else table.under(Schema((column,))).take(some)
                dense[:, start : start + width] = places(read)
                start += width
            kept = [each[i] if some is None else each[i][some] for each in of_labels]
            yield dense, side_by_side(kept, n)


def _is_label(part: AnchoredPart) -> bool:
    return isinstance(part, SharedLabels)


def varies(train: Table, column: Column) -> bool:
    """Whether a column tells any two rows of train apart, missing counted as a value."""
    values = cells_of(train, column)
    for part in (values.slice(0, _LOOK), values):  # most columns vary among the first rows
        [found] = column.kind.codes([part])
        if len(found) and (found != found[0]).any():
            return True
    return False


def _standardised(train: Table, column: Column, part: NumberPart, gaps: bool) -> Callable[[Table], Floats]:
    """Numbers in standard deviations from train's mean, and where there are gaps which ones are missing."""
    centre, scale = centre_and_scale(part.read(train.column(column.name)))

    def places(table: Table) -> Floats:
        values = part.read(table.column(column.name))
        missing = np.isnan(values)
        with np.errstate(over="ignore"):
            # By infinity even an infinite difference is divided to 0.
            scaled = (values - centre) / scale if np.isfinite(scale) else np.zeros(len(values))
        placed = np.where(missing, 0.0, np.clip(scaled, -_FARTHEST, _FARTHEST))
        return np.column_stack([placed, missing] if gaps else [placed])

    return places


def centre_and_scale(values: Floats) -> tuple[float, float]:
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
class _Alike:
    """Rows that agree with another one in the columns compared so far, and perhaps some that do not.

    Attributes:
        rows: their positions among the rows of all tables, ascending. groups: numbers that rows which agree
            share, from 0 on; shape (n,) each.
    """

    rows: Positions
    groups: Codes

    def told_by(self, part: npt.NDArray[Any]) -> _Alike:
        """By one more column, given its codes from −1 on, shape (n,)."""
        groups = _factorized(self.groups * (int(part.max(initial=0)) + 2) + 1 + part)
        again = np.bincount(groups)[groups] > 1
        if again.sum() > _WORTHWHILE * len(again):
            return _Alike(self.rows, groups)
        return _Alike(self.rows[again], _factorized(groups[again]))


def _factorized(values: Codes) -> Codes:
    """Equal values as equal numbers 0 … k−1 in order of appearance, shape (n,)."""
    from pandas import factorize  # here, since a code location must not load it

    numbers, _ = factorize(values)
    return numbers.astype(np.int64)
