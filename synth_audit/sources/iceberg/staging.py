"""Rows that are to become an Iceberg table's: laid out, read back, and committed by whoever asked for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from synth_audit.core.errors import DataError
from synth_audit.core.fingerprint import fingerprint_of
from synth_audit.sources.iceberg.storage import iceberg_type, stored

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
