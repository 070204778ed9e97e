"""What may be stored in a table: every table passes here when it is read, and all other rooms rely on it.

Arrow has more types than any audit can compare, and an Arrow table or a Parquet file need not hold what its
types say. Here, and nowhere else, is decided which types are read, as which plainer ones, and what values
they may have.
"""

from contextlib import suppress
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.errors import DataError
from synth_audit.table.arrow import is_datetime, is_text, labels_of, nearest_floats, value_type
from synth_audit.table.schema import check_names

MOST_EXACT = float(2**53)
"""Greatest magnitude below which float64 holds every whole number."""

FARTHEST = 1e100
"""Greatest magnitude of a number that a generator is fitted to: sums of squares and cubes stay finite."""

_EXACT_DIGITS = 15
"""Decimal digits that every float64 keeps."""

_DIGITS_128 = 38
"""Digits that an Arrow decimal of 128 bits holds."""

_EXPECTED = "numbers, text, booleans, dates or times"
_YEARS = (date.min, date.max)
_EPOCH = date(1970, 1, 1)
_PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_OWN_EXTENSIONS = {"arrow.json", "arrow.uuid"}
"""Of Arrow's own, those whose values are what they are stored as."""


def plain(data: pa.Table, *, where: str) -> pa.Table:
    """A table with the same values in types that all rooms read; columns that have one stay as they are.

    Views become text and bytes, run-end encoded values are spelt out, a null among labels becomes a null of
    the rows, JSON becomes text, UUIDs become bytes, decimals of few bits or a negative scale ordinary ones.

    Args:
        where: the table's name for messages.

    Raises:
        DataError: a name is empty or occurs twice; a column is of a type that cannot be audited, holds
            something else than its type says, infinite numbers, or dates that no calendar has.
    """
    check_names(data.column_names, where=where)
    before = data.columns
    columns = [_plain(name, values, where) for name, values in zip(data.column_names, before, strict=True)]
    if all(new is old for new, old in zip(columns, before, strict=True)):
        return data
    return pa.Table.from_arrays(columns, names=data.column_names)


def refuse_inexact(name: str, values: pa.ChunkedArray, *, where: str) -> None:
    """Raise ``DataError`` for numbers that float64, in which audits compare them, cannot hold apart.

    The digits that it drops nobody would see, and they would be released: there is room for a secret in them.
    """
    if not _exact(values):
        codes = " for names of rows and `kind: categorical` for codes"
        raise _too_many_digits(
            name, where, f"round {name!r} at its source, or declare `role: identifier`{codes}"
        )


def refuse_inexact_labels(name: str, values: pa.ChunkedArray, *, where: str) -> None:
    """Raise ``DataError`` for decimals of more digits than their labels have; see :func:`refuse_inexact`."""
    stored = value_type(values.type)
    if not pa.types.is_decimal(stored) or stored.scale == 0:
        return
    if not _decimals_come_back(values.cast(stored)):
        raise _too_many_digits(name, where, f"round {name!r} at its source, or make text of it there")


def _too_many_digits(name: str, where: str, fix: str) -> DataError:
    return DataError(
        f"column {name!r} holds numbers of more digits than audits compare",
        where=where,
        expected="whole numbers up to 2^53, decimals of about 15 digits, times to the microsecond",
        fix=fix,
    )


def refuse_huge(name: str, values: pa.ChunkedArray, *, where: str) -> None:
    """Raise ``DataError`` for numbers that no generator can be fitted to, as their squares are infinite."""
    if not pa.types.is_floating(values.type):
        return
    ends = pc.min_max(values.cast(pa.float64())).as_py()
    if ends["min"] is None or (ends["min"] >= -FARTHEST and ends["max"] <= FARTHEST):
        return
    raise DataError(
        f"column {name!r} holds numbers beyond {FARTHEST:g}, to which no generator can be fitted",
        where=where,
        expected=f"numbers between -{FARTHEST:g} and {FARTHEST:g}",
        fix="put null for those that mean none, or give the column in another unit",
    )


