"""Arrow files that are mapped into memory: values are read when they are looked at, and never copied."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from synth_audit.core.arrow_values import regular_floats
from synth_audit.core.errors import DataError
from synth_audit.core.files import scratch, temporary_folder

MOST_HELD = 2**23
"""Bytes of rows that are held in memory rather than put into a file."""

Key = tuple[Any, ...]
"""Where the values of a column lie in memory: equal keys of two columns at one time mean equal columns."""


@dataclass(frozen=True)
class Place:
    """Columns in a file.

    Attributes:
        positions: of the columns in the file. names: what they are called.
    """

    path: Path
    positions: tuple[int, ...]
    names: tuple[str, ...]

    def mapped(self) -> pa.Table:
        """The columns, without reading them.

        Raises:
            OSError: the file is gone.
        """
        whole = mapped(self.path)
        return pa.table([whole.column(i) for i in self.positions], names=list(self.names))

    def select(self, names: Sequence[str]) -> Place:
        """Some of the columns, in this order."""
        by_name = dict(zip(self.names, self.positions, strict=True))
        return Place(self.path, tuple(by_name[name] for name in names), tuple(names))


@dataclass(frozen=True, eq=False)
class PlacedRows:
    """Arrow data and, where they are mapped from a file that lasts, where that is."""

    data: pa.Table = field(repr=False)  # Arrow's own form prints cell values
    place: Place | None = None


def write_arrow(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a new file of mode 0600, holding one batch at a time.

    Raises:
        OSError: the file is there already, or cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file, pa.ipc.new_file(file, schema) as written:
        for batch in batches:
            written.write_batch(batch)


def mapped(path: Path) -> pa.Table:
    """The table in a file, without reading it; it stays readable when the file is deleted.

    Raises:
        OSError: the file is not there.
    """
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def kept(batches: Iterator[pa.RecordBatch], folder: Path | None) -> PlacedRows:
    """Rows in a mapped file of a private folder, floats as :func:`regular_floats` has them.

    Few rows, and those with columns of codes, whose labels may differ by batch, are held in memory.

    Args:
        batches: at least one.
        folder: deleted by its owner; while the file is there, processes of this machine map it too. None: the
            file is deleted at once, and goes when the table does; without :func:`scratch` it is none at all.

    Raises:
        DataError: the file cannot be written.
        OSError: whoever gives the batches raised it.
    """
    held, size = deque[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        size += batch.get_total_buffer_size()  # `nbytes` knows views of text from Arrow 24 on alone
        if size > MOST_HELD and not _coded(batch.schema) and (folder or scratch()):
            break
    else:
        return PlacedRows(pa.Table.from_batches(held))
    if folder is not None:
        path = _written(folder, held, batches)
        data = mapped(path)
        return PlacedRows(data, Place(path, tuple(range(data.num_columns)), tuple(data.column_names)))
    with temporary_folder() as own:
        return PlacedRows(mapped(_written(Path(own), held, batches)))


def _coded(schema: pa.Schema) -> bool:
    return any(pa.types.is_dictionary(kind) for kind in schema.types)


def _written(folder: Path, held: deque[pa.RecordBatch], others: Iterator[pa.RecordBatch]) -> Path:
    path = folder / f"{secrets.token_hex(8)}.arrow"
    schema = pa.schema([field.with_nullable(True) for field in held[0].schema])  # and without metadata
    first = (held.popleft() for _ in range(len(held)))
    failed: list[OSError] = []
    rows = chain(first, _noting(others, failed))
    try:
        write_arrow(path, schema, (_regular(batch, schema) for batch in rows))
    except OSError as error:
        if error in failed:
            raise
        raise DataError(
            f"rows cannot be put into scratch ({type(error).__name__})",
            where=str(folder),
            expected="a folder that can be written, with room for the table",
            fix="free space there, or name a workspace on another disk with --out",
        ) from None
    return path


def _noting(batches: Iterator[pa.RecordBatch], failed: list[OSError]) -> Iterator[pa.RecordBatch]:
    """The batches; what the system says to whoever gives them is noted: it is none of the file's."""
    try:
        yield from batches
    except OSError as error:
        failed.append(error)
        raise


def _regular(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        regular_floats(pa.chunked_array([c])).combine_chunks() if pa.types.is_floating(c.type) else c
        for c in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column_key(column: pa.ChunkedArray) -> Key:
    """Where the values of a column lie."""
    return (str(column.type), *(_chunk_key(chunk) for chunk in column.chunks))


def _chunk_key(chunk: pa.Array) -> Key:
    buffers = tuple(None if b is None else (b.address, b.size) for b in chunk.buffers())
    labels = _chunk_key(chunk.dictionary) if pa.types.is_dictionary(chunk.type) else ()
    return chunk.offset, len(chunk), buffers, labels


class Shelf:
    """Puts Arrow data into files of one folder, each column once.

    It holds what it has put there, so that nothing else comes to lie where their values are in memory.

    Args:
        folder: of mode 0700, deleted by its owner when nobody needs the files any more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Key, tuple[Path, int, pa.Table]] = {}

    def place(self, table: pa.Table) -> Place:
        """Where the table is, after writing it if it is nowhere.

        Raises:
            OSError: it could not be written. pa.ArrowException: no file can hold it.
        """
        keys = [_column_key(column) for column in table.columns]
        return self._found(table, keys) or self._written(table, keys)

    def _found(self, table: pa.Table, keys: list[Key]) -> Place | None:
        found = [self._known.get(key) for key in keys]
        paths = {place[0] for place in found if place}
        if None in found or len(paths) != 1:
            return None
        return Place(paths.pop(), tuple(place[1] for place in found if place), tuple(table.column_names))

    def _written(self, table: pa.Table, keys: list[Key]) -> Place:
        path = self._folder / f"{secrets.token_hex(8)}.arrow"
        whole = table.unify_dictionaries()
        write_arrow(path, whole.schema, whole.to_batches())
        self._known.update({key: (path, i, table) for i, key in enumerate(keys)})
        return Place(path, tuple(range(len(keys))), tuple(table.column_names))
