"""Arrow files that are mapped into memory: values are read when they are looked at, and never copied."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

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
        table = pa.ipc.open_file(file).read_all()
    known = [column_key(column) for column in table.columns]
    _MAPPED.update({key: (path, i) for i, key in enumerate(known)})
    weakref.finalize(table, _forget, known)  # what lies there afterwards may be anything
    return table


_MAPPED: dict[Key, tuple[Path, int]] = {}
"""In which file the columns of mapped tables are, and which of its columns they are."""


def _forget(keys: list[Key]) -> None:
    for key in keys:
        _MAPPED.pop(key, None)


def column_key(column: pa.ChunkedArray) -> Key:
    """Where the values of a column lie."""
    return (str(column.type), *(_chunk_key(chunk) for chunk in column.chunks))


def _chunk_key(chunk: pa.Array) -> Key:
    buffers = tuple(b and (b.address, b.size) for b in chunk.buffers())
    labels = _chunk_key(chunk.dictionary) if pa.types.is_dictionary(chunk.type) else ()
    return chunk.offset, len(chunk), buffers, labels


class Shelf:
    """Puts tables into files of one folder, each once; columns that are in a mapped file stay where they are.

    Args:
        folder: of mode 0700, deleted by its owner when nobody needs the files any more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Key, tuple[Path, int]] = {}
        self._tables: list[pa.Table] = []  # held, so that nothing else comes to lie where their values are

    def place(self, table: pa.Table) -> Place:
        """Where the table is, after writing it if it is nowhere.

        Raises:
            OSError: it could not be written. pa.ArrowException: no file can hold it.
        """
        keys = [column_key(column) for column in table.columns]
        return self._found(table, keys) or self._written(table, keys)

    def _found(self, table: pa.Table, keys: list[Key]) -> Place | None:
        found = [self._known.get(key) or _MAPPED.get(key) for key in keys]
        paths = {place[0] for place in found if place}
        if None in found or len(paths) != 1 or not (path := paths.pop()).exists():
            return None
        return Place(path, tuple(place[1] for place in found if place), tuple(table.column_names))

    def _written(self, table: pa.Table, keys: list[Key]) -> Place:
        path = self._folder / f"{len(self._tables)}.arrow"
        whole = table.unify_dictionaries()
        write_arrow(path, whole.schema, whole.to_batches())
        self._tables.append(table)
        self._known.update({key: (path, i) for i, key in enumerate(keys)})
        return Place(path, tuple(range(len(keys))), tuple(table.column_names))
