"""The content hash of a table: independent of row and column order, aware of types and missing values.

Digests of rows are sorted, which holds 32 bytes a row: a sum of them that holds none (a lattice hash such as
LtHash) takes 2.6 to 3 times as long.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.errors import DataError
from synth_audit.hashing import KeyedHash
from synth_audit.table.arrow import (
    SortedRuns,
    decoded,
    is_binary,
    is_text,
    nan_as_missing,
    regular_floats,
    value_type,
)

Bytes = npt.NDArray[np.uint8]

DIGEST = 32
"""Bytes of a row's digest."""

_BATCH = 2**16
"""Rows whose bytes are held at a time."""

_EMPTY = hashlib.sha256()

_UNITS = ("s", "ms", "us", "ns")

_DICTIONARY = re.compile(r"dictionary<values=([^,]+), .*>")

_TIMED = re.compile(r"(?:timestamp|time32|time64)\[(s|ms|us|ns)(?:, tz=(.+))?\]")


def fingerprint(data: pa.Table) -> str:
    """SHA-256 over the column names and types and the sorted SHA-256 digests of all rows.

    Two tables agree exactly when they hold the same multiset of rows under the same names and types.
    Representations that cannot be told apart after a round trip through a file or warehouse (large
    or dictionary-encoded text, the unit of a date, time or timestamp, the name of a timestamp's zone,
    NaN and null, 0.0 and -0.0) count as equal. A timestamp with a zone is an instant, and no timestamp
    without one.

    Raises:
        DataError: a column is nested, or of another type whose values have no canonical bytes.
    """
    return content_hash(data.schema, data.num_rows, row_digests(data))


def fingerprint_of(batches: Iterable[pa.Table]) -> str:
    """:func:`fingerprint` of rows by batches of the same columns, of which one is held at a time.

    Args:
        batches: at least one.
    """
    digests, n_rows = bytearray(), 0  # which grows in place
    for batch in batches:
        digests += row_digests(batch).data
        n_rows += batch.num_rows
    return content_hash(batch.schema, n_rows, np.frombuffer(digests, np.uint8).reshape(-1, DIGEST))


def content_hash(schema: pa.Schema, n_rows: int, digests: Bytes) -> str:
    """The fingerprint of a table from the digests of its rows in any order, which are sorted in place."""
    header = "\x1e".join(f"{name}\x1f{_type_name(schema.field(name).type)}" for name in sorted(schema.names))
    total = hashlib.sha256(f"{n_rows}\x1d{header}\x1d".encode())
    _as_texts(digests).sort()
    total.update(digests.data)
    return total.hexdigest()


def content_order(digests: Bytes) -> npt.NDArray[np.intp]:
    """Positions of the rows in the order of their digests, which is the same for any order of the rows."""
    return np.argsort(_as_texts(digests), kind="stable")


def _as_texts(digests: Bytes) -> npt.NDArray[np.bytes_]:
    return digests.view(f"S{DIGEST}").ravel()


def row_digests(data: pa.Table, into: Bytes | None = None) -> Bytes:
    """SHA-256 of each row's values, in the order of the rows, the same for what counts as equal.

    Args:
        into: array to be filled.

    Returns:
        Shape (n, 32); (0, 32) for a table without columns.

    Raises:
        DataError: a column has no content hash.
    """
    names = sorted(data.column_names)
    found = np.empty((data.num_rows if names else 0, DIGEST), dtype=np.uint8) if into is None else into
    for start in range(0, len(found), _BATCH):
        part = data.slice(start, _BATCH)
        rows = np.hstack([x for n in names for x in _canonical(n, part.column(n))])
        width, held, every = rows.shape[1], rows.tobytes(), []
        for i in range(0, len(held), width):
            state = _EMPTY.copy()  # in half the time that it takes to make one
            state.update(held[i : i + width])
            every.append(state.digest())
        found[start : start + _BATCH] = _as_bytes(every)
    return found


def _as_bytes(digests: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, DIGEST)


def _type_name(kind: pa.DataType) -> str:
    kind = value_type(kind)
    if is_text(kind):
        return "text"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_time(kind):
        return "time"
    if pa.types.is_timestamp(kind):
        return "timestamp[UTC]" if kind.tz else "timestamp[]"
    return str(kind)


def _canonical(name: str, values: pa.ChunkedArray) -> tuple[Bytes, Bytes]:
    """Canonical bytes of a column: a missing flag, shape (n, 1), and the value, shape (n, width).

    Raises:
        DataError: it has none; the error names the column and shows none of its values.
    """
    kind = values.type
    try:
        values = nan_as_missing(decoded(values))
        missing = np.asarray(pc.is_null(values).to_numpy(), dtype=np.uint8)[:, None]
        return missing, _value_bytes(values) * (1 - missing)
    except pa.ArrowException:
        pass  # so that the error below has no context
    raise DataError(
        f"column {name!r} has type {kind}, which has no content hash",
        where=name,
        expected="numbers, text, booleans, dates, times or timestamps",
        fix=f"cast or drop {name!r} at its source",
    )


