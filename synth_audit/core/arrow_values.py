"""Arrow values as numbers and as labels, the same for every storage of a value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.arrow_types import is_binary

_EXACT_POWER = 22
"""Greatest power of ten that float64 holds."""

_WHOLE_SINGLES = 2.0**24
"""From here on all numbers with 32 bits are whole."""


def labels_of(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as text labels, missing as null; whole numbers read as integers, so 1, 1.0 and 1.00 agree."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_decimal(values.type) and values.type.scale:
        values = nearest_floats(values)
    kind = values.type
    if pa.types.is_floating(kind):
        return _float_labels(values)
    if pa.types.is_duration(kind):
        values = values.cast(pa.int64())
    if is_binary(kind):
        hexed = [None if x is None else x.hex() for x in values.to_pylist()]
        return pa.chunked_array([pa.array(hexed, pa.string())])
    return values.cast(pa.string())


def values_of(labels: pa.StringArray, storage: pa.DataType) -> pa.Array:
    """Labels in the type that :func:`labels_of` read them from."""
    if pa.types.is_null(storage):
        return pa.nulls(len(labels))
    if pa.types.is_dictionary(storage):
        return values_of(labels, storage.value_type).dictionary_encode().cast(storage)
    if pa.types.is_decimal(storage) and storage.scale:
        return decimals_of(labels.cast(pa.float64()), storage)
    if pa.types.is_duration(storage):
        return labels.cast(pa.int64()).cast(storage)
    if pa.types.is_time(storage):  # Arrow reads times of a day from text with a day alone
        moments = pc.binary_join_element_wise("1970-01-01", labels, " ").cast(pa.timestamp(storage.unit))
        return moments.cast(storage)
    if is_binary(storage):
        return pa.array([None if x is None else bytes.fromhex(x) for x in labels.to_pylist()], storage)
    return labels.cast(storage)


def n_distinct(values: pa.ChunkedArray) -> int:
    """How many values a column has, of a dictionary those that rows have; missing is none of them."""
    if pa.types.is_null(values.type):
        return 0
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return int(pc.count_distinct(values).as_py())


def nearest_floats(decimals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as the float64 that their digits are read as; Arrow's own cast is one beside it for many."""
    return pa.chunked_array([_nearest_floats(chunk) for chunk in decimals.chunks], pa.float64())


def _nearest_floats(decimals: pa.Array) -> pa.Array:
    kind = decimals.type
    if pa.types.is_decimal128(kind) and kind.scale <= _EXACT_POWER and len(decimals):
        words = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)
        low, high = words[decimals.offset : decimals.offset + len(decimals)].T
        missing = decimals.is_null().to_numpy(zero_copy_only=False)
        if np.all(missing | ((high == low >> 63) & (np.abs(low) <= 2**53))):
            return pa.array(low / 10.0**kind.scale, mask=missing)  # of two exact numbers, so rounded once
    return decimals.cast(pa.string()).cast(pa.float64())


def decimals_of(floats: pa.Array, storage: pa.DataType) -> pa.Array:
    """Floats rounded to decimals, of those that read as the same float the one of fewest digits."""
    near = pa.chunked_array([floats.cast(storage, safe=False)])
    return nearest_floats(near).cast(pa.string()).cast(storage).combine_chunks()


def numbers_of(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """As float64, missing as null; datetimes as microseconds since 1970 (UTC), times since midnight.

    Decimals and numbers with 32 bits are what their digits are read as.
    """
    if pa.types.is_decimal(values.type):
        return nearest_floats(values)
    if pa.types.is_time(values.type):
        values = values.cast(pa.time64("us"), safe=False).cast(pa.int64())
    elif pa.types.is_temporal(values.type):
        values = in_microseconds(values).cast(pa.int64())
    if pa.types.is_float32(values.type):
        return _shortest(values)
    return values.cast(pa.float64(), safe=False)


def _shortest(singles: pa.ChunkedArray) -> pa.ChunkedArray:
    """Of numbers with 32 bits the decimals of fewest digits that stand for them: 36.6, and not 36.5999985.

    So a table has the same numbers before and after it was written as text, or from such.
    """
    exact = singles.cast(pa.float64())
    fractions = pc.less(pc.abs(exact), pa.scalar(_WHOLE_SINGLES))
    return pc.if_else(fractions, singles.cast(pa.string()).cast(pa.float64()), exact)


def in_microseconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as timestamps of one unit, in the zone that they have."""
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    return values.cast(pa.timestamp("us", tz=zone), safe=False)


def nan_as_missing(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values with every NaN as null."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def regular_floats(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats with null for NaN and 0.0 for -0.0; the values themselves where they hold neither."""
    if pc.any(pc.is_nan(values)).as_py():
        values = nan_as_missing(values)
    return _unsigned_zeros(values) if any(map(_signed_zero, values.chunks)) else values


def _unsigned_zeros(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_float16(values.type):  # for which Arrow has no arithmetic
        return _unsigned_zeros(values.cast(pa.float32())).cast(pa.float16())
    return pc.add(values, pa.scalar(0.0, values.type))


def _signed_zero(values: pa.Array) -> bool:
    """Whether some value is -0.0, or lies as such under a null."""
    if not len(values):
        return False
    kind = values.type.to_pandas_dtype()
    raw = np.frombuffer(values.buffers()[1], kind)[values.offset : values.offset + len(values)]
    return bool((np.signbit(raw) & (raw == 0)).any())


def _float_labels(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    values = nan_as_missing(values)
    exact = pc.less_equal(pc.abs(values), pa.scalar(2.0**53, values.type))
    whole = pc.and_(exact, pc.equal(pc.round(values), values))
    integers = pc.if_else(whole, values, pa.scalar(None, values.type)).cast(pa.int64())
    return pc.if_else(whole, integers.cast(pa.string()), values.cast(pa.string()))
