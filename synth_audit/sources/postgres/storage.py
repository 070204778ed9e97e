"""How columns of a release are stored in PostgreSQL, and which cannot be."""

from __future__ import annotations

import pyarrow as pa

from synth_audit.core.errors import DataError

_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.uint8(): "smallint",
    pa.int16(): "smallint",
    pa.uint16(): "integer",
    pa.int32(): "integer",
    pa.uint32(): "bigint",
    pa.int64(): "bigint",
    pa.float16(): "real",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
}
_LONGEST = 63
"""Bytes of a name; PostgreSQL cuts longer ones without a word."""


def refuse_types(schema: pa.Schema, where: str) -> None:
    """Raise ``DataError`` for a column, or its name, that PostgreSQL cannot hold as it is."""
    for field in schema:
        if sql_type(field.type) is None:
            raise DataError(
                f"column {field.name!r} has type {field.type}, which no PostgreSQL table can hold",
                where=where,
                expected="numbers, text, booleans, dates, times to the microsecond",
                fix=f"cast {field.name!r} where the table comes from, or release into a Parquet file",
            )
        if len(field.name.encode()) > _LONGEST or "\0" in field.name:
            raise DataError(
                f"column {field.name!r} has a name that PostgreSQL would cut",
                where=where,
                expected=f"names of at most {_LONGEST} bytes",
                fix="give it a shorter name where the table comes from",
            )


def sql_type(kind: pa.DataType) -> str | None:
    """The SQL type of a column; None where there is none that keeps all values."""
    types = pa.types
    if types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if types.is_decimal(kind):
        return f"numeric({max(kind.precision, kind.scale)}, {kind.scale})"
    if kind == pa.uint64():
        return "numeric(20, 0)"
    if types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if types.is_time(kind):
        return "time"
    if types.is_fixed_size_binary(kind):
        return "bytea"
    return _PLAIN.get(kind)


def stored(data: pa.Table) -> pa.Table:
    """The same values in types that the driver writes.

    Raises:
        pa.ArrowInvalid: a time is finer than a microsecond.
    """
    kinds = [_stored_type(kind) for kind in data.schema.types]
    columns = [column.cast(kind) for column, kind in zip(data.columns, kinds, strict=True)]
    return pa.table(columns, names=data.column_names)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(kind):
        return _stored_type(kind.value_type)
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_time(kind):
        return pa.time64("us")
    return {pa.date64(): pa.date32(), pa.float16(): pa.float32()}.get(kind, kind)
