"""What kinds of numbers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.arrays import Codes, Floats, Labels
from synth_audit.core.arrow_values import decimals_of, labels_of, numbers_of
from synth_audit.core.finest_digits import FinestDigits
from synth_audit.core.kind import Clues, Disturbance, Domain, DomainTerm, Order, Scale
from synth_audit.core.kind_novelty import Novelty, Precision
from synth_audit.core.parts import NumberPart, Part
from synth_audit.core.resolution import Resolution, ValueGrid, decimal_grids, resolution_of
from synth_audit.core.rules import as_number, read_value
from synth_audit.core.schema import Column
from synth_audit.encoding.kinds._number_views import NumberViews
from synth_audit.encoding.novelty import number_novelties

if TYPE_CHECKING:
    import pandas as pd


class Numbers(NumberViews):
    """Numbers: differences have a meaning."""

    whole = False
    decimal = True
    """False where steps are units of time."""
    unit: str | None = ""
    scale = Scale.QUANTITATIVE
    order: Order | None = Order.NUMBERS
    domain_terms: frozenset[DomainTerm] = frozenset({"bounds"})
    fixed_domain: Domain | None = None
    as_it_is = False

    @property
    def name(self) -> str:
        """The file's name."""
        return type(self).__module__.rpartition(".")[2]

    def __str__(self) -> str:
        return self.name

    def allows(self, storage: pa.DataType) -> bool:
        """Numbers of any type, and what has none."""
        return is_number(storage) or bool(pa.types.is_null(storage))

    def labels(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Numbers as text."""
        return labels_of(values)

    def numbers(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Numbers as float64."""
        return numbers_of(values)

    def plain(self, values: pa.ChunkedArray) -> Floats | Labels:
        """Numbers, NaN where missing."""
        return self._floats(values)

    def finite(self, values: pa.ChunkedArray) -> bool:
        """No number is infinite."""
        return not np.isinf(self._floats(values)).any()

    def plain_meant(self, texts: Sequence[str]) -> tuple[float | str, ...]:
        """Numbers and dates."""
        return tuple(as_number(v) for v in map(read_value, texts) if v is not None)

    @property
    def part(self) -> NumberPart:
        """A number."""
        return NumberPart(self._floats, unit=self.unit)

    def parts(self, reference: Sequence[pa.ChunkedArray]) -> tuple[Part, ...]:
        """A number."""
        return (self.part,)

    def codes(self, values: Sequence[pa.ChunkedArray]) -> list[Codes]:
        """Numbered in their order; of tables that hold floats of fewer digits, by as many as all can have.

        Or the copy of a table would share no number with it that was written by 32-bit floats.
        """
        from pandas import factorize  # here, since a code location must not load it

        numbers = [self._floats(v) for v in values]
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
        known = self._floats(values)
        return bool(np.all((known == np.rint(known)) | np.isnan(known)))

    def _floats(self, values: pa.ChunkedArray) -> Floats:
        return np.asarray(self.numbers(values).to_numpy(), dtype=np.float64)

    def label_meant(self, text: str) -> str:
        """The text itself."""
        return text

    def reads(self, text: str) -> bool:
        """A finite number."""
        return isinstance(read_value(text), float)

    def bound_text(self, bound: float) -> str:
        """In digits, without a fraction where there is none."""
        return str(int(bound)) if bound == int(bound) and abs(bound) < 1e15 else repr(bound)

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

    def framed(self, values: pa.ChunkedArray) -> pd.Series:
        """As float64."""
        import pandas as pd

        return pd.Series(np.asarray(self.numbers(values).to_numpy(), dtype=np.float64))

    def framed_bound(self, bound: float) -> float | str:
        """The number itself."""
        return bound

    def resolution(self, values: pa.ChunkedArray) -> Resolution | None:
        """Multiples of a power of ten, or of 2, 2.5, 5 or 25 of it; thirds and the like."""
        return resolution_of(self._floats(values), decimal_grids(), single=is_single(values.type))

    def declared_resolution(self, precision: Precision) -> Resolution:
        """A step."""
        if isinstance(precision, str):
            raise TypeError(f"a {self.name} column has a number as its precision")
        return Resolution(ValueGrid.of_step(precision))

    def novelties(
        self, column: Column, train: pa.ChunkedArray, values: pa.ChunkedArray, entities: Codes | None
    ) -> tuple[Novelty, ...]:
        """Other numbers than a constant, finer digits, numbers far out."""
        values = _as_narrow(values, train.type)
        bounded, single = column.declared_bounds is not None, is_single(values.type)
        known, given = self._floats(train), self._floats(values)
        own, declared = column.inferred_resolution, column.declared_resolution
        room = FinestDigits.of(known, own, single=single) if self.decimal and own and not declared else None
        resolutions = [own, *(x for x in (declared, room) if x is not None)]
        return number_novelties(known, given, resolutions, entities, bounded=bounded, single=single)

    def too_many_labels(self, distinct: int) -> str:
        """Numbers are no categories."""
        return ""

    def like_identifier(self, distinct: int, present: int, rows: int) -> str:
        """A number with a fraction names no row."""
        return ""


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


_FIRST = 1000
"""Rows that are looked at first."""


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