def _plain(name: str, values: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    if why := _problem_of(values.type):
        raise _unknown(name, values.type, why, where)
    try:
        values.validate(full=True)
    except pa.ArrowException:  # its text may hold a value
        what = "text that is not UTF-8" if is_text(value_type(values.type)) else "values that are none of it"
        raise DataError(
            f"column {name!r} does not hold what its type {values.type} says: {what}, or damage",
            where=where,
            expected="values of the type that the table declares",
            fix="write the table again where it comes from; text in another encoding takes decoding there",
        ) from None
    try:
        found = _converted(values)
    except pa.ArrowException:
        raise _unknown(name, values.type, "Arrow makes no plain values of it", where) from None
    if pa.types.is_timestamp(found.type) and found.type.tz:
        _refuse_unknown_zone(name, found.type, where)
    if is_datetime(found.type):
        _refuse_far_dates(name, found, where)
    if pa.types.is_floating(found.type) and pc.any(pc.is_inf(found)).as_py():
        raise DataError(
            f"column {name!r} holds infinite values",
            where=where,
            expected="finite numbers; missing values as null",
            fix="replace infinities by a finite value or by null at the source",
        )
    return found


def _unknown(name: str, kind: pa.DataType, why: str, where: str) -> DataError:
    return DataError(
        f"column {name!r} has type {kind}, which cannot be audited: {why}",
        where=where,
        expected=_EXPECTED,
        fix=f"drop {name!r}, or make plain columns of it, where the table comes from",
    )


def _problem_of(kind: pa.DataType) -> str:
    """Why no column of a type can be read; empty where it can."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name in _OWN_EXTENSIONS:
            return ""
        return f"what values of the extension type {kind.extension_name!r} mean is not known here"
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _problem_of(kind.value_type)
    if types.is_nested(kind):
        return "each cell holds several values"
    if types.is_interval(kind):
        return "how long a month is depends on the month"
    return ""


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that values of a type are read in."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    if types.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    if types.is_decimal(kind):
        digits = kind.precision - min(kind.scale, 0)
        wide = pa.decimal128 if digits <= _DIGITS_128 else pa.decimal256
        return wide(digits, max(kind.scale, 0)) if kind.scale < 0 or kind.bit_width < 128 else kind
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)


def _converted(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in their plain type; the same object where they have it."""
    kind, chunks = values.type, values.chunks
    with_null = pa.types.is_dictionary(kind) and any(chunk.dictionary.null_count for chunk in chunks)
    if _plain_type(kind) == kind and not with_null:
        return values
    if isinstance(kind, pa.BaseExtensionType):
        return _converted(pa.chunked_array([chunk.storage for chunk in chunks], kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return _converted(pa.chunked_array([pc.run_end_decode(chunk) for chunk in chunks], kind.value_type))
    if not pa.types.is_dictionary(kind):
        return values.cast(_plain_type(kind))
    spelt = [_converted(pa.chunked_array([c.dictionary])).combine_chunks().take(c.indices) for c in chunks]
    return pa.chunked_array(spelt, _plain_type(kind.value_type)).dictionary_encode()


def _refuse_unknown_zone(name: str, kind: pa.DataType, where: str) -> None:
    try:
        pc.hour(pa.scalar(0, pa.int64()).cast(kind))
    except pa.ArrowInvalid:
        raise DataError(
            f"column {name!r} has the time zone {kind.tz!r}, which nobody knows here",
            where=where,
            expected="UTC, an offset such as +02:00, or a zone that the system has, such as Europe/Berlin",
            fix=f"convert {name!r} to UTC where the table comes from",
        ) from None


def _refuse_far_dates(name: str, values: pa.ChunkedArray, where: str) -> None:
    kind = values.type
    ends = pc.min_max(values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())).as_py()
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms" if pa.types.is_date64(kind) else "day"
    per_day = _PER_DAY[unit]
    first, last = ((day - _EPOCH).days for day in _YEARS)
    if ends["min"] is None or (ends["min"] >= first * per_day and ends["max"] < (last + 1) * per_day):
        return
    raise DataError(
        f"column {name!r} holds dates outside the years 1 to 9999",
        where=where,
        expected="dates that a calendar has",
        fix="put null for those that mean none, such as infinity, where the table comes from",
    )


def _exact(values: pa.ChunkedArray) -> bool:
    kind, types = values.type, pa.types
    if types.is_integer(kind) and kind.bit_width == 64:
        ends = pc.min_max(values).as_py()
        return ends["min"] is None or (ends["min"] >= -MOST_EXACT and ends["max"] <= MOST_EXACT)
    if types.is_decimal(kind) and kind.precision > _EXACT_DIGITS:
        return _decimals_come_back(values)
    if types.is_timestamp(kind) and kind.unit == "ns":
        return _comes_back(values, pa.timestamp("us", kind.tz))
    if types.is_time(kind) and kind.unit == "ns":
        return _comes_back(values, pa.time64("us"))
    return True


def _comes_back(values: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """True where values survive the way to another type and back."""
    try:
        back = values.cast(kind, safe=False).cast(values.type)
    except pa.ArrowInvalid:
        return False
    return bool(pc.all(pc.equal(values, back)).as_py() is not False)


def _decimals_come_back(values: pa.ChunkedArray) -> bool:
    """True where each is what its float64 is written as: all shortest, or all in as many digits as fit."""
    distinct = pa.chunked_array([values.unique()])
    floats = nearest_floats(distinct)
    for read in (labels_of(floats), floats):
        with suppress(pa.ArrowInvalid):  # it has more digits
            back = read.cast(values.type)
            if pc.all(pc.equal(distinct, back)).as_py() is not False:
                return True
    return False
