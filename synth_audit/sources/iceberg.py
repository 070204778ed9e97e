"""Apache Iceberg tables, through their own library and any catalogue that it knows."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from synth_audit.errors import DataError, ReleaseUncertain, Unavailable
from synth_audit.plugins.source import Connection, SourceInfo, at_least_one, refuse_unkept
from synth_audit.sources._files import PART, Streamed, library, unquoted
from synth_audit.table.arrow import value_type
from synth_audit.table.content_hash import fingerprint, fingerprint_of
from synth_audit.table.schema import check_names

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

_CONTENT = "synth-audit.content"
"""Property of a snapshot that a release made: the content hash of its rows."""

_TABLE_NAME = re.compile(rf"(?:{PART})(?:\.(?:{PART}))+")

_CODE = "py-"
"""What options begin with that name Python code to run."""

_AWAY_ERRORS = {
    "ConnectionError",
    "ConnectTimeout",
    "InterfaceError",
    "ReadTimeout",
    "ServerError",
    "ServiceUnavailableError",
    "TooManyRequestsError",
}

_NOT_LOCKED = ("SQLITE_ERROR", "SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_READONLY")

_MISSING_ERRORS = ("NoSuchTableError", "NoSuchNamespaceError", "NoSuchIcebergTableError")

_LOST_RACE = ("CommitFailedException", "ValidationException", "TableAlreadyExistsError")
"""Of a commit that certainly changed nothing, as somebody else's came before it."""


def stored(data: pa.Table) -> pa.Table:
    """The same values in types that Iceberg has, in columns that may all lack values."""
    columns = [column.cast(stored_type(value_type(column.type))) for column in data.columns]
    return pa.table(columns, names=data.column_names)


def stored_type(kind: pa.DataType) -> pa.DataType | None:
    """The type in which Iceberg keeps a column; None where there is none that keeps all values."""
    if pa.types.is_timestamp(kind):
        return None if kind.unit == "ns" else pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_decimal128(kind):
        return kind if kind.scale >= 0 else None
    return _KINDS.get(kind)


def found_table(catalogue: Any, name: tuple[str, ...]) -> Any:
    """The table; None where there is none of that name."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return catalogue.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


def stage(catalogue: Any, name: tuple[str, ...], data: pa.Table, sha256: str) -> Any:
    """A transaction that replaces the rows, still to be committed; None where they are there already.

    Raises:
        DataError: what was staged is not what was to be released.
    """
    rows, found = stored(data), found_table(catalogue, name)
    if found is None:
        if not catalogue.namespace_exists(name[:-1]):
            catalogue.create_namespace(name[:-1])
        staged = catalogue.create_table_transaction(name, schema=rows.schema)
    else:
        if _holds(found, data.schema, sha256):
            return None
        # Tried again by the library a commit would go on top of rows that nobody has looked at.
        once = found.metadata.properties | {"commit.retry.num-retries": "0"}
        found.metadata = found.metadata.model_copy(update={"properties": once})
        staged = found.transaction()
        _replace_columns(staged, rows.schema)
        staged.delete("true", snapshot_properties={_CONTENT: "none"})
    staged.append(rows, snapshot_properties={_CONTENT: sha256})
    if _content(staged.table_metadata, staged._table.io, data.schema) != sha256:
        raise DataError(
            "what the table would hold is not what was audited",
            where=".".join(name),
            expected=f"content {sha256[:12]}",
            fix="release elsewhere: some column does not come back as it went; nothing was changed",
        )
    return staged


def _replace_columns(staged: Any, wanted: pa.Schema) -> None:
    """Give a table these columns and no others, where it has not.

    Raises:
        DataError: the table is partitioned, sorted or has a key, by columns that would not be there any more.
    """
    from pyiceberg.catalog import Catalog

    now = staged.table_metadata
    # The types that a new table would get.
    columns = [(x.name, x.field_type) for x in Catalog._convert_schema_if_needed(wanted).fields]
    if [(field.name, field.field_type) for field in now.schema().fields if field.optional] == columns:
        return
    bound = now.sort_order_by_id(now.default_sort_order_id)
    if not (now.spec().is_unpartitioned() and bound.is_unsorted and not now.schema().identifier_field_ids):
        raise DataError(
            "the table has other columns, and is partitioned, sorted or keyed by some of them",
            where="release",
            expected="a table of the columns that are released, or one that no layout hangs on",
            fix="release into a new table",
        )
    with staged.update_schema(allow_incompatible_changes=True) as update:
        for field in now.schema().fields:
            update.delete_column((field.name,))
        for name, kind in columns:
            update.add_column((name,), kind)


def _holds(table: Any, wanted: pa.Schema, sha256: str) -> bool:
    """True when the newest snapshot is of a release of these rows, and has them still."""
    newest = table.current_snapshot()
    if newest is None or newest.summary is None or newest.summary.get(_CONTENT) != sha256:
        return False
    try:
        return _content(table.metadata, table.io, wanted) == sha256
    except (DataError, pa.ArrowException):  # others have made another table of it
        return False


def _content(metadata: Any, files: Any, wanted: pa.Schema) -> str:
    """Content hash of a table's rows, in the types of what was audited where columns have the same names."""
    from pyiceberg.table import DataScan

    reader = DataScan(table_metadata=metadata, io=files).to_arrow_batch_reader()
    if reader.schema.names != wanted.names:
        return ""
    schema = pa.schema([(field.name, value_type(field.type)) for field in wanted])
    found = (pa.Table.from_batches([batch]).cast(schema) for batch in reader)
    return fingerprint_of([schema.empty_table(), *found])


