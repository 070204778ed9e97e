"""What kinds of numbers have in common, and what kinds of labels do."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Codes, Floats, Floats32, Labels
from synth_audit.encode.codes import distinct_labels, per_label
from synth_audit.encode.texts import WIDTH, Composite, Reading, ngram_vectors
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.table import kind as kinds
from synth_audit.table import resolution as grids
from synth_audit.table.arrow import decimals_of, numbers_of, values_of
from synth_audit.table.resolution import Resolution, ValueGrid
from synth_audit.table.rules import read_value
from synth_audit.table.storage_types import MOST_EXACT

DAY = 86_400e6
"""In microseconds."""

_EDGE_DIGITS = 2
"""Digits of an edge beyond the first one of the span of all edges: more would not be read."""

_SAME = 1e-9
"""Edges that differ by less, relative to their size, surround one value."""

_FIRST = 1000
"""Rows that are looked at first."""


class Numbers(kinds.Kind):
    """Numbers, whose differences have a meaning: quantiles, densities, tolerances, standard deviations."""

    whole = False
    decimal = True
    """False where steps are units of time."""
    unit: str | None = ""
    scale = kinds.Scale.QUANTITATIVE
    order: ClassVar[kinds.Order | None] = kinds.Order.NUMBERS
    domain_terms: ClassVar[frozenset[kinds.DomainTerm]] = frozenset({"bounds"})

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

    def step(self, storage: pa.DataType) -> float:
        """Spacing of the values that a storage type can hold; 0 when all can occur."""
        return float(pa.types.is_integer(storage))

    def limits(self, storage: pa.DataType) -> kinds.Bounds:
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

    def support(self, declared: kinds.Bounds | None) -> kinds.Bounds | None:
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
    def part(self) -> kinds.NumberPart:
        """A number."""
        return kinds.NumberPart(self.plain, unit=self.unit)

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

    def domain(self, values: pa.ChunkedArray) -> kinds.Domain:
        """Least and greatest number."""
        ends = pc.min_max(self.numbers(values)).as_py()
        if ends["min"] is None:
            return kinds.Domain()
        return kinds.Domain(bounds=(float(ends["min"]), float(ends["max"])))

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
        self, values: Floats | Labels, domain: kinds.Domain, how: kinds.Disturbance, rng: np.random.Generator
    ) -> Floats | Labels:
        """``x + N(0, σ²)`` in units of the column's standard deviation."""
        numbers = np.asarray(values, dtype=np.float64)
        spread = float(np.nanstd(numbers)) if np.isfinite(numbers).any() else 0.0
        moved: Floats = numbers + rng.normal(0.0, 1.0, len(numbers)) * how.sigma * spread
        return moved

    def resolution(self, values: pa.ChunkedArray) -> Resolution | None:
        """Multiples of a power of ten, or of 2, 2.5, 5 or 25 of it; thirds and the like."""
        return grids.resolution_of(self.plain(values), grids.decimal_grids(), single=is_single(values.type))

    def declared_resolution(self, precision: kinds.Precision) -> Resolution:
        """A step."""
        if isinstance(precision, str):
            raise TypeError(f"a {self.name} column has a number as its precision")
        return Resolution(ValueGrid.of_step(precision))


def is_number(storage: pa.DataType) -> bool:
    """True for integers, floats and decimals."""
    types = pa.types
    return bool(types.is_integer(storage) or types.is_floating(storage) or types.is_decimal(storage))


def is_single(storage: pa.DataType) -> bool:
    """True for floats of fewer digits than Python's."""
    return bool(pa.types.is_float32(storage) or pa.types.is_float16(storage))


def counts(values: pa.ChunkedArray, clues: kinds.Clues) -> bool:
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
        return grids.resolution_of(self.plain(values), grids.time_grids(), decimal=False)

    def edge_grids(self, edges: Floats) -> Iterable[ValueGrid]:
        """Units of time and parts of an hour, none too fine to be read."""
        span = float(edges[-1] - edges[0])
        return [grid for grid in reversed(grids.time_grids()) if grid.step >= span / 1000]

    def declared_resolution(self, precision: kinds.Precision) -> Resolution:
        """A unit of time."""
        if not isinstance(precision, str):
            raise TypeError(f"a {self.name} column has a unit of time as its precision")
        return Resolution(grids.TIME_UNITS[precision])


_FEW_LABELS = 30
"""A column of more labels than this counts as one of many."""

_LABEL_AMONG_MANY = 0.1
"""Weight of the label, beside other parts, in a column of more labels than that."""

_MANY_LABELS, _OFTEN_NEW = 100, 0.05
"""More labels than this, and than this share of the rows, are names, lists or codes rather than groups."""

_MOSTLY_ITS_OWN = 0.5
"""Share of rows with a label of their own from which a category looks like a name."""


