"""PostgreSQL tables, through ADBC: streamed as Arrow, read in one snapshot, replaced in one transaction."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from synth_audit.plugins.source import Connection, SourceInfo
from synth_audit.sources._files import LONGEST_WAIT, Streamed, parts_of, quote, refuse_unless_one
from synth_audit.sources.postgres import reading, writing


@dataclass(frozen=True, kw_only=True)
class Postgres(Streamed):
    """One table or query of a PostgreSQL database, under a connection of the plan.

    Rows are read in a read-only transaction of one snapshot. A release is staged, read back and compared with
    what was audited, and takes the place of the table in the same transaction; the version before stays
    beside it, under the table's name and ``__previous``. Names are taken as they stand: capital letters
    count, and nothing in them is SQL.

    Attributes:
        connection: one of the plan's ``connections``; its options are libpq's, or one ``uri`` as a secret.
        table: ``table`` or ``schema.table`` (``public`` if left out); double quotes around a part keep a dot
            inside it.
        query: a SELECT to read instead; cannot be written to.
        wait: seconds that a lock is waited for.

    Raises:
        ValueError: not exactly one of table and query is given, the table's name has more than two parts, or
            the wait is none, or longer than an hour.
    """

    connection: Connection
    table: str | None = None
    query: str | None = None
    wait: float = 30.0
    info: ClassVar[SourceInfo] = SourceInfo(
        title="PostgreSQL table",
        summary="A table or query of a PostgreSQL database, streamed; a release keeps the version before it.",
        transport=(
            *("wait", "connect_timeout", "tcp_user_timeout"),
            *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
            *("sslmode", "sslnegotiation", "sslcompression", "sslsni", "sslrootcert", "sslcrl", "sslcrldir"),
            *("ssl_min_protocol_version", "ssl_max_protocol_version", "gssencmode", "channel_binding"),
        ),
    )

    def __post_init__(self) -> None:
        refuse_unless_one(self.table, self.query, "{postgres: {connection: ..., table: ...}}")
        if not 0 < self.wait <= LONGEST_WAIT:
            raise ValueError(f"wait must lie between 0 and {LONGEST_WAIT} seconds")

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """Read the table or query; the rows come as they stream in.

        Raises:
            Unavailable: the server does not answer, a lock is not free in time, or the session was ended.
            DataError: nobody is let in under these settings, the table is not there or not to be read, the
                query is not one SELECT, or a column is of a type that cannot be audited.
        """
        if self.query is None:
            select = f"SELECT * FROM {'.'.join(map(quote, self._parts()))}"  # noqa: S608
        else:  # without the semicolon that may end it, and with an end to a comment that may
            select = self.query.strip().removesuffix(";") + "\n"
        with reading.session(self.connection, self.wait, self._where, read_only=True) as cursor:
            columns = reading.read_columns(cursor, select, self._where)
            yield from reading.batches(cursor, select, columns, self._where)

    def place(self, base: Path) -> tuple[str, ...]:
        """Server, database, schema and table, asked of the server: several addresses may lead to one."""
        with reading.session(self.connection, self.wait, self._where, read_only=True) as cursor:
            server = writing.place_of(cursor)
        return server if self.table is None else (*server, *self._parts())

    def refuse_types(self, schema: pa.Schema) -> None:
        """Raise ``DataError`` for a column, or a name, that PostgreSQL cannot hold."""
        writing.refuse_types(schema, self._where)
        if self.table is not None:
            writing.refuse_long_name(self._parts()[1], self._where)

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the table, wholly or not at all; return where it went.

        Raises:
            Unavailable: as :meth:`read`; what was there before is untouched.
            ReleaseUncertain: the server was lost in the moment of committing.
            DataError: this source is a query, what was staged is not what was to be released, or the table
                cannot be replaced without losing what hangs on it.
        """
        schema, table = self._parts()
        self.refuse_types(data.schema)
        with reading.session(self.connection, self.wait, self._where, read_only=False) as cursor:
            database = writing.place_of(cursor)[1]
            writing.replace_table(cursor, schema, table, data, self._where)
        return f"PostgreSQL, database {database}, table {schema}.{table}"

    def _parts(self) -> tuple[str, str]:
        return parts_of(self.table, "public", self._where)

    @property
    def _where(self) -> str:
        return f"PostgreSQL, table {self.table}" if self.table else "PostgreSQL, query"
