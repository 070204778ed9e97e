"""What kinds of numbers have in common, and what statistics, models and attackers ask of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Codes, Floats, Labels, Positions, Target
from synth_audit.encode.cells import AnchoredCells, SharedCells, shared_number_cells
from synth_audit.encode.encoded import Encoded
from synth_audit.encode.facets import MarginMethod, Novelty
from synth_audit.encode.novelty import FinestDigits, number_novelties
from synth_audit.encode.predictors import Coding, GuessTolerance, number_coding
from synth_audit.encode.ranks import RankScale
from synth_audit.encode.univariate import NumbersWithGaps
from synth_audit.stats.distributions import cell_codes, quantile_cells
from synth_audit.stats.margins import Margin, empirical_margin, kde_margin
from synth_audit.stats.regression import Scaling
from synth_audit.stats.resampling import outlying
from synth_audit.table.arrow import decimals_of, numbers_of
from synth_audit.table.kind import (
    Bounds,
    Clues,
    Disturbance,
    Domain,
    DomainTerm,
    Kind,
    NumberPart,
    Order,
    Precision,
    Scale,
)
from synth_audit.table.resolution import (
    TIME_UNITS,
    Resolution,
    ValueGrid,
    decimal_grids,
    resolution_of,
    time_grids,
)
from synth_audit.table.rules import read_value
from synth_audit.table.schema import Column
from synth_audit.table.storage_types import MOST_EXACT
from synth_audit.table.table import Table

DAY = 86_400e6
"""In microseconds."""

_EDGE_DIGITS = 2
"""Digits of an edge beyond the first one of the span of all edges: more would not be read."""

_SAME = 1e-9
"""Edges that differ by less, relative to their size, surround one value."""

_FIRST = 1000
"""Rows that are looked at first."""


class Numbers(Kind):
    """Numbers, whose differences have a meaning: quantiles, densities, tolerances, standard deviations."""

    whole = False
    decimal = True
    """False where steps are units of time."""
    unit: str | None = ""
    scale = Scale.QUANTITATIVE
    order: ClassVar[Order | None] = Order.NUMBERS
    domain_terms: ClassVar[frozenset[DomainTerm]] = frozenset({"bounds"})

    def anchored_cells(
        self, train: Table, column: Column, *, most_cells: int, most_labels: int
    ) -> AnchoredCells:
        """Of about equal mass in train, and a last one of missing numbers, which correlations pass over."""
        name, edges = column.name, quantile_cells(train.numbers(column.name), most_cells)
        size = len(edges) + 2
        return AnchoredCells(
            size, lambda table: cell_codes(table.numbers(name), edges), not_compared=size - 1
        )

    def shared_cells(
        self, tables: Sequence[Table], real: Sequence[Table], column: Column, *, most: int, fewest: int
    ) -> SharedCells:
        """Cells to compare tables in, of about equal mass in train; real rows alone decide which.

        Args:
            real: tables, train first, in which a cell should hold ``fewest`` rows.
            most: cells at most.
        """
        return shared_number_cells(tables, real, column, most, fewest, self.edge_grids)

    def edge_grids(self, edges: Floats) -> Iterable[ValueGrid]:
        """What edges of cells may be rounded to, fine to coarse: 1, 2 and 5 times powers of ten."""
        low, high = float(edges[0]), float(edges[-1])
        size = max(abs(low), abs(high), 1e-300)
        span = high / 2 - low / 2
        least = math.floor(math.log10(span if span > _SAME * size else size)) - _EDGE_DIGITS
        most = max(math.ceil(math.log10(size)), least) + 1
        return (
            ValueGrid.of_step(float(f"{m}e{power}"))
            for power in range(least, min(most, 300) + 1)
            for m in (1, 2, 5)
        )

    def grouping(self, train: Table, column: Column, *, bins: int) -> AnchoredCells:
        """Quantile bins of train, of about equal mass; 0 is of missing values."""
        name = column.name
        values = train.numbers(name)[~train.missing(name)]
        edges = np.unique(np.quantile(values, np.arange(1, bins) / bins)) if len(values) else np.empty(0)

        def group(table: Table) -> Codes:
            bin_of = 1 + np.searchsorted(edges, table.numbers(name), side="right")
            return np.where(table.missing(name), 0, bin_of)

        return AnchoredCells(len(edges) + 2, group)

    def outlying(self, table: Table, column: Column, tail: float) -> Positions:
        """Rows beyond the tails of the numbers, a share ``tail``, ascending."""
        return outlying(table.numbers(column.name), tail)

    def univariate(self, train: Table, column: Column, method: MarginMethod) -> NumbersWithGaps:
        """A margin, and a share of missing values."""
        values = train.numbers(column.name)
        gaps = np.isnan(values)
        margin = None if gaps.all() else self.margin(column, values, method)
        return NumbersWithGaps(margin, float(gaps.mean()))

    def margin(self, column: Column, values: Floats, method: MarginMethod) -> Margin:
        """The distribution of numbers of a column; what is drawn from it fits declared bounds and storage.

        Args:
            values: shape (n,), NaN where missing.

        Raises:
            ValueError: no value is present.
        """
        step, limits = self.step(column.storage), self.limits(column.storage)
        if method == "empirical":
            return empirical_margin(values, step=step, limits=limits)
        return kde_margin(values, step=step, bounds=self.support(column.declared_bounds), limits=limits)

    def rank_scale(
        self, train: Table, column: Column, response: Floats | None, *, own_order: bool
    ) -> RankScale:
        """Numbers are one already."""
        return RankScale(column.name)

    def response(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_classes: int, far: float
    ) -> tuple[list[Target], int]:
        """A target, missing nowhere, in standard deviations of train; and that it has no classes.

        Args:
            far: standard deviations of train beyond which a number is no farther away.
        """
        scaling = Scaling.of(train.numbers(column.name)[:, None])
        scale = scaling.scale[0] if np.isfinite(scaling.scale[0]) else 1.0
        values = ((t.numbers(column.name) - scaling.centre[0]) / scale for t in tables)
        return [np.clip(v, -far, far) for v in values], 0

    def features(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_labels: int, far: float
    ) -> list[Floats]:
        """A predictor in standard deviations of train, shape (n, 1 or 2) for each table; a constant is 0.

        Missing values are at the mean, with an indicator of their own.

        Args:
            far: as of :meth:`response`.
        """
        encoded = Encoded(tables, [column], [train])
        if not encoded.varying:
            return [np.zeros((t.n_rows, 1)) for t in tables]
        return [np.clip(c.numbers, -far, far) for c in encoded.coordinates()]

    def coding(self, train: Table, column: Column, start: int) -> Coding | None:
        """The number itself."""
        return number_coding(train, column, start)

    def secret(
        self, tables: Sequence[Table], column: Column, tolerance: float
    ) -> tuple[list[Floats], GuessTolerance]:
        """A secret in each table, train first, as numbers, NaN where missing, and when a guess is right.

        Args:
            tolerance: relative error at which a guessed number is right, in [0, 1).
        """
        numbers = [table.numbers(column.name) for table in tables]
        return numbers, GuessTolerance.from_train(numbers[0], tolerance)

    def step(self, storage: pa.DataType) -> float:
        """Spacing of the values that a storage type can hold; 0 when all can occur."""
        return float(pa.types.is_integer(storage))

    def limits(self, storage: pa.DataType) -> Bounds:
        """Least and greatest number that a storage type can hold."""
        if pa.types.is_decimal(storage):
            most = 10.0 ** (storage.precision - storage.scale) - 10.0**-storage.scale
            most = float(np.nextafter(most, 0))
            return -most, most
        if pa.types.is_floating(storage):
            info = np.finfo(storage.to_pandas_dtype())
            return float(info.min), float(info.max)
        if pa.types.is_integer(storage):
            whole = np.iinfo(storage.to_pandas_dtype())
            return max(float(whole.min), -MOST_EXACT), min(float(whole.max), MOST_EXACT)
        return -np.inf, np.inf

    def support(self, declared: Bounds | None) -> Bounds | None:
        """Where a density lies; without declared bounds, 0 bounds numbers of which none is negative."""
        return declared

    def meant(self, text: str) -> float | str | None:
        """A finite number."""
        value = read_value(text)
        return value if isinstance(value, float) else None

    def allows(self, storage: pa.DataType) -> bool:
        """Numbers of any type, and what has none."""
        return is_number(storage) or bool(pa.types.is_null(storage))

    def numbers(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Numbers as float64."""
        return numbers_of(values)

    def plain(self, values: pa.ChunkedArray) -> Floats:
        """Numbers, NaN where missing."""
        return np.asarray(self.numbers(values).to_numpy(), dtype=np.float64)

    def finite(self, values: pa.ChunkedArray) -> bool:
        """No number is infinite."""
        return not np.isinf(self.plain(values)).any()

    @property
    def part(self) -> NumberPart:
        """A number."""
        return NumberPart(self.plain, unit=self.unit)

    def codes(self, values: Sequence[pa.ChunkedArray]) -> list[Codes]:
        """Numbered in their order; of tables that hold floats of fewer digits, by as many as all can have.

        Or the copy of a table would share no number with it that was written by 32-bit floats.
        """
        from pandas import factorize  # here, since a code location must not load it

        numbers = [self.plain(v) for v in values]
        if fewer := [v.type.to_pandas_dtype() for v in values if is_single(v.type)]:
            coarsest = min(fewer, key=lambda kind: np.finfo(kind).bits)
            with np.errstate(over="ignore"):
                numbers = [n.astype(coarsest).astype(np.float64) for n in numbers]
        found = factorize(np.concatenate(numbers), sort=True)[0].astype(np.int64)
        return list(np.split(found, np.cumsum([len(v) for v in numbers])[:-1]))

    def groups(self, values: pa.ChunkedArray) -> bool:
        """Whole numbers, which may be stored with a fraction only because some are missing."""
        if self.whole:
            return True
        known = self.plain(values)
        return bool(np.all((known == np.rint(known)) | np.isnan(known)))

    def domain(self, values: pa.ChunkedArray) -> Domain:
        """Least and greatest number."""
        ends = pc.min_max(self.numbers(values)).as_py()
        return Domain() if ends["min"] is None else Domain(bounds=(float(ends["min"]), float(ends["max"])))

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Numbers in a type for whole numbers are rounded."""
        numbers = np.asarray(values, dtype=np.float64)
        missing = np.isnan(numbers)
        if pa.types.is_null(storage):
            return pa.nulls(len(numbers))
        if pa.types.is_decimal(storage):  # an int64 does not cast to a decimal of fewer than 19 digits
            return decimals_of(pa.array(np.rint(numbers) if self.whole else numbers, mask=missing), storage)
        if self.whole or pa.types.is_integer(storage):
            return rounded(numbers, missing).cast(storage, safe=False)
        return pa.array(numbers, mask=missing).cast(storage, safe=False)

    def disturbed(
        self, values: Floats | Labels, domain: Domain, how: Disturbance, rng: np.random.Generator
    ) -> Floats | Labels:
        """``x + N(0, σ²)`` in units of the column's standard deviation."""
        numbers = np.asarray(values, dtype=np.float64)
        spread = float(np.nanstd(numbers)) if np.isfinite(numbers).any() else 0.0
        moved: Floats = numbers + rng.normal(0.0, 1.0, len(numbers)) * how.sigma * spread
        return moved

    def resolution(self, values: pa.ChunkedArray) -> Resolution | None:
        """Multiples of a power of ten, or of 2, 2.5, 5 or 25 of it; thirds and the like."""
        return resolution_of(self.plain(values), decimal_grids(), single=is_single(values.type))

    def declared_resolution(self, precision: Precision) -> Resolution:
        """A step."""
        if isinstance(precision, str):
            raise TypeError(f"a {self.name} column has a number as its precision")
        return Resolution(ValueGrid.of_step(precision))

    def novelties(
        self, column: Column, train: pa.ChunkedArray, values: pa.ChunkedArray, entities: Codes | None
    ) -> tuple[Novelty, ...]:
        """What is new about numbers of a release: others than a constant, finer digits, numbers far out.

        Whether they are missing is none of it.

        Args:
            train, values: the column in train, shape (n,), and in the release, shape (m,).
            entities: whose each training row is, shape (n,); None where each is somebody's only one.
        """
        values = _as_narrow(values, train.type)
        bounded, single = column.declared_bounds is not None, is_single(values.type)
        known, given = self.plain(train), self.plain(values)
        own, declared = column.inferred_resolution, column.declared_resolution
        room = FinestDigits.of(known, own, single=single) if self.decimal and own and not declared else None
        resolutions = [own, *(x for x in (declared, room) if x is not None)]
        return number_novelties(known, given, resolutions, entities, bounded=bounded, single=single)


