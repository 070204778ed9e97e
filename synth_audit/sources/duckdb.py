"""DuckDB database files."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from synth_audit.errors import DataError, Unavailable
from synth_audit.files import stays_in_memory
from synth_audit.plugins.source import SourceInfo, at_least_one, refuse_unkept
from synth_audit.sources import _files
from synth_audit.sources._files import LONGEST_WAIT, OnDisk, Streamed, parts_of, quote, refuse_unless_one
from synth_audit.table.arrow import decoded, value_type
from synth_audit.table.schema import check_names
from synth_audit.table.table import BATCH

_HARDENED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_MOST_DECIMAL_DIGITS = 38
"""Of the widest decimal."""

_SECONDS_BETWEEN = 0.1
"""Seconds between two attempts at a locked file."""

_INCOMING = "synth_audit_incoming"


@dataclass(frozen=True, kw_only=True)
class DuckDB(OnDisk, Streamed):
    """One table or query of a DuckDB file, opened without access to other files or the network.

    A release never replaces the table that the plan's source names, nor the file it is in. Which tables
    a query or a view reads is not worked out: a release into one of those would replace it.

    Attributes:
        path: the database file; a relative path starts at the plan's folder.
        table: ``table`` or ``schema.table``; double quotes around a part keep a dot inside it.
        query: a SELECT to read instead; cannot be written to.
        wait: seconds that a file which another program writes to is waited for.

    Raises:
        ValueError: the path is empty or a URL, not exactly one of table and query is given, the table's name
            has more than two parts, or the wait is negative or longer than an hour.
    """

    path: str
    table: str | None = None
    query: str | None = None
    wait: float = 10.0
    info: ClassVar[SourceInfo] = SourceInfo(
        title="DuckDB table",
        summary="A table or query of a DuckDB file; a release replaces the table in one transaction.",
        suffixes=(".duckdb", ".ddb"),
        transport=("wait",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless_one(self.table, self.query, "{duckdb: {path: ..., table: ...}}")
        if not 0 <= self.wait <= LONGEST_WAIT:
            raise ValueError(f"wait must lie between 0 and {LONGEST_WAIT} seconds")

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """Read the table or query by batches of at most 65,536 rows; relative paths start at ``base``.

        Raises:
            DataError: the file is missing, locked or no database, the table does not exist, or the
                query fails or returns no table.
        """
        import duckdb

        path = _files.existing(_files.locate(self.path, base), "DuckDB")
        with _connection(path, self.wait, read_only=True) as connection:
            try:
                chosen = self._select(connection)
                if chosen is None:
                    raise self._unreadable(path, "not one SELECT")
                check_names(chosen.columns, where=self._where(path))
                # DuckDB before 1.5 has the older name alone, which later ones deprecate.
                newer = hasattr(chosen, "to_arrow_reader")
                reader = (chosen.to_arrow_reader if newer else chosen.fetch_arrow_reader)(BATCH)
                yield from at_least_one(reader, reader.schema)
            except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
                raise self._unreadable(path, type(error).__name__) from None

    def place(self, base: Path) -> tuple[str, ...]:
        """File, schema and table; the file alone for a query. DuckDB ignores case in names."""
        names = parts_of(self.table, "main", "") if self.table else ()
        return (*super().place(base), *(name.casefold() for name in names))

    def refuse_types(self, schema: pa.Schema) -> None:
        """Raise ``DataError`` for a column of decimals with more digits than DuckDB has."""
        refuse_unkept(
            schema,
            lambda kind: not pa.types.is_decimal(kind) or kind.precision <= _MOST_DECIMAL_DIGITS,
            "DuckDB table",
            where=f"table {self.table}",
            expected=f"decimals of at most {_MOST_DECIMAL_DIGITS} digits",
        )

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the table with ``data`` in one transaction, making its schema if needed; return where.

        Half floats go into a column of single precision, wide decimals into one of as many digits.

        Raises:
            DataError: this source is a query, a column has a type that DuckDB lacks, or the file is locked,
                or cannot be written.
        """
        import duckdb

        path = _files.locate(self.path, base)
        parts_of(self.table, "main", str(path))
        self.refuse_types(data.schema)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _files.unwritable(path, "DuckDB", error) from None
        with _connection(path, self.wait, read_only=False) as connection:
            try:
                self._replace(connection, data)
            except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
                raise DataError(
                    f"the DuckDB table cannot be written ({type(error).__name__})",
                    where=self._where(path),
                    expected="a table (no view) that may be replaced, types that DuckDB has, free space",
                    fix="check the name, permissions and free space; what was there before is untouched",
                ) from None
        return self._where(path)

    def _select(self, connection: Any) -> Any:
        """The rows, still to be fetched; None when the query is anything but a single SELECT."""
        import duckdb

        query = self.query
        if query is None:
            query = f"SELECT * FROM {self._quoted(connection)[1]}"  # noqa: S608
        statements = connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return None
        return connection.sql(statements[0])

    def _replace(self, connection: Any, data: pa.Table) -> None:
        """Create schema and table in one transaction; an exception rolls both back."""
        schema, table = self._quoted(connection)
        rows = pa.table(list(map(_writable, data.columns)), names=data.column_names)
        connection.register(_INCOMING, rows)
        connection.begin()
        try:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM {_INCOMING}")  # noqa: S608
            connection.commit()
        except BaseException:  # an interruption too must leave the table as it was
            connection.rollback()
            raise

    def _quoted(self, connection: Any) -> tuple[str, str]:
        """Schema and table as SQL, each with the database before it.

        Without it `x.y` also means the table y of the main schema when the file is called x.duckdb.
        """
        name, table = parts_of(self.table, "main", "release")
        ((database,),) = connection.execute("SELECT current_database()").fetchall()
        schema = f"{quote(database)}.{quote(name)}"
        return schema, f"{schema}.{quote(table)}"

    def _where(self, path: Path) -> str:
        return f"{path}, table {self.table}" if self.table else f"{path}, query"

    def _unreadable(self, path: Path, reason: str) -> DataError:
        return DataError(
            f"the DuckDB {'table' if self.table else 'query'} cannot be read ({reason})",
            where=self._where(path),
            expected="an existing table" if self.table else "one SELECT over tables of this file",
            fix="try it in the DuckDB shell; other files, extensions and the network are shut off here",
        )


