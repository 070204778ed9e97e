"""Rows that are to become an Iceberg table's: how columns are stored, laid out, read back and committed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from synth_audit.errors import DataError
from synth_audit.table.content_hash import fingerprint_of

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


_CONTENT = "synth-audit.content"
"""Property of a snapshot that a release made: the content hash of its rows."""


def existing(catalogue: Any, name: tuple[str, ...]) -> Any:
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
    rows, found = stored(data), existing(catalogue, name)
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
    now = staged.table_metadata
    columns = [(field.name, iceberg_type(field.type)) for field in wanted]
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
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in wanted.types]
    schema = pa.schema(list(zip(wanted.names, kinds, strict=True)))
    found = (pa.Table.from_batches([batch]).cast(schema) for batch in reader)
    return fingerprint_of([schema.empty_table(), *found])
