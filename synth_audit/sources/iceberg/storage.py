"""How columns of a release are stored in an Iceberg table, and which cannot be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_KINDS = {
    pa.bool_(): pa.bool_(),
    pa.int8(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.int64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.float32(): pa.float32(),
    pa.float64(): pa.float64(),
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.date32(): pa.date32(),
}
"""Types of columns, and the wider ones that Iceberg keeps their values in."""


def stored(data: pa.Table) -> pa.Table:
    """The same values in types that Iceberg has, in columns that may all lack values."""
    kinds = [stored_type(kind) for kind in data.schema.types]
    columns = [column.cast(kind) for column, kind in zip(data.columns, kinds, strict=True)]
    return pa.table(columns, names=data.column_names)


def stored_type(kind: pa.DataType) -> pa.DataType | None:
    """The type in which Iceberg keeps a column; None where there is none that keeps all values."""
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return None if kind.unit == "ns" else pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_decimal128(kind):
        return kind if kind.scale >= 0 else None
    return _KINDS.get(kind)


def iceberg_type(kind: pa.DataType) -> Any:
    """The column type of Iceberg for one that :func:`stored_type` gave."""
    from pyiceberg import types

    if pa.types.is_decimal(kind):
        return types.DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return types.TimestamptzType() if kind.tz else types.TimestampType()
    return {
        pa.bool_(): types.BooleanType(),
        pa.int32(): types.IntegerType(),
        pa.int64(): types.LongType(),
        pa.float32(): types.FloatType(),
        pa.float64(): types.DoubleType(),
        pa.string(): types.StringType(),
        pa.date32(): types.DateType(),
    }[kind]
