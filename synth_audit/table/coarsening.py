"""Coarser values by rules that a plan fixes, and numbers outside declared bounds set to the nearest bound."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Floats
from synth_audit.table.arrow import numbers_of
from synth_audit.table.kind import Bounds, Order
from synth_audit.table.resolution import Ends, Resolution, ValueGrid
from synth_audit.table.schema import Column, Schema
from synth_audit.table.schema_inference import ColumnSpec
from synth_audit.table.table import Table

_INWARDS = ROUND_CEILING, ROUND_FLOOR

_MOST_DIGITS = 400
"""Of a bound, before and after the point: a float64 has up to 309, and a decimal up to 76 after it."""


class ColumnRule(ABC):
    """What becomes of the values of one column; immutable, and the same when it is applied again."""

    @property
    def needs_release(self) -> bool:
        """Whether it rests on the whole release, and was not fixed on one yet."""
        return False

    def fixed_on(self, column: Column, values: pa.ChunkedArray) -> "ColumnRule":
        """The same rule with all that it takes from a release."""
        return self

    @abstractmethod
    def applied(self, column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Coarser values in the same storage type; missing ones stay missing."""

    def admitted(self, column: Column) -> Column:
        """The column with what the rule lets occur in it beside what was declared."""
        return column

    @abstractmethod
    def seen(self, column: Column) -> Column:
        """A column whose domain was inferred from coarser values, with declarations as coarse as these."""


