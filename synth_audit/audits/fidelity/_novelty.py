"""Which cells of a release no training row could have had: labels, spellings, finer digits, far numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.encode.codes import distinct_labels, per_label
from synth_audit.encode.kinds import number_kind
from synth_audit.encode.kinds._numbers import is_single
from synth_audit.encode.texts import Reading
from synth_audit.table.label_forms import column_forms
from synth_audit.table.resolution import Resolution, ValueGrid, decimal_grids, resolution_of, time_grids
from synth_audit.table.schema import Column
from synth_audit.table.storage_types import MOST_EXACT

_FINER = 100
"""Two digits, 6.6 bits: no cell spells a record (one of Adult takes about 40 bits)."""

_ARITHMETIC = 1e-9
"""Quotients of powers of ten miss a whole number by less."""

_LONGER = 2
"""Times the longest known text from which on a text's length is odd."""

_NEVER_LONG = 16
"""Text of so many letters is no longer than labels may be."""

_HIDDEN = r"[\p{Cc}\p{Cf}\p{Co}]"
"""Characters that nobody sees."""

_FAR = 10.0
"""Spans of a column's numbers beyond its ends: one more digit in front."""


class Aspect(StrEnum):
    """In what a value can be new to a column."""

    LABEL = "labels"
    SPELLING = "spellings"
    FORM = "long or hidden text"
    CONSTANT = "constants"
    RESOLUTION = "finer digits"
    RANGE = "far numbers"
    MISSING = "missing values"


@dataclass(frozen=True, eq=False)
class Novelty:
    """Cells of a release that are new to a column in one aspect.

    Attributes:
        rows: of the release, shape (m,).
        usual: training rows that would be as new, had the rows of their entity not been there, shape (n,):
            fresh rows of the same people bring as many.
    """

    aspect: Aspect
    rows: Bools
    usual: Bools


def column_novelties(
    column: Column, train: pa.ChunkedArray, values: pa.ChunkedArray, entities: Codes | None
) -> tuple[Novelty, ...]:
    """What cells of a release are new to a column of train.

    Of labels new ones, and where labels read as numbers or dates, finer ones, and text among them.

    Args:
        train, values: the column in train, shape (n,), and in the release, shape (m,).
        entities: whose each training row is, shape (n,); None where each is somebody's only one.
    """
    if kind := number_kind(column):
        if pa.types.is_float32(train.type) and pa.types.is_float64(values.type):
            # Numbers that were widened, each of them, as the 32 bits that train has; others as they are.
            narrow = values.cast(train.type, safe=False)
            widened = pc.all(pc.equal(narrow.cast(values.type), values)).as_py() is not False
            values = narrow if widened else values
        bounded, single = column.declared_bounds is not None, is_single(values.type)
        known, given = kind.plain(train), kind.plain(values)
        own, declared = column.inferred_resolution, column.declared_resolution
        room = FinestDigits.of(known, own, single=single) if kind.decimal and own and not declared else None
        resolutions = [own, *(x for x in (declared, room) if x is not None)]
        return _number_novelties(known, given, resolutions, entities, bounded=bounded, single=single)
    labels, made = (column.kind.labels(_exact_decimals(x)).cast(pa.large_string()) for x in (train, values))
    found = _label_novelties(labels, made, column.declared_categories or (), entities)
    reading = Reading.of([x for x in distinct_labels(column.kind, train)[1] if x is not None])
    if reading is None or column.declared_categories:
        return found
    numbers, read = (per_label(column.kind, reading.numbers, x) for x in (train, values))
    return (*found, *_read_novelties(numbers, read, reading.dates, labels, made, entities))