def _writable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in a type that DuckDB reads from Arrow: not half floats nor 256-bit decimals."""
    kind = value_type(values.type)
    if pa.types.is_float16(kind):
        return decoded(values).cast(pa.float32())
    if pa.types.is_decimal256(kind):
        return decoded(values).cast(pa.decimal128(kind.precision, kind.scale))
    return values


@contextmanager
def _connection(path: Path, wait: float, *, read_only: bool) -> Iterator[Any]:
    """A hardened connection, closed at the end of the block.

    Read-only and writing connections to one file cannot live side by side in a process, so none is
    kept open for longer than one call.
    """
    import duckdb

    try:
        connection = _opened(path, read_only, wait)
        connection.execute("SET TimeZone = 'UTC'")  # else zoned timestamps take this machine's zone
        connection.execute("SET lock_configuration = true")
    except (duckdb.Error, OSError, RuntimeError) as error:
        raise DataError(
            f"the DuckDB file cannot be opened ({type(error).__name__})",
            where=str(path),
            expected="a DuckDB file that no other program has locked, of a version this DuckDB reads",
            fix="close other connections to the file; check its permissions and that it is complete",
        ) from None
    try:
        yield connection
    finally:
        connection.close()


def _opened(path: Path, read_only: bool, wait: float) -> Any:
    """A connection; while another program holds the file it is tried again, for ``wait`` seconds at most."""
    import duckdb

    until = time.monotonic() + wait
    while True:
        try:
            spilling = {"temp_directory": ""} if stays_in_memory() else {}  # else it is beside the file
            return duckdb.connect(str(path), read_only=read_only, config=_HARDENED | spilling)
        except duckdb.IOException as error:
            if "Could not set lock" not in str(error):
                raise
            if time.monotonic() >= until:
                raise Unavailable(
                    "the DuckDB file is locked by another program",
                    where=str(path),
                    expected=f"a file that is free within {wait:g} seconds",
                    fix="close the connection that writes to it, run again later, or set a longer `wait`",
                ) from None
        time.sleep(_SECONDS_BETWEEN)