@dataclass(frozen=True)
class Rounding(ColumnRule):
    """Numbers, or microseconds, cut off at two ends and put on a grid.

    Attributes:
        grid: None to leave numbers between the ends as they are. bottom, top: multiples of its step.
    """

    grid: ValueGrid | None = None
    bottom: float = -inf
    top: float = inf

    def applied(self, column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Numbers that do not change keep their storage to the last bit."""
        before = np.asarray(column.kind.plain(values), dtype=np.float64)
        after = self.numbers(before, column.declared_bounds)
        changed = (after != before) & ~np.isnan(before)
        if not changed.any():
            return values
        stored = pa.chunked_array([column.kind.stored(after, values.type)])
        return pc.if_else(pa.array(changed), stored, values)

    def numbers(self, values: Floats, bounds: Ends | None = None) -> Floats:
        """Shape (n,), NaN where missing; between declared bounds numbers stay between them."""
        found = np.clip(values, self.bottom, self.top)
        if self.grid is None:
            return found
        found = self.grid.nearest(found)
        return found if bounds is None else np.clip(found, *self.grid.within(bounds))

    def seen(self, column: Column) -> Column:
        """Its precision is the rule's step."""
        return column if self.grid is None else replace(column, declared_resolution=Resolution(self.grid))


@dataclass(frozen=True)
class Merging(ColumnRule):
    """Labels that leave as one.

    How rare a label is, the release says and never train: that is the generator's own word, so a guarantee of
    differential privacy covers the rule, and nothing of train shows in what is merged.

    Attributes:
        labels: merged whatever their number. rarer_than: as labels are of which the release has fewer rows.
        kept: the labels frequent enough; None before a release was looked at.
    """

    into: str
    labels: frozenset[str] = frozenset()
    rarer_than: int = 0
    kept: frozenset[str] | None = None

    @property
    def needs_release(self) -> bool:
        """True for rare labels."""
        return bool(self.rarer_than) and self.kept is None

    def fixed_on(self, column: Column, values: pa.ChunkedArray) -> ColumnRule:
        """Labels that the release does not have are as rare as can be."""
        if not self.needs_release:
            return self
        texts = column.kind.labels(values)
        counted = pc.value_counts(texts.drop_null()).to_pylist()
        often = {x["values"] for x in counted if x["counts"] >= self.rarer_than}
        return replace(self, kept=frozenset(often - self.labels | {self.into}))

    def applied(self, column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Merged labels are written as ``into``."""
        texts = column.kind.labels(values)
        merged = _is_in(texts, self.labels - {self.into})
        if self.kept is not None:
            merged |= ~_is_in(texts, self.kept) & ~np.asarray(pc.is_null(texts).to_numpy(), dtype=bool)
        if not merged.any():
            return values
        labels = np.asarray(texts.to_numpy(), dtype=object)
        labels[merged] = self.into
        return pa.chunked_array([column.kind.stored(labels, values.type)])

    def admitted(self, column: Column) -> Column:
        """Where labels are declared, ``into`` is one more."""
        known = column.declared_categories
        if known is None or self.into in known:
            return column
        return replace(column, declared_categories=(*known, self.into))

    def seen(self, column: Column) -> Column:
        """The plan's word makes ``into`` known, whether or not train has it."""
        if column.declared_categories is not None:
            kept = tuple(x for x in column.declared_categories if x not in self.labels)
            return self.admitted(replace(column, declared_categories=kept))
        if self.into in (column.inferred_categories or ()):
            return column
        return replace(column, declared_categories=(*(column.inferred_categories or ()), self.into))


@dataclass(frozen=True)
class Coarsening:
    """The rules of all columns that are made coarser."""

    rules: Mapping[str, ColumnRule] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def needs_release(self) -> bool:
        """Whether the whole release must be at hand before a row of it can be made coarser."""
        return any(rule.needs_release for rule in self.rules.values())

    def fixed_on(self, release: Table) -> "Coarsening":
        """The same rules with all that they take from a release, coarse already or not."""
        return Coarsening(
            {n: r.fixed_on(release.schema[n], release.column(n)) for n, r in self.rules.items()}
        )

    def applied(self, release: Table) -> Table:
        """The rows of a whole release, made coarser, under the schema that they have."""
        return self.fixed_on(release).of(release) if self else release

    def of(self, table: Table) -> Table:
        """Any rows made coarser by rules that are fixed."""
        assert not self.needs_release
        columns = {
            n: self.rules[n].applied(table.schema[n], table.column(n)) if n in self.rules else table.column(n)
            for n in table.names
        }
        return Table(table.schema, pa.table(columns))

    def admitted(self, schema: Schema) -> Schema:
        """The schema of a coarser release: what the rules write into it is declared."""
        admitted = (self.rules[c.name].admitted(c) if c.name in self.rules else c for c in schema)
        return Schema(tuple(admitted), schema.rules)

    def view(self, train: Table, control: Table | None) -> tuple[Table, Table | None]:
        """Train and control as somebody sees them who attacks the release: made coarser, as it is.

        Of a column that is made coarser everything is inferred anew from train, but for its kind.
        """
        coarse = self.of(train)
        schema = Schema(tuple(self._seen(c, coarse) for c in coarse.schema), coarse.schema.rules)
        other = None if control is None else self.of(control).declared_as(schema)
        return coarse.declared_as(schema), other

    def _seen(self, column: Column, coarse: Table) -> Column:
        if column.name not in self.rules:
            return column
        return self.rules[column.name].seen(column.inferred_from(coarse.column(column.name)))


NO_COARSENING = Coarsening()


def holds_number(column: Column, value: float) -> bool:
    """Whether a column of numbers or moments gives a number back; floats do as nearly as any other."""
    with np.errstate(invalid="ignore"):  # beyond all whole numbers
        stored = pa.chunked_array([column.kind.stored(np.array([value]), column.storage)])
    back = float(np.asarray(column.kind.plain(stored), dtype=np.float64)[0])
    return abs(back - value) <= (1e-3 * abs(value) if pa.types.is_floating(column.storage) else 0.0)


def spacing(column: Column) -> float:
    """Spacing of what a column can hold: 1 for whole numbers, a day for dates, 0 where all can be."""
    unit, part = (86_400e6, 3_600e6) if column.kind.order is Order.DATES else (1.0, 0.5)
    return 0.0 if holds_number(column, part) else unit


def holds_label(column: Column, label: str) -> bool:
    """Whether the storage of a column of labels can hold one: numbers that are codes hold no word."""
    try:
        held = column.kind.stored(np.array([label], dtype=object), column.storage)
        return bool(column.kind.labels(pa.chunked_array([held])).to_pylist() == [label])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return False


def _is_in(texts: pa.ChunkedArray, labels: frozenset[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    known = pa.array(sorted(labels), texts.type)
    return np.asarray(pc.is_in(texts, value_set=known).to_numpy(), dtype=bool)


@dataclass(frozen=True)
class BoundClipping:
    """What becomes of the columns for which a plan says ``outside: clip``.

    Attributes:
        specs: the plan's declarations of columns.
        counts: by column, values that were set to a bound so far.
    """

    specs: Mapping[str, ColumnSpec]
    counts: Counter[str] = field(default_factory=Counter)

    def applied(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, each column in the type it had; missing values and what is no number stay."""
        bounds = {
            name: spec.numeric_bounds
            for name, spec in self.specs.items()
            if spec.outside == "clip" and spec.numeric_bounds
        }
        for batch in batches:
            yield self._within(batch, bounds) if bounds else batch

    def _within(self, batch: pa.RecordBatch, bounds: Mapping[str, Bounds]) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in [n for n in bounds if n in columns]:
            within = _ends(bounds[name], columns[name].type)
            if within is None or within[0] > within[1]:  # the type has no value there
                continue
            ends = [pa.scalar(end, columns[name].type) for end in within]
            numbers = columns[name]
            if pa.types.is_float16(numbers.type):  # which Arrow does not compare
                numbers = numbers.cast(pa.float32())
            low, high = (end.cast(numbers.type) for end in ends)
            below, above = pc.less(numbers, low), pc.greater(numbers, high)
            count = sum(pc.sum(side).as_py() or 0 for side in (below, above))
            if count:
                self.counts[name] += count
                columns[name] = pc.if_else(below, ends[0], pc.if_else(above, ends[1], columns[name]))
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _ends(bounds: Bounds, storage: pa.DataType) -> tuple[Any, Any] | None:
    """The bounds, drawn in to what the type holds and to its steps; None of a type that holds no numbers."""
    low, high = bounds
    if pa.types.is_integer(storage):
        held = np.iinfo(storage.to_pandas_dtype())
        return max(math.ceil(low), int(held.min)), min(math.floor(high), int(held.max))
    if pa.types.is_floating(storage):
        return _floats(bounds, storage)
    if pa.types.is_decimal(storage):
        with localcontext(prec=_MOST_DIGITS):
            step = Decimal(1).scaleb(-storage.scale)
            most = (10**storage.precision - 1) * step
            up, down = (Decimal(repr(x)).quantize(step, how) for x, how in zip(bounds, _INWARDS, strict=True))
            return max(up, -most), min(down, most)
    return None


def _floats(bounds: Bounds, storage: pa.DataType) -> tuple[Any, Any]:
    """The nearest floats to the bounds; the next ones where these are read as numbers outside."""
    kind, (low, high) = storage.to_pandas_dtype(), bounds
    widest = float(np.finfo(kind).max)
    with np.errstate(over="ignore"):  # bounds of which both lie beyond the type
        first, last = kind(max(low, -widest)), kind(min(high, widest))
    read = numbers_of(pa.chunked_array([pa.array([first, last], storage)])).to_pylist()
    return (
        np.nextafter(first, kind(np.inf)) if read[0] < low else first,
        np.nextafter(last, kind(-np.inf)) if read[1] > high else last,
    )