@dataclass(frozen=True)
class FinestDigits:
    """Digits finer than a column's resolution that a release may have: those that some training numbers have.

    Attributes:
        resolution: of most training numbers.
        finest: the grid of all of them.
    """

    resolution: Resolution
    finest: ValueGrid

    @classmethod
    def of(cls, train: Floats, resolution: Resolution, *, single: bool = False) -> FinestDigits | None:
        """The coarsest power of ten, or the resolution's own whole step, that all numbers are multiples of.

        Args:
            train: shape (n,), NaN where missing. single: stored as float32.

        Returns:
            None where none is at most 100 times finer than the resolution, which then counts alone.
        """
        largest, own = np.nanmax(np.abs(train), initial=0.0), resolution.grid
        least = own.step / _FINER * (1 - _ARITHMETIC)
        decimal = (grid for grid in decimal_grids() if least <= grid.step <= own.step)
        for grid in (*([own] if own.denominator == 1 else []), *decimal):
            told_apart = largest < MOST_EXACT / grid.denominator
            if told_apart and Resolution(grid).holds(train, single=single).all():
                return cls(resolution, grid)
        return None

    def holds(self, values: Floats, *, single: bool = False) -> Bools:
        """True for numbers on the finest grid where it is at most 100 times finer than the resolution."""
        near = self._steps(values) <= _FINER * self.finest.step * (1 + _ARITHMETIC)
        held: Bools = near & Resolution(self.finest).holds(values, single=single)
        return held

    def _steps(self, values: Floats) -> Floats:
        """The resolution's step at each number; large where digits are counted and the number is large."""
        step, digits = self.resolution.grid.step, self.resolution.digits
        if digits is None:
            return np.full(len(values), step)
        with np.errstate(divide="ignore"):
            size = np.floor(np.log10(np.abs(values)))
        return np.fmax(step, 10.0 ** (size + 1 - digits))


def _label_novelties(
    train: pa.ChunkedArray,
    values: pa.ChunkedArray,
    declared: Sequence[str],
    entities: Codes | None,
) -> tuple[Novelty, ...]:
    """New labels, new spellings of known ones, and text that no label of train looks like.

    A label is known in the very letters that train or the plan has it in: case, blanks and look-alikes can
    carry bits.

    Args:
        train, values: labels as text, shapes (n,) and (m,). declared: the plan's; where there are some, what
            it leaves out is none of fresh people's either.
        entities: whose each training row is, shape (n,); None where each is somebody's only one.
    """
    own = train.unique().drop_null()
    known = pa.concat_arrays([own.cast(values.type), pa.array(declared, values.type)])
    new, nobody = _is_not_in(values, known), np.zeros(len(train), dtype=bool)
    if len(known) <= 1:
        return (Novelty(Aspect.CONSTANT, new, nobody),)
    alone = nobody if declared else held_by_one(train, entities)
    respelt = new & ~_is_not_in(column_forms(values), column_forms(pa.chunked_array([known])).unique())
    own_respelt = alone & _spelt_otherwise_too(train)
    return (
        Novelty(Aspect.LABEL, new & ~respelt, alone & ~own_respelt),
        Novelty(Aspect.SPELLING, respelt, own_respelt),
        Novelty(Aspect.FORM, new & _unlike(values, known), nobody),
    )


def _number_novelties(
    train: Floats,
    values: Floats,
    resolutions: Sequence[Resolution | FinestDigits | None],
    entities: Codes | None,
    *,
    bounded: bool,
    single: bool,
) -> tuple[Novelty, ...]:
    """Other numbers than a constant, digits beyond the column's resolution, and numbers far out.

    A number that train holds is never new, nor is any where the plan declares what may occur.

    Args:
        train, values: shapes (n,) and (m,), NaN where missing.
        resolutions: the column's in train, and the plan's or the finest digits of train; None where nothing
            finer could be told.
        bounded: the plan declares the ends of the column. single: the release stores float32.
    """
    distinct = np.unique(train[~np.isnan(train)])
    new = ~np.isnan(values) & ~np.isin(values, distinct)
    nobody = np.zeros(len(train), dtype=bool)
    if len(distinct) <= 1:
        free = bounded and len(distinct) == 0
        return (Novelty(Aspect.CONSTANT, new & (not free), nobody),)
    found = []
    if None not in resolutions:
        held = ([r.holds(x, single=single) for r in resolutions if r is not None] for x in (values, train))
        finer, off = (~np.any(parts, axis=0) for parts in held)
        alone = _of_one(np.unique(train, return_inverse=True)[1], entities) & ~np.isnan(train)
        found.append(Novelty(Aspect.RESOLUTION, new & finer, off & alone))
    if not bounded:
        far = new & _far(values, distinct[0], distinct[-1])
        found.append(Novelty(Aspect.RANGE, far, _far_alone(train, distinct)))
    return tuple(found)


