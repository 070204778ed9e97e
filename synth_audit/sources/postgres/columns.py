"""Columns of PostgreSQL as Arrow, and columns of a release as PostgreSQL stores them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.errors import DataError
from synth_audit.plugins.source import at_least_one, refuse_unkept
from synth_audit.sources._files import quote
from synth_audit.table.arrow import value_type
from synth_audit.table.schema import check_names

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor


_KIND = b"POSTGRESQL:type"
_MODIFIER = b"POSTGRESQL:typmod"
_REFUSED = {"money", "oid", "xid", "cid", "regclass"}
"""Types that arrive as numbers which are not what they say: cents without their currency, or row numbers."""

_MODIFIER_HEADER = 4
"""Which PostgreSQL adds to a type's modifier."""

_SHORT_DECIMAL, _LONG_DECIMAL = 38, 76
"""Digits that Arrow's decimals of 128 and of 256 bits hold."""

_SQL_TYPES = {
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

_LONGEST_COLUMN = 63
"""Bytes of a name; PostgreSQL cuts longer ones without a word."""


@dataclass(frozen=True)
class ReadColumn:
    """A column and the type it is read as; equal to ``field.type`` where nothing is cast."""

    field: pa.Field
    kind: pa.DataType

    def of(self, values: pa.Array, where: str) -> pa.Array:
        """The values in that type.

        Raises:
            DataError: a number is NaN or infinite.
        """
        if values.type == self.kind:
            return values
        try:
            return pc.cast(values.storage, self.kind)
        except pa.ArrowInvalid:  # its text holds the value
            raise _no_number(self.field.name, where) from None


def read_columns(cursor: Cursor, select: str, where: str) -> tuple[ReadColumn, ...]:
    """How each column of a SELECT is read, before any of its rows is.

    NUMERIC without a precision takes a look at its values: how many digits they have, in this snapshot.

    Raises:
        DataError: a column's name is empty or occurs twice, or its type cannot be read.
    """
    schema = cursor.adbc_execute_schema(select)
    if not schema.names:
        raise DataError(
            "the query is not one SELECT",
            where=where,
            expected="a SELECT with columns",
            fix="try it in psql: other commands hand out no rows",
        )
    check_names(schema.names, where=where)
    for field in schema:
        if problem := _problem_of(field):
            raise DataError(
                f"column {field.name!r} has the PostgreSQL type {_type_of(field)}, which cannot be audited",
                where=where,
                expected=f"numbers, text, booleans, dates, times, UUIDs or enums: {problem}",
                fix=f"leave {field.name!r} out, or make plain columns of it, with `query:` or a view",
            )
    return tuple(ReadColumn(field, _kind(cursor, select, field, where)) for field in schema)


def batches(
    cursor: Cursor, select: str, columns: tuple[ReadColumn, ...], where: str
) -> Iterator[pa.RecordBatch]:
    """The rows as they stream in; at least one batch."""
    schema = pa.schema([(c.field.name, c.kind) for c in columns])
    cursor.execute(select)
    with cursor.fetch_record_batch() as reader:
        read = ([c.of(x, where) for c, x in zip(columns, batch.columns, strict=True)] for batch in reader)
        yield from at_least_one((pa.RecordBatch.from_arrays(x, schema=schema) for x in read), schema)


def _type_of(field: pa.Field) -> str:
    return str((field.metadata or {}).get(_KIND, b"unknown"), errors="replace")


def _problem_of(field: pa.Field) -> str:
    name, types = _type_of(field), pa.types
    if name in _REFUSED:
        return "what its numbers mean is not in the column"
    if types.is_nested(field.type):
        return "each cell holds several values"
    if types.is_interval(field.type):
        return "how long a month is depends on the month"
    opaque = isinstance(field.type, pa.OpaqueType)
    return "no audit compares such values" if opaque and name != "numeric" else ""


def _kind(cursor: Cursor, select: str, field: pa.Field, where: str) -> pa.DataType:
    if _type_of(field) != "numeric":
        return field.type
    modifier = int((field.metadata or {}).get(_MODIFIER, b"-1"))
    if modifier >= _MODIFIER_HEADER:
        modifier -= _MODIFIER_HEADER  # precision, and the scale as a signed number of eleven bits
        digits, scale = modifier >> 16, ((modifier & 0x7FF) ^ 1024) - 1024
    else:
        digits, scale = _digits_found(cursor, select, field.name, where)
    digits, scale = max(digits - min(scale, 0), scale, 1), max(scale, 0)
    if digits > _LONG_DECIMAL:
        raise DataError(
            f"column {field.name!r} holds numbers of {digits} digits",
            where=where,
            expected=f"at most {_LONG_DECIMAL} digits",
            fix=f"round {field.name!r} with `query:` or in a view",
        )
    return pa.decimal128(digits, scale) if digits <= _SHORT_DECIMAL else pa.decimal256(digits, scale)


def _digits_found(cursor: Cursor, select: str, name: str, where: str) -> tuple[int, int]:
    column = quote(name)
    odd = f"bool_or({column} IN ('NaN', 'Infinity', '-Infinity'))"
    cursor.execute(
        f"SELECT {odd}, max(scale({column})), max(char_length(trunc(abs({column}))::text)) "  # noqa: S608
        f"FROM ({select}) AS read_here"
    )
    row = cursor.fetchone()
    assert row is not None
    endless, scale, whole = row
    if endless:
        raise _no_number(name, where)
    return (whole or 1) + (scale or 0), scale or 0


def _no_number(name: str, where: str) -> DataError:
    return DataError(
        f"column {name!r} holds NaN or infinity among its decimals",
        where=where,
        expected="finite numbers; missing values as NULL",
        fix=f"put NULL for those that mean none: `NULLIF({name}, 'NaN')`",
    )


def refuse_types(schema: pa.Schema, where: str) -> None:
    """Raise ``DataError`` for a column, or its name, that PostgreSQL cannot hold as it is."""
    kept = "numbers, text, booleans, dates, times to the microsecond"
    refuse_unkept(
        schema, lambda kind: sql_type(kind) is not None, "PostgreSQL table", where=where, expected=kept
    )
    for field in schema:
        if len(field.name.encode()) > _LONGEST_COLUMN or "\0" in field.name:
            raise DataError(
                f"column {field.name!r} has a name that PostgreSQL would cut",
                where=where,
                expected=f"names of at most {_LONGEST_COLUMN} bytes",
                fix="give it a shorter name where the table comes from",
            )


def sql_type(kind: pa.DataType) -> str | None:
    """The SQL type of a column, which is no dictionary's; None where there is none that keeps all values."""
    types = pa.types
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
    return _SQL_TYPES.get(kind)


def stored(data: pa.Table) -> pa.Table:
    """The same values in types that the driver writes.

    Raises:
        pa.ArrowInvalid: a time is finer than a microsecond.
    """
    columns = [column.cast(_stored_type(value_type(column.type))) for column in data.columns]
    return pa.table(columns, names=data.column_names)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_time(kind):
        return pa.time64("us")
    return {pa.date64(): pa.date32(), pa.float16(): pa.float32()}.get(kind, kind)
