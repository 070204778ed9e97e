"""Write, audit, publish: a release is staged, read back, and takes the table's place in one transaction.

A server or a program that is lost on the way leaves nothing of it, since the server rolls it back.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pyarrow as pa

from synth_audit.errors import DataError, ReleaseUncertain, Unavailable
from synth_audit.plugins.source import refuse_unkept
from synth_audit.sources._files import quote
from synth_audit.sources.postgres.reading import batches, explained, read_columns
from synth_audit.table.arrow import value_type
from synth_audit.table.content_hash import fingerprint

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

PREVIOUS = "__previous"
"""What the name of the version before ends in."""

_STAGED = "synth_audit_staged"
_LONGEST_TABLE = 63 - len(PREVIOUS)
"""Bytes of a name: PostgreSQL cuts one after 63, and the version before has a longer one."""

_OURS = "synth-audit: "
"""What the comment on a table begins with that is ours to replace or drop."""

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

_HANGING = """
SELECT 'view ' || quote_ident(v.relname) FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid
  JOIN pg_class v ON v.oid = w.ev_class
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = {oid} AND v.oid <> {oid}
UNION SELECT 'row policy ' || quote_ident(polname) FROM pg_policy WHERE polrelid = {oid}
UNION SELECT 'row security' FROM pg_class WHERE oid = {oid} AND relrowsecurity
UNION SELECT 'trigger ' || quote_ident(tgname) FROM pg_trigger WHERE tgrelid = {oid} AND NOT tgisinternal
UNION SELECT 'foreign key ' || quote_ident(conname) FROM pg_constraint
  WHERE confrelid = {oid} AND contype = 'f'
UNION SELECT 'privilege on column ' || quote_ident(attname) FROM pg_attribute
  WHERE attrelid = {oid} AND attacl IS NOT NULL