def _read_novelties(
    train: Floats,
    values: Floats,
    dates: bool,
    known: pa.ChunkedArray,
    given: pa.ChunkedArray,
    entities: Codes | None,
) -> tuple[Novelty, ...]:
    """Finer digits in labels that read as numbers, and labels that do not read so.

    Args:
        train, values: as they are read, NaN where they are not. dates: they are dates, in microseconds.
        known, given: the labels themselves.
    """
    resolution = resolution_of(train, time_grids() if dates else decimal_grids(), decimal=not dates)
    unread = np.isnan(values) & _is_not_in(given, known.unique().drop_null())
    alone = held_by_one(known, entities) & np.isnan(train)
    numbers = _number_novelties(train, values, [resolution], entities, bounded=False, single=False)
    return (*numbers, Novelty(Aspect.LABEL, unread, alone))


def _exact_decimals(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals that float64 cannot hold apart as text, so that no digit of a label is lost; others as they
    are."""
    if not (pa.types.is_decimal(values.type) and values.type.scale):
        return values
    back = values.cast(pa.float64()).cast(values.type, safe=False)
    return values if pc.all(pc.equal(values, back)).as_py() is not False else values.cast(pa.string())


def _far(values: Floats, low: float, high: float) -> Bools:
    with np.errstate(over="ignore", invalid="ignore"):
        room = _FAR * (high - low)
        beyond: Bools = (values > high + room) | (values < low - room)
    return beyond


def _far_alone(train: Floats, distinct: Floats) -> Bools:
    """Rows at an end that would lie far out, were they not there."""
    if len(distinct) < 3:
        return np.zeros(len(train), dtype=bool)
    ends = [
        end
        for end, rest in ((distinct[0], distinct[1:]), (distinct[-1], distinct[:-1]))
        if _far(np.array([end]), rest[0], rest[-1])[0]
    ]
    return np.isin(train, ends)


def held_by_one(train: pa.ChunkedArray, entities: Codes | None) -> Bools:
    """True where no other entity has the label."""
    encoded = train.combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False))
    present = codes < len(encoded.dictionary)
    return _of_one(codes.astype(np.int64), entities) & present


def _of_one(codes: Codes, entities: Codes | None) -> Bools:
    """True for rows whose code no row of another entity has."""
    if entities is None:
        found = np.bincount(codes) == 1
    else:
        size = int(codes.max(initial=0)) + 1
        first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        np.minimum.at(first, codes, entities)
        np.maximum.at(last, codes, entities)
        found = first == last
    return np.asarray(found[codes], dtype=bool)


def _spelt_otherwise_too(train: pa.ChunkedArray) -> Bools:
    """True for labels that train has in another spelling as well."""
    spellings = column_forms(pa.chunked_array([train.unique().drop_null()])).value_counts()
    several = spellings.filter(pc.greater(spellings.field("counts"), 1)).field("values")
    found = pc.is_in(column_forms(train), value_set=several)
    return np.asarray(pc.and_(found, pc.is_valid(train)).to_numpy(), dtype=bool)


def _unlike(values: pa.ChunkedArray, known: pa.Array) -> Bools:
    """Text much longer than every known label, or with characters that nobody sees and no label has."""
    longest = pc.max(pc.utf8_length(known)).as_py() or 0
    odd = pc.greater(pc.utf8_length(values), max(_LONGER * longest, _NEVER_LONG))
    if not pc.any(pc.match_substring_regex(known, _HIDDEN)).as_py():
        odd = pc.or_(odd, pc.match_substring_regex(values, _HIDDEN))
    return np.asarray(odd.fill_null(False).to_numpy(), dtype=bool)


def _is_not_in(values: pa.ChunkedArray, known: pa.Array) -> Bools:
    """True where there is a value and it is none of those known."""
    new = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=known)))
    return np.asarray(new.to_numpy(), dtype=bool)
