"""Sessions with a PostgreSQL server, told of without a word of its own, and its columns as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.errors import DataError, Unavailable
from synth_audit.plugins.source import ConnectionSpec, at_least_one
from synth_audit.sources._files import library, quote
from synth_audit.table.schema import check_names

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

_DEFAULTS = {"connect_timeout": "10", "application_name": "synth-audit"}

_READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""One snapshot for all that is asked of it; nothing can be changed."""

_LOCKED = ("55P03", "40001", "40P01")
_LOST = ("57P01", "57P02", "57P03", "57P05")
_LOST_WORDS = ("server closed", "terminat", "connection reset", "no connection", "timed out", "broken pipe")
_MEANINGS = {
    "42P01": ("there is no such table", "names are taken as they stand, capital letters too"),
    "3F000": ("there is no such schema", "names are taken as they stand, capital letters too"),
    "42703": ("a column is not there", "correct the query, or see who changed the table"),
    "42501": (
        "this user lacks a privilege",
        "to read takes USAGE on the schema and SELECT on the table; to release, CREATE on the schema and to "
        "own the table that is replaced",
    ),
    "25006": ("the query would write, and the session only reads", "give a SELECT without side effects"),
    "42601": ("the query is not one SELECT", "try it in psql, without a semicolon"),
    "57014": ("the server ended the query", "see its statement_timeout, and who ended it"),
    "53100": ("the server's disk is full", "free space there; what was there before is untouched"),
    "53300": ("the server takes no more sessions", "run again later"),
    "22021": ("text holds a character that PostgreSQL cannot store", "leave out the character NUL"),
    "2BP01": (
        "something depends on the version before",
        "drop what depends on it, then release again",
    ),
}
_REFUSALS = (
    (
        "password authentication failed",
        "user or password is wrong",
        "check both, and the variable",
    ),
    ("no password supplied", "the server asks for a password", "name its variable under `secrets`"),
    ("pg_hba.conf", "the server lets this user in from nowhere or not from here", "ask who runs the server"),
    ("invalid connection option", "an option is none of PostgreSQL's", "see libpq's connection parameters"),
    ("certificate", "the server's certificate does not hold", "check `sslrootcert` and `sslmode`"),
    ("does not exist", "user or database do not exist there", "check `user` and `dbname`"),
)

_KIND = b"POSTGRESQL:type"
_MODIFIER = b"POSTGRESQL:typmod"
_REFUSED = {"money", "oid", "xid", "cid", "regclass"}
"""Types that arrive as numbers which are not what they say: cents without their currency, or row numbers."""

_MODIFIER_HEADER = 4
"""Which PostgreSQL adds to a type's modifier."""

_SHORT_DECIMAL, _LONG_DECIMAL = 38, 76
"""Digits that Arrow's decimals of 128 and of 256 bits hold."""


@contextmanager
def session(connection: ConnectionSpec, wait: float, where: str, *, read_only: bool) -> Iterator[Cursor]:
    """A cursor within one transaction, which is rolled back unless the block commits it.

    Args:
        wait: seconds that a lock is waited for.
        where: what is read or written, for messages.

    Raises:
        Unavailable: the server does not answer, ends the session, or a lock is not free in time.
        DataError: it lets nobody in under these settings, or refuses what is asked.
        PlanError: a secret is not set, or the driver is not installed.
    """
    opened = _connected(connection)
    try:
        with opened.cursor() as cursor, explained(where):
            if read_only:
                cursor.execute(_READ_ONLY)
            cursor.execute("SET LOCAL TimeZone = 'UTC'")
            cursor.execute(f"SET LOCAL lock_timeout = {max(1, round(wait * 1000))}")
            yield cursor
    finally:
        with suppress(Exception):  # of a session that is lost; what it had begun the server rolls back
            opened.rollback()
        with suppress(Exception):
            opened.close()


def _connected(connection: ConnectionSpec) -> Any:
    dbapi = library(
        "adbc_driver_postgresql.dbapi",
        "the driver of PostgreSQL",
        extra="warehouse",
        where="source or release, postgres",
        expected="the packages of the extra `warehouse`",
    )
    settings = connection.settings()
    quoted = {k: v.replace("\\", "\\\\").replace("'", "\\'") for k, v in {**_DEFAULTS, **settings}.items()}
    # What libpq connects to: a whole `uri`, or each option quoted.
    address = settings.get("uri") or " ".join(f"{name}='{value}'" for name, value in quoted.items())
    try:
        return dbapi.connect(address)
    except dbapi.Error as error:
        raise _not_let_in(str(error)) from None


def _not_let_in(text: str) -> DataError:
    """Which of the known refusals it is; the text itself names users and hosts."""
    for words, what, fix in _REFUSALS:
        if words in text:
            return DataError(
                f"no session with PostgreSQL: {what}",
                where="connections",
                expected="a server, database and user that go together",
                fix=fix,
            )
    return Unavailable(
        "no session with PostgreSQL: the server cannot be reached, or does not answer",
        where="connections",
        expected="a server that answers at this host and port",
        fix="check `host`, `port` and the network; run again when it is up",
    )


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Say what the server's refusals mean; its own words may quote cells, queries or users."""
    from adbc_driver_manager import Error

    try:
        yield
    except (Error, OSError, pa.ArrowException) as error:
        raise meaning(error, where) from None


def meaning(error: BaseException, where: str) -> DataError:
    """The project's own error for one of the driver's."""
    state, text = getattr(error, "sqlstate", None) or "", str(error).lower()
    if state in _LOCKED or "lock timeout" in text:
        return Unavailable(
            "a table is locked by another session",
            where=where,
            expected="a lock that is free in time; see `wait`",
            fix="run again when the other session has ended; nothing was changed",
        )
    if state in _LOST or state.startswith("08") or any(words in text for words in _LOST_WORDS):
        return Unavailable(
            "the server ended the session or cannot be reached any more",
            where=where,
            expected="a session that lasts",
            fix="run again when the server is up; nothing was changed",
        )
    what, fix = _MEANINGS.get(state, ("PostgreSQL refuses it", "try it in psql as the same user"))
    return DataError(
        f"{what} ({state or type(error).__name__})",
        where=where,
        expected="an existing table of plain columns that this user may use",
        fix=fix,
    )


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
