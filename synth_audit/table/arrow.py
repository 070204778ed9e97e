"""Arrow values as numbers and labels, Arrow files mapped into memory, and families of Arrow types."""

import os
import pickle
import re
import secrets
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Positions
from synth_audit.errors import DataError
from synth_audit.files import scratch, temporary_folder

_EXACT_POWER = 22
"""Greatest power of ten that float64 holds."""

_WHOLE_SINGLES = 2.0**24
"""From here on all numbers with 32 bits are whole."""

MOST_HELD = 2**23
"""Bytes of rows that are held in memory rather than put into a file."""

_END = b"\xff\xff\xff\xff\0\0\0\0"
"""How a stream of Arrow ends. Without it Arrow takes what is there for the whole."""

_RUN = 2**16
"""Rows that are sorted at a time."""

_ROW_GROUP = 2**20
"""Rows of a row group of Parquet as Arrow writes it."""

Key = tuple[Any, ...]
"""Where the values of a column lie in memory: equal keys of two columns at one time mean equal columns."""

WRITTEN_AS = "__index_level_0__"
"""What an index without a name is called in Parquet."""

_UNNAMED = re.compile(r"__index_level_\d+__|Unnamed: 0")
"""The names that Parquet files have it under, and that pandas reads back from CSV."""


def is_text(kind: pa.DataType) -> bool:
    """True for text in any layout; not for text behind a dictionary."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """True for bytes in any layout that Arrow compares and hashes."""
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def is_datetime(kind: pa.DataType) -> bool:
    """True for dates and timestamps."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of values that a dictionary may stand for."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values without the dictionary that may stand for them."""
    return values.cast(value_type(values.type))


def labels_of(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as text labels, missing as null; whole numbers read as integers, so 1, 1.0 and 1.00 agree."""
    values = decoded(values)
    if pa.types.is_decimal(values.type) and values.type.scale:
        values = nearest_floats(values)
    kind = values.type
    if pa.types.is_floating(kind):
        return _float_labels(values)
    if pa.types.is_duration(kind):
        values = values.cast(pa.int64())
    if is_binary(kind):
        hexed = [None if x is None else x.hex() for x in values.to_pylist()]
        return pa.chunked_array([pa.array(hexed, pa.string())])
    return values.cast(pa.string())


def values_of(labels: pa.StringArray, storage: pa.DataType) -> pa.Array:
    """Labels in the type that :func:`labels_of` read them from."""
    if pa.types.is_null(storage):
        return pa.nulls(len(labels))
    if pa.types.is_dictionary(storage):
        return values_of(labels, storage.value_type).dictionary_encode().cast(storage)
    if pa.types.is_decimal(storage) and storage.scale:
        return decimals_of(labels.cast(pa.float64()), storage)
    if pa.types.is_duration(storage):
        return labels.cast(pa.int64()).cast(storage)
    if pa.types.is_time(storage):  # Arrow reads times of a day from text with a day alone
        moments = pc.binary_join_element_wise("1970-01-01", labels, " ").cast(pa.timestamp(storage.unit))
        return moments.cast(storage)
    if is_binary(storage):
        return pa.array([None if x is None else bytes.fromhex(x) for x in labels.to_pylist()], storage)
    return labels.cast(storage)


def n_distinct(values: pa.ChunkedArray) -> int:
    """How many values a column has, of a dictionary those that rows have; missing is none of them."""
    return 0 if pa.types.is_null(values.type) else int(pc.count_distinct(decoded(values)).as_py())


def nearest_floats(decimals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as the float64 that their digits are read as; Arrow's own cast is one beside it for many."""
    return pa.chunked_array([_nearest_floats(chunk) for chunk in decimals.chunks], pa.float64())


def _nearest_floats(decimals: pa.Array) -> pa.Array:
    kind = decimals.type
    if pa.types.is_decimal128(kind) and kind.scale <= _EXACT_POWER and len(decimals):
        words = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)
        low, high = words[decimals.offset : decimals.offset + len(decimals)].T
        missing = decimals.is_null().to_numpy(zero_copy_only=False)
        if np.all(missing | ((high == low >> 63) & (np.abs(low) <= 2**53))):
            return pa.array(low / 10.0**kind.scale, mask=missing)  # of two exact numbers, so rounded once
    return decimals.cast(pa.string()).cast(pa.float64())