@dataclass(frozen=True, kw_only=True)
class Iceberg(Streamed):
    """An Apache Iceberg table, read at one snapshot; a release is one commit that replaces its rows.

    The rows of a release are written to files that no snapshot knows, read back, compared with what was
    audited, and become the table's in one commit. Snapshots before it stay until somebody expires them:
    whoever may read the files may read earlier releases too. Takes ``pyiceberg`` (the extra ``iceberg``).

    Attributes:
        connection: one of the plan's ``connections``; its options are those of a catalogue of pyiceberg, such
            as ``type``, ``uri`` and ``warehouse``, with paths from the root. No file or variable of
            pyiceberg's own is looked at.
        table: ``namespace.table``, or more levels; double quotes around a part keep a dot inside it.
        catalog: name under which a database holds the catalogue, where it can hold several.

    Raises:
        ValueError: the table's name has no namespace, or a part that would lead out of the warehouse's
            folder, or an option names code to run.
    """

    connection: Connection
    table: str
    catalog: str = "default"
    info: ClassVar[SourceInfo] = SourceInfo(
        title="Iceberg table",
        summary="An Apache Iceberg table of any catalogue, read at one snapshot; a release is one commit.",
        transport=("s3.connect-timeout", "s3.request-timeout"),
    )

    def __post_init__(self) -> None:
        if not _TABLE_NAME.fullmatch(self.table):
            raise ValueError('table must read `namespace.table` or `"quoted.namespace"."quoted.table"`')
        if any("/" in part or part in (".", "..") or not part.isprintable() for part in self._parts()):
            raise ValueError(
                "a part of the table's name would lead out of the warehouse: it becomes a folder"
            )
        named = (*self.connection.options, *self.connection.secrets)
        if code := next((name for name in named if name.startswith(_CODE)), ""):
            raise ValueError(f"option {code!r} names code to run; a plan names options alone")

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """Read the newest snapshot by batches.

        Raises:
            Unavailable: the catalogue does not answer, or is locked.
            DataError: nobody is let in under these settings, or the table is missing or of a kind that the
                library does not read.
            PlanError: the library is not installed, or a secret is not set.
        """
        with self._catalogue() as catalogue, self._explained("read"):
            reader = catalogue.load_table(self._parts()).scan().to_arrow_batch_reader()
            check_names(reader.schema.names, where=self._where)
            yield from at_least_one(reader, reader.schema)

    def place(self, base: Path) -> tuple[str, ...]:
        """The table's own identity, as several catalogues may lead to it; its name where there is none."""
        with self._catalogue() as catalogue, self._explained("found"):
            found = found_table(catalogue, self._parts())
        if found is None:
            return ("Iceberg", self.connection.options.get("uri", ""), self.catalog, *self._parts())
        return ("Iceberg", str(found.metadata.table_uuid))

    def refuse_types(self, schema: pa.Schema) -> None:
        """Raise ``DataError`` for a column whose values no Iceberg table keeps."""
        refuse_unkept(
            schema,
            lambda kind: stored_type(kind) is not None,
            "Iceberg table",
            where=self._where,
            expected="numbers of at most 64 bits, decimals, text, booleans, dates, microseconds",
        )

    def write(self, data: pa.Table, base: Path) -> str:
        """Commit ``data`` as the table's next snapshot, wholly or not at all; return where it went.

        Rows that are there already, as after a kill, are left alone.

        Raises:
            Unavailable: as :meth:`read`, or another program committed at the same time.
            ReleaseUncertain: the catalogue was lost in the moment of committing.
            DataError: a column's type is refused, or what was staged is not what was to be released.
        """
        self.refuse_types(data.schema)
        sha256 = fingerprint(data)
        with self._catalogue() as catalogue, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library: that there was nothing to delete
            with self._explained("written"):
                staged = stage(catalogue, self._parts(), data, sha256)
            if staged is not None:
                self._commit(staged)
        return f"Iceberg, {self._where}"

    def _commit(self, staged: Any) -> None:
        try:
            staged.commit_transaction()
        except Exception as error:  # of the library, the catalogue's driver or the network
            if _name(error) in _LOST_RACE or _is_locked(error):
                raise Unavailable(
                    "another program changes the table, or locks the catalogue, at the same time",
                    where=self._where,
                    expected="that nobody else commits while a release does",
                    fix="release again; what was there before is untouched",
                ) from None
            raise ReleaseUncertain(
                f"the catalogue was lost while it took the release ({_name(error)})",
                where=self._where,
                expected="its word that it has",
                fix="release again when it is up: what is there already is left as it is",
            ) from None

    def _parts(self) -> tuple[str, ...]:
        return tuple(map(unquoted, re.findall(PART, self.table)))

    @property
    def _where(self) -> str:
        return f"table {self.table}"

    @contextmanager
    def _catalogue(self) -> Iterator[Any]:
        catalogues = library(
            "pyiceberg.catalog",
            "the library for Iceberg",
            extra="iceberg",
            where="iceberg",
            expected="the package pyiceberg",
        )
        # A catalogue that is not there is a slip of the pen; none is made in its place.
        settings = {"init_catalog_tables": "false"} | self.connection.settings()
        with self._explained("reached"):
            kind = settings.get("type") or catalogues.infer_catalog_type(self.catalog, settings)
            opened = catalogues.AVAILABLE_CATALOGS[catalogues.CatalogType(kind)](self.catalog, settings)
        try:
            yield opened
        finally:
            with suppress(Exception):  # of a session that is lost
                opened.close()

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Tell failures without a word of the library's own, which may quote cells or secrets."""
        try:
            yield
        except DataError:
            raise
        except Exception as error:  # there is no common one
            reason = _name(error)
            away = reason in _AWAY_ERRORS or _is_locked(error)
            what = (
                "there is no such table"
                if reason in _MISSING_ERRORS
                else f"the table cannot be {done} ({reason})"
            )
            raise (Unavailable if away else DataError)(
                what,
                where=self._where,
                expected="a catalogue that answers and lets this role in, and a table that pyiceberg knows",
                fix="check the connection's options and the name; nothing was changed",
            ) from None


def _is_locked(error: BaseException) -> bool:
    """True when a database of SQL is locked or away, and not when it has no such table or lets nobody in."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorname", "")
    return _name(error) == "OperationalError" and not code.startswith(_NOT_LOCKED)


def _name(error: BaseException) -> str:
    return type(error).__name__