UNION SELECT 'table that inherits from it' FROM pg_inherits WHERE inhparent = {oid} OR inhrelid = {oid}
ORDER BY 1 LIMIT 1
"""
"""What would stay with the old version, or be lost, when another table takes its name."""


def place_of(cursor: Cursor) -> tuple[str, ...]:
    """Server and database; a standby of the same server counts as the server, as it has the same tables."""
    if _asked(cursor, "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"):
        server = _asked(cursor, "SELECT system_identifier::text FROM pg_control_system()")
    else:
        server = _asked(cursor, "SELECT inet_server_addr()::text || ':' || inet_server_port()::text")
    return (f"PostgreSQL {server or 'local'}", str(_asked(cursor, "SELECT current_database()::text")))


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


def refuse_long_name(table: str, where: str) -> None:
    """Raise ``DataError`` for a name that leaves no room for that of the version before."""
    if len(table.encode()) > _LONGEST_TABLE:
        raise DataError(
            "the table's name is too long for a release",
            where=where,
            expected=f"at most {_LONGEST_TABLE} bytes, so that {PREVIOUS!r} has room behind it",
            fix="name another table under `release`",
        )


def replace_table(cursor: Cursor, schema: str, table: str, data: pa.Table, where: str) -> None:
    """Have a table hold ``data`` and nothing else; the version before gets a name with ``__previous``.

    Where the very same rows are there already, as after a kill, nothing is changed.
    """
    _alone(cursor, schema, table)
    if not _asked(
        cursor, "SELECT count(*) FROM pg_namespace WHERE nspname = $1", (schema,)
    ):  # `IF NOT EXISTS` alone would take the right to make one even where it exists
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}")
    sha256 = fingerprint(data)
    if _holds(cursor, schema, table, data, sha256, where):
        return
    staged = _stage(cursor, schema, table, data, where)
    if (found := fingerprint(_rows(cursor, schema, staged, data.schema, where))) != sha256:
        raise DataError(
            "what the server holds after staging is not what was audited",
            where=where,
            expected=f"content {sha256[:12]}, found {found[:12]}",
            fix="see who changes rows there, such as a trigger of the server; nothing was changed",
        )
    _keep_previous(cursor, schema, table, where)
    _rename(cursor, schema, staged, table)
    _remark(cursor, schema, table, f"released, content {sha256}")
    _copy_grants(cursor, schema, table)
    _commit(cursor, where)


def _alone(cursor: Cursor, schema: str, table: str) -> None:
    """Until the end of the transaction no other release of this table begins."""
    key = hashlib.sha256(f"{schema}\0{table}".encode()).digest()[:8]
    cursor.execute(f"SELECT pg_advisory_xact_lock({int.from_bytes(key, 'big', signed=True)})")
    cursor.fetchall()


def _holds(cursor: Cursor, schema: str, table: str, data: pa.Table, sha256: str, where: str) -> bool:
    if _remark_of(cursor, schema, table) != f"{_OURS}released, content {sha256}":
        return False
    try:
        return fingerprint(_rows(cursor, schema, table, data.schema, where)) == sha256
    except (DataError, pa.ArrowException):  # others have made another table of it
        return False


def _stage(cursor: Cursor, schema: str, table: str, data: pa.Table, where: str) -> str:
    name = f"{_STAGED}_{hashlib.sha256(f'{schema}.{table}'.encode()).hexdigest()[:12]}"
    columns = ", ".join(f"{quote(field.name)} {sql_type(value_type(field.type))}" for field in data.schema)
    cursor.execute(f"CREATE TABLE {quote(schema)}.{quote(name)} ({columns})")
    try:
        rows = stored(data)
    except pa.ArrowInvalid:  # its text holds a value
        raise DataError(
            "a time is finer than PostgreSQL keeps",
            where=where,
            expected="times to the microsecond",
            fix="round it where the table comes from",
        ) from None
    cursor.adbc_ingest(name, rows, mode="append", db_schema_name=schema)
    return name


def _rows(cursor: Cursor, schema: str, table: str, wanted: pa.Schema, where: str) -> pa.Table:
    """All rows, in the types of what was audited where columns have the same names."""
    select = f"SELECT * FROM {quote(schema)}.{quote(table)}"  # noqa: S608
    found = pa.Table.from_batches(batches(cursor, select, read_columns(cursor, select, where), where))
    if found.column_names != wanted.names:
        return found
    return found.cast(pa.schema([(field.name, value_type(field.type)) for field in wanted]))


def _keep_previous(cursor: Cursor, schema: str, table: str, where: str) -> None:
    """Move what is there to the name of the version before, in the place of the one that has it."""
    before = table + PREVIOUS
    if _oid(cursor, schema, table) is None:
        return
    _refuse_hanging(cursor, schema, table, where)
    if _oid(cursor, schema, before) is not None:
        if not _remark_of(cursor, schema, before).startswith(_OURS):
            raise DataError(
                "a table that is not ours has the name of the version before",
                where=f"{where}, {before}",
                expected="no such table, or one that an earlier release left",
                fix="rename it; a release would have dropped it",
            )
        cursor.execute(f"DROP TABLE {quote(schema)}.{quote(before)}")
    _rename(cursor, schema, table, before)
    if not _remark_of(cursor, schema, before).startswith(_OURS):
        _remark(cursor, schema, before, "what the first release replaced")


def _refuse_hanging(cursor: Cursor, schema: str, table: str, where: str) -> None:
    """Raise where a swap of names would leave readers with the old version, or drop a protection."""
    target = f"{quote(schema)}.{quote(table)}"
    oid = _oid(cursor, schema, table)
    if _asked(cursor, "SELECT relkind::text FROM pg_class WHERE oid = $1::bigint::oid", (oid,)) != "r":
        raise DataError(
            "what stands there is no ordinary table",
            where=where,
            expected="a table, or nothing; no view, partitioned or foreign table",
            fix="name another table under `release`",
        )
    cursor.execute(f"LOCK TABLE {target} IN ACCESS EXCLUSIVE MODE")
    if found := _asked(cursor, _HANGING.format(oid=oid)):
        raise DataError(
            f"a {found} hangs on the table and would be lost",
            where=where,
            expected="a table with nothing but names and privileges to carry over",
            fix="drop it and make it again after the release, or name another table under `release`",
        )


def _rename(cursor: Cursor, schema: str, old: str, new: str) -> None:
    cursor.execute(f"ALTER TABLE {quote(schema)}.{quote(old)} RENAME TO {quote(new)}")


def _remark(cursor: Cursor, schema: str, table: str, text: str) -> None:
    cursor.execute(f"COMMENT ON TABLE {quote(schema)}.{quote(table)} IS '{_OURS}{text}'")


def _copy_grants(cursor: Cursor, schema: str, table: str) -> None:
    """Whoever could use the version before can use this one."""
    oid = _oid(cursor, schema, table + PREVIOUS)
    if oid is None:
        return
    cursor.execute(
        "SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, "  # noqa: S608
        f"a.privilege_type, a.is_grantable FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = {oid}"
    )
    for grantee, privilege, grantable in cursor.fetchall():
        option = " WITH GRANT OPTION" if grantable and grantee != "PUBLIC" else ""
        cursor.execute(f"GRANT {privilege} ON {quote(schema)}.{quote(table)} TO {grantee}{option}")


def _oid(cursor: Cursor, schema: str, table: str) -> int | None:
    query = (
        "SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relname = $2"
    )
    found = _asked(cursor, query, (schema, table))
    return None if found is None else int(str(found))


def _remark_of(cursor: Cursor, schema: str, table: str) -> str:
    """The comment on a table; empty where there is none, or no table."""
    oid = _oid(cursor, schema, table)
    return str((oid and _asked(cursor, f"SELECT obj_description({oid}, 'pg_class')")) or "")


def _asked(cursor: Cursor, query: str, given: tuple[object, ...] | None = None) -> object:
    """The first cell of what a query finds; None where it finds nothing."""
    cursor.execute(query, given)
    rows = cursor.fetchall()
    return rows[0][0] if rows else None


def _commit(cursor: Cursor, where: str) -> None:
    """End the transaction; a server that is lost in this moment may or may not have done so."""
    try:
        with explained(where):
            cursor.execute("COMMIT")
    except Unavailable:
        raise ReleaseUncertain(
            "the server was lost while it replaced the table",
            where=where,
            expected="its word that it has",
            fix="release again when it is up: what is there already is left as it is",
        ) from None