def decimals_of(floats: pa.Array, storage: pa.DataType) -> pa.Array:
    """Floats rounded to decimals, of those that read as the same float the one of fewest digits."""
    near = pa.chunked_array([floats.cast(storage, safe=False)])
    return nearest_floats(near).cast(pa.string()).cast(storage).combine_chunks()


def numbers_of(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as float64, missing as null.

    Decimals and numbers with 32 bits are what their digits are read as.
    """
    if pa.types.is_decimal(values.type):
        return nearest_floats(values)
    if pa.types.is_float32(values.type):
        return _shortest(values)
    return values.cast(pa.float64(), safe=False)


def _shortest(singles: pa.ChunkedArray) -> pa.ChunkedArray:
    """Of numbers with 32 bits the decimals of fewest digits that stand for them: 36.6, and not 36.5999985.

    So a table has the same numbers before and after it was written as text, or from such.
    """
    exact = singles.cast(pa.float64())
    fractions = pc.less(pc.abs(exact), pa.scalar(_WHOLE_SINGLES))
    return pc.if_else(fractions, singles.cast(pa.string()).cast(pa.float64()), exact)


def in_microseconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as timestamps of one unit, in the zone that they have."""
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    return values.cast(pa.timestamp("us", tz=zone), safe=False)


def nan_as_missing(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values with every NaN as null."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def regular_floats(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats with null for NaN and 0.0 for -0.0; the values themselves where they hold neither."""
    if pc.any(pc.is_nan(values)).as_py():
        values = nan_as_missing(values)
    return _unsigned_zeros(values) if any(map(_signed_zero, values.chunks)) else values


def _unsigned_zeros(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_float16(values.type):  # for which Arrow has no arithmetic
        return _unsigned_zeros(values.cast(pa.float32())).cast(pa.float16())
    return pc.add(values, pa.scalar(0.0, values.type))


def _signed_zero(values: pa.Array) -> bool:
    """Whether some value is -0.0, or lies as such under a null."""
    if not len(values):
        return False
    kind = values.type.to_pandas_dtype()
    raw = np.frombuffer(values.buffers()[1], kind)[values.offset : values.offset + len(values)]
    return bool((np.signbit(raw) & (raw == 0)).any())


def _float_labels(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    values = nan_as_missing(values)
    exact = pc.less_equal(pc.abs(values), pa.scalar(2.0**53, values.type))
    whole = pc.and_(exact, pc.equal(pc.round(values), values))
    integers = pc.if_else(whole, values, pa.scalar(None, values.type)).cast(pa.int64())
    return pc.if_else(whole, integers.cast(pa.string()), values.cast(pa.string()))


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

    def select(self, names: Sequence[str]) -> "Place":
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
    # A stream, since labels of codes may differ by batch, which the format of a file does not allow.
    with _private(path) as file, pa.ipc.new_stream(file, schema) as written:
        for batch in batches:
            written.write_batch(batch)


def _private(path: Path) -> BinaryIO:
    """A new file of mode 0600, to be written."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def mapped(path: Path) -> pa.Table:
    """The table in a file, without reading it; it stays readable when the file is deleted.

    Raises:
        OSError: the file is not there, or was cut.
    """
    with pa.memory_map(str(path)) as file:
        size = file.size()
        if size < len(_END) or file.read_at(len(_END), size - len(_END)) != _END:
            raise OSError("a file of rows was cut")
        return pa.ipc.open_stream(file).read_all()


def kept(batches: Iterator[pa.RecordBatch], folder: Path | None, most: int | None = None) -> PlacedRows:
    """Rows in a mapped file of a private folder, floats as :func:`regular_floats` has them.

    Few rows are held in memory.

    Args:
        batches: at least one.
        folder: deleted by its owner; while the file is there, processes of this machine map it too. None: the
            file is deleted at once, and goes when the table does; without :func:`scratch` it is none at all.
        most: bytes that are held in memory; :data:`MOST_HELD` if left out.

    Raises:
        DataError: the file cannot be written.
        OSError: whoever gives the batches raised it.
    """
    held, size = deque[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        size += batch.get_total_buffer_size()  # `nbytes` knows views of text from Arrow 24 on alone
        if size > (MOST_HELD if most is None else most) and (folder or scratch()):
            break
    else:
        return PlacedRows(pa.Table.from_batches(held))
    if folder is not None:
        path = _written(folder, held, batches)
        data = mapped(path)
        return PlacedRows(data, Place(path, tuple(range(data.num_columns)), tuple(data.column_names)))
    with temporary_folder() as own:
        return PlacedRows(mapped(_written(Path(own), held, batches)))


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
            fix="free space there; `--out` names a place on another disk, unless rows must stay in memory",
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


def batches_of(rows: pa.Table) -> list[pa.RecordBatch]:
    """Rows in one chunk as batches: one at least, which is empty where there is no row."""
    return rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]


@dataclass(frozen=True, eq=False)
class SortedRuns:
    """Rows that are being put into another order by an external merge sort.

    Attributes:
        data: runs of 65,536 rows, of which each is in that order, in scratch where they are many.
        ranks: place of each of these rows in the order, shape (n,).
    """

    data: pa.Table
    ranks: Positions

    @classmethod
    def of(
        cls, data: pa.Table, order: Positions, read: Callable[[pa.Table], pa.Table] = lambda part: part
    ) -> Self:
        """Sort the runs.

        Args:
            order: positions of the rows in the order that they shall have. read: applied to each run before.
        """
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))

        def runs() -> Iterator[pa.RecordBatch]:
            for start in range(0, max(1, len(ranks)), _RUN):
                own = ranks[start : start + _RUN]
                part = read(data.slice(start, _RUN)).combine_chunks().take(pa.array(np.argsort(own)))
                own.sort()
                yield from batches_of(part)

        return cls(kept(runs(), None).data, ranks)

    def batches(self, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows in their order, ``size`` at a time."""
        n = max(1, len(self.ranks))
        rows, starts = self.data.select(names), range(0, n, _RUN)
        for first in range(0, n, size):
            wanted = (first, first + size)
            parts = [s + np.searchsorted(self.ranks[s : s + _RUN], wanted) for s in starts]
            places = np.concatenate([self.ranks[low:high] for low, high in parts]) - first
            order = np.empty_like(places)
            order[places] = np.arange(len(places))
            part = pa.concat_tables([rows.slice(low, high - low) for low, high in parts])
            yield from batches_of(part.combine_chunks().take(pa.array(order)))

    def table(self) -> pa.Table:
        """All rows in their order, each column in a file of its own.

        Chunks are as long as row groups of Parquet, so that its bytes are those of a table in one chunk.
        """
        most = MOST_HELD // max(1, self.data.num_columns)
        names = self.data.column_names
        return pa.table({n: kept(self.batches([n], _ROW_GROUP), None, most).data.column(n) for n in names})


def _chunk_key(chunk: pa.Array) -> Key:
    buffers = tuple(None if b is None else (b.address, b.size) for b in chunk.buffers())
    labels = _chunk_key(chunk.dictionary) if pa.types.is_dictionary(chunk.type) else ()
    return chunk.offset, len(chunk), buffers, labels


class Shelf:
    """Puts Arrow data into files of one folder, each column once, and other values, each once.

    It holds what it has put there, so that nothing else comes to lie where their values are in memory.

    Args:
        folder: of mode 0700, deleted by its owner when nobody needs the files any more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Key, tuple[Path, int, pa.Table]] = {}
        self._pickled: dict[int, tuple[Path, object]] = {}

    def place(self, table: pa.Table) -> Place:
        """Where the table is, after writing it if it is nowhere.

        Raises:
            OSError: it could not be written. pa.ArrowException: no file can hold it.
        """
        keys = [(str(column.type), *map(_chunk_key, column.chunks)) for column in table.columns]
        return self._found(table, keys) or self._written(table, keys)

    def pickled(self, value: object) -> Path:
        """Where a value is, after writing it if it is nowhere.

        Raises:
            OSError: it could not be written. Exception: it cannot be pickled.
        """
        if id(value) not in self._pickled:
            path = self._folder / f"{secrets.token_hex(8)}.pickle"
            with _private(path) as file:
                pickle.dump(value, file, pickle.HIGHEST_PROTOCOL)
            self._pickled[id(value)] = path, value
        return self._pickled[id(value)][0]

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


def index_columns(names: Iterable[str], declared: Collection[str] = ()) -> tuple[str, ...]:
    """The columns that are an index without a name, and that no plan declares as a column of the table.

    Row numbers of a release that was cut from train would name the rows it was made of, and those of train
    look like numbers that no generator can follow. So they are read in no table.
    """
    return tuple(name for name in names if _UNNAMED.fullmatch(name) and name not in declared)


def microseconds(moment: date | datetime) -> float:
    """Microseconds since 1970 (UTC); a date is its first moment, a time without a zone is UTC."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6