class TextLabels(kinds.Kind):
    """Labels: two values are equal or not; categories and their frequencies."""

    most_labels = 10_000
    scale = kinds.Scale.NOMINAL
    domain_terms = frozenset({"categories"})

    def plain(self, values: pa.ChunkedArray) -> Floats | Labels:
        """Labels, None where missing."""
        return np.asarray(self.labels(values).to_numpy(), dtype=object)

    @property
    def part(self) -> kinds.LabelPart:
        """A label."""
        return kinds.LabelPart(self.codes)

    def parts(self, reference: Sequence[pa.ChunkedArray]) -> tuple[kinds.Part, ...]:
        """A label; numbers, where the labels read as such, as dates or quantities; letters of many labels.

        The label weighs a half where there are few, which may be codes; where there are many, equal ones
        are equal numbers as well, and that two are not equal says little.
        """
        forms = sorted({form for v in reference for form in distinct_labels(self, v)[1] if form is not None})
        others = self._numbers_in(forms)
        others += self._letters_of(len(forms), sum(map(len, reference)), read=bool(others))
        if not others:
            return (self.part,)
        alone = _LABEL_AMONG_MANY if len(forms) > _FEW_LABELS else 0.5
        rest = (replace(part, weight=(1 - alone) / len(others)) for part in others)
        return (replace(self.part, weight=alone), *rest)

    def _numbers_in(self, forms: Sequence[str]) -> tuple[kinds.Part, ...]:
        """The numbers that labels hold: one by a convention, or several by their places."""
        found = Reading.of(forms)
        if found is None or found.middles:
            if (several := Composite.of(forms)) is not None:
                each = (partial(several.number, i) for i in range(several.width))
                return tuple(kinds.NumberPart(partial(per_label, self, number)) for number in each)
            if found is None:
                return ()
        return (kinds.NumberPart(partial(per_label, self, found.numbers), unit=found.difference_unit),)

    def _letters_of(self, distinct: int, rows: int, *, read: bool) -> tuple[kinds.Part, ...]:
        """Of names and lists, where no number is read: in another order the same, misspelt they are near."""
        many = not read and distinct > _MANY_LABELS and distinct >= _OFTEN_NEW * rows
        vectors = partial(per_label, self, partial(self._vectors, form=_words))
        return (kinds.VectorPart(vectors, WIDTH),) if many else ()

    def _vectors(self, texts: Sequence[str | None], form: Callable[[str], str] = str) -> Floats32:
        known = np.full((len(texts), WIDTH), np.nan, dtype=np.float32)
        present = [i for i, text in enumerate(texts) if text is not None]
        known[present] = ngram_vectors([form(text) for text in texts if text is not None])
        return known

    def codes(self, values: Sequence[pa.ChunkedArray]) -> list[Codes]:
        """Numbered by how often all the tables together hold them, the most frequent first, and in the order
        of their texts where that is equal; texts of one standard form are one label.

        Never in order of appearance, which would tell from a code which of the tables a value came from.
        """
        coded = [distinct_labels(self, v) for v in values]
        often: Counter[str] = Counter()
        for rows, texts in coded:
            counts = np.bincount(rows[rows != MISSING], minlength=len(texts)).tolist()
            for text, n in zip(texts, counts, strict=True):
                if text is not None and n:
                    often[text] += n
        place: dict[str | None, int] = {
            text: i for i, text in enumerate(sorted(often, key=lambda t: (-often[t], t)))
        }
        return [
            np.array([*(place.get(text, MISSING) for text in texts), MISSING], dtype=np.int64)[rows]
            for rows, texts in coded
        ]

    def domain(self, values: pa.ChunkedArray) -> kinds.Domain:
        """The labels, sorted."""
        found = self.labels(values).unique().to_pylist()
        return kinds.Domain(categories=tuple(sorted(x for x in found if x is not None)))

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Labels in the type that they were read from."""
        return values_of(pa.array(values, type=pa.string()), storage)

    def disturbed(
        self, values: Floats | Labels, domain: kinds.Domain, how: kinds.Disturbance, rng: np.random.Generator
    ) -> Floats | Labels:
        """Redrawn with probability ``flip``, evenly from the other labels of the column."""
        known = np.array(domain.categories or (), dtype=object)
        if len(known) < 2:
            return values
        position = {label: i for i, label in enumerate(known)}
        old = np.array([position.get(x, 0) for x in values], dtype=np.int64)
        moved = (old + rng.integers(1, len(known), len(values))) % len(known)
        flips = (rng.random(len(values)) < how.flip) & (values != None)  # noqa: E711 (elementwise)
        return np.where(flips, known[moved], values)


def names_rows(distinct: int, present: int) -> bool:
    """True for labels that half of the rows have for themselves."""
    return distinct >= present * _MOSTLY_ITS_OWN


def _words(text: str) -> str:
    """A label's words without what stands between them, which would count as letters."""
    return " ".join(re.findall(r"\w+", text))
