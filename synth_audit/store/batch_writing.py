"""Writes a Parquet file by batches, so that what is larger than memory can be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.core.errors import DataError
from synth_audit.core.table import Table
from synth_audit.store.workspace_files import write_atomically


def write_batches(path: Path, batches: Iterable[pa.Table], *, private: bool = False) -> Path:
    """Write a Parquet file by batches, in their order, holding one of them at a time; all or nothing.

    Raises:
        DataError: there is no batch, they differ in types, or the file could not be written.
    """
    remaining = iter(batches)
    first = [*itertools.islice(remaining, 1)]  # in a list, out of which it goes when it is written
    if not first:
        raise DataError("synthetic has no rows", where=str(path), expected="at least one row")
    schema = first[0].schema

    def write(temporary: Path) -> None:
        with pq.ParquetWriter(temporary, schema) as file:
            file.write_table(first.pop())
            for batch in remaining:
                file.write_table(_of_types(batch, schema, path))

    return write_atomically(path, write, private=private)


def write_parts(path: Path, parts: Iterable[Table]) -> Path:
    """Write a private Parquet file from the parts of one table; see :func:`write_batches`.

    Values of dictionaries are written out: one that no row uses would be in the file, and in no audit.
    """
    return write_batches(path, (_spelt_out(part.data) for part in parts), private=True)


def _spelt_out(data: pa.Table) -> pa.Table:
    kinds = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in data.schema]
    return data.cast(pa.schema(zip(data.column_names, kinds, strict=True)))


def _of_types(batch: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    try:
        if set(batch.column_names) != set(schema.names):  # one more would be lost before an audit sees it
            raise KeyError
        return batch.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError) as error:
        raise DataError(
            f"the batches of a table differ in their columns or types ({type(error).__name__})",
            where=str(path),
            expected="the same columns and types in every batch",
            fix="have the generator draw each column in the type that train has",
        ) from None