def _value_bytes(values: pa.ChunkedArray) -> Bytes:
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_signed_integer(kind):
        return _words(values.cast(pa.int64()).fill_null(0).to_numpy())
    if pa.types.is_unsigned_integer(kind):
        return _words(values.cast(pa.uint64()).fill_null(0).to_numpy())
    if pa.types.is_floating(kind):
        return _words(values.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0)
    if pa.types.is_timestamp(kind):
        seconds = values.cast(pa.timestamp("s", tz=kind.tz), safe=False)
        rest = pc.subtract(values, seconds.cast(kind)).cast(pa.duration("ns"))
        parts = (_words(x.cast(pa.int64()).fill_null(0).to_numpy()) for x in (seconds, rest))
        return np.hstack(list(parts))
    if pa.types.is_time(kind):
        return _words(values.cast(pa.time64("ns")).cast(pa.int64()).fill_null(0).to_numpy())
    return _text_bytes(values)


def _words(values: npt.NDArray[np.generic]) -> Bytes:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


def _text_bytes(values: pa.ChunkedArray) -> Bytes:
    """Digest each distinct text once: 32 bytes a row. Days are written out when they are told apart."""
    days = pa.types.is_date(values.type)
    if not (days or is_binary(values.type)):
        values = values.cast(pa.large_string())
    encoded = values.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    distinct = encoded.dictionary.cast(pa.large_string()) if days else encoded.dictionary
    digests = [hashlib.sha256(value).digest() for value in distinct.cast(pa.large_binary()).to_pylist()]
    lookup = np.frombuffer(b"".join(digests) or bytes(32), dtype=np.uint8).reshape(-1, 32)
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    rows: Bytes = lookup[codes]
    return rows


def canonical(data: pa.Table, storage: Mapping[str, str], key: bytes) -> pa.Table:
    """The table that stands for all tables of this content: same content hash, same bytes in any file.

    Rows are ordered by the HMAC-SHA256 of their digests, columns as in ``storage`` and what is not there by
    name. Text, dates, times and timestamps take the layout, unit and zone that ``storage`` names, a finer
    unit where they would lose something; NaN becomes null, -0.0 becomes 0.0. Numbers keep types and digits.

    Args:
        storage: Arrow types of train's columns as text, in its order of columns.
        key: of the order; who does not know it cannot arrange rows so that their order says something.

    Raises:
        DataError: a column has no content hash.
    """
    names = [n for n in storage if n in data.column_names]
    names += sorted(set(data.column_names) - set(names))
    keyed, digests = KeyedHash(key), row_digests(data)
    for start in range(0, len(digests), _BATCH):
        part = digests[start : start + _BATCH]
        part[:] = _as_bytes([keyed(row.tobytes()) for row in part])
    order = content_order(digests)
    del digests
    stored = {n: storage.get(n, "") for n in names}
    # All values of a column decide on its unit, those of a batch do not.
    stored |= {n: str(_plain(data.column(n), stored[n]).type) for n in names if _is_timed(data.column(n))}
    # Taken into new arrays, which leave behind what lay under nulls, and how the rows were cut into chunks.
    runs = SortedRuns.of(data, order, lambda part: pa.table({n: _plain(part[n], stored[n]) for n in names}))
    return runs.table()


def _plain(values: pa.ChunkedArray, stored: str) -> pa.ChunkedArray:
    values = decoded(values)
    stored = found[1] if (found := _DICTIONARY.fullmatch(stored)) else stored
    kind = values.type
    if pa.types.is_floating(kind):
        return regular_floats(values)
    if is_text(kind):
        return values.cast(pa.large_string() if stored == "large_string" else pa.string())
    if pa.types.is_date(kind):
        whole = values.cast(pa.date32(), safe=False)
        return whole.cast(pa.date64()) if stored.startswith("date64") else whole
    return _timed(values, stored) if _is_timed(values) else values


def _is_timed(values: pa.ChunkedArray) -> bool:
    kind = value_type(values.type)
    return bool(pa.types.is_time(kind) or pa.types.is_timestamp(kind))


def _timed(values: pa.ChunkedArray, stored: str) -> pa.ChunkedArray:
    """In the unit of ``stored``, else the coarsest one that loses nothing."""
    found = _TIMED.fullmatch(stored)
    unit, zone = (found[1], found[2]) if found else ("s", None)
    for wanted in (*_UNITS[_UNITS.index(unit) :], *_UNITS):
        try:
            return values.cast(_timed_type(values.type, wanted, zone))
        except pa.ArrowInvalid:  # it would lose digits, or has no room for years as far away
            continue
    return values


def _timed_type(kind: pa.DataType, unit: str, zone: str | None) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp(unit, tz=(zone or "UTC") if kind.tz else None)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
