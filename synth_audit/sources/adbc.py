"""Any warehouse that has an ADBC driver, such as Snowflake or BigQuery: to read from."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from synth_audit.errors import DataError, Unavailable
from synth_audit.plugins.source import Connection, SourceInfo, at_least_one
from synth_audit.sources._files import Streamed, library, refuse_unless_one
from synth_audit.table.schema import check_names

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

_OWN_SOURCES = ("postgres", "duckdb")
"""Servers that have a source of their own, which knows where its tables are."""

_READ_ONLY_OPTION = "adbc.connection.readonly"
_AWAY_STATUS = ("IO", "TIMEOUT", "CANCELLED")


@dataclass(frozen=True, kw_only=True)
class Adbc(Streamed):
    """A table or query of any database, read through its ADBC driver and streamed as Arrow.

    What the database's own role may do decides what can be read: give it one that only reads. Whether several
    queries see one snapshot is the database's matter; a single one is made here.

    Attributes:
        connection: one of the plan's ``connections``, with the driver's own options.
        driver: name of an installed driver, such as ``snowflake``, or the path of its library.
        entrypoint: function of that library that starts it, where it has an unusual name.
        table: name as SQL takes it, quotes included; it stands in the query as it is.
        query: a SELECT to read instead.

    Raises:
        ValueError: not exactly one of table and query is given, or the driver is of a database that has a
            source of its own.
    """

    connection: Connection
    driver: str
    entrypoint: str | None = None
    table: str | None = None
    query: str | None = None
    info: ClassVar[SourceInfo] = SourceInfo(
        title="ADBC query",
        summary="A table or query of any database with an ADBC driver, streamed; takes no release.",
        transport=tuple(
            f"adbc.snowflake.sql.client_option.{name}_timeout" for name in ("login", "request", "client")
        ),
    )

    def __post_init__(self) -> None:
        refuse_unless_one(self.table, self.query, "{adbc: {connection: ..., driver: ..., query: ...}}")
        if own := next((name for name in _OWN_SOURCES if name in Path(self.driver).name.lower()), ""):
            raise ValueError(f"there is a source for this database: write `{own}`, which also takes releases")

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """Read the table or query; the rows come as they stream in.

        Raises:
            Unavailable: the database does not answer.
            DataError: the driver or the database refuses what is asked.
            PlanError: the driver cannot be loaded, or a secret is not set.
        """
        select = self.query if self.query is not None else f"SELECT * FROM {self.table}"  # noqa: S608
        with self._cursor() as cursor:
            cursor.execute(select)
            with cursor.fetch_record_batch() as reader:
                check_names(reader.schema.names, where=self._where)
                yield from at_least_one(reader, reader.schema)

    @property
    def _where(self) -> str:
        return f"{self.driver}, {f'table {self.table}' if self.table else 'query'}"

    @contextmanager
    def _cursor(self) -> "Iterator[Cursor]":
        """A cursor; no failure is told in the driver's words, which may quote cells or secrets."""
        opened = self._connected()
        try:
            from adbc_driver_manager import Error

            try:
                with suppress(Error):  # few drivers know how
                    opened.adbc_connection.set_options(**{_READ_ONLY_OPTION: "true"})
                with opened.cursor() as cursor:
                    yield cursor
            except (Error, OSError, pa.ArrowException) as error:
                raise self._failure(error) from None
        finally:
            with suppress(Exception):  # of a session that is lost
                opened.close()

    def _connected(self) -> Any:
        settings = self.connection.settings()
        dbapi = library(
            "adbc_driver_manager.dbapi",
            "ADBC",
            extra="warehouse",
            where="source, adbc",
            expected="the packages of the extra `warehouse`",
        )
        try:
            return dbapi.connect(driver=self.driver, entrypoint=self.entrypoint, db_kwargs=settings)
        except dbapi.Error as error:
            raise DataError(
                f"no session through the driver ({_status(error)})",
                where=self._where,
                expected="an installed driver, and options and secrets that it accepts",
                fix="check `driver`, and the connection's options; `docs/warehouses.md` has examples",
            ) from None

    def _failure(self, error: BaseException) -> DataError:
        status = _status(error)
        away = status in _AWAY_STATUS or isinstance(error, OSError)
        return (Unavailable if away else DataError)(
            f"the rows cannot be read ({status})",
            where=self._where,
            expected="one SELECT over tables that this role may read, and a database that answers",
            fix="try it in the database's own client with the same role",
        )


def _status(error: BaseException) -> str:
    code = getattr(error, "status_code", None)
    return str(getattr(code, "name", None) or type(error).__name__)