def is_number(storage: pa.DataType) -> bool:
    """True for integers, floats and decimals."""
    types = pa.types
    return bool(types.is_integer(storage) or types.is_floating(storage) or types.is_decimal(storage))


def is_single(storage: pa.DataType) -> bool:
    """True for floats of fewer digits than Python's."""
    return bool(pa.types.is_float32(storage) or pa.types.is_float16(storage))


def _as_narrow(values: pa.ChunkedArray, storage: pa.DataType) -> pa.ChunkedArray:
    """Numbers that were widened, each of them, as the 32 bits that train has; others as they are."""
    if not (pa.types.is_float32(storage) and pa.types.is_float64(values.type)):
        return values
    narrow = values.cast(storage, safe=False)
    same = pc.all(pc.equal(narrow.cast(values.type), values)).as_py()
    return values if same is False else narrow


def counts(values: pa.ChunkedArray, clues: Clues) -> bool:
    """True for numbers that are no codes: two distinct ones are codes, unless an order is asked of them."""
    if clues.categories:
        return False
    if pa.types.is_decimal(values.type) or clues.ranked or clues.bounds:
        return is_number(values.type)
    if not is_number(values.type):
        return False
    # Where the first values are more than two, the others need no look.
    return bool(pc.count_distinct(values[:_FIRST]).as_py() > 2 or pc.count_distinct(values).as_py() != 2)


def rounded(numbers: Floats, missing: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    """The nearest whole numbers as int64."""
    return pa.array(np.where(missing, 0, np.rint(numbers)).astype(np.int64), mask=missing)


class TimedNumbers(Numbers):
    """Numbers of microseconds, rounded to units of time."""

    decimal = False

    def resolution(self, values: pa.ChunkedArray) -> Resolution | None:
        """Years, months, days, hours, minutes, seconds and their parts."""
        return resolution_of(self.plain(values), time_grids(), decimal=False)

    def edge_grids(self, edges: Floats) -> Iterable[ValueGrid]:
        """Units of time and parts of an hour, none too fine to be read."""
        span = float(edges[-1] - edges[0])
        return [grid for grid in reversed(time_grids()) if grid.step >= span / 1000]

    def declared_resolution(self, precision: Precision) -> Resolution:
        """A unit of time."""
        if not isinstance(precision, str):
            raise TypeError(f"a {self.name} column has a unit of time as its precision")
        return Resolution(TIME_UNITS[precision])
