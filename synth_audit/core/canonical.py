"""One form of a table for its content: what its content hash does not see, nobody can hide anything in.

The audits and the content hash see rows, names and values. A table as a generator hands it over holds more:
the order of its rows and columns, the payload of a NaN, the sign of a zero, labels that no row has, the unit
and the zone's name of a timestamp, what lies under a null, metadata. Whoever makes it could carry cells of
real people out in these. Here each of them follows from the content and the types of train.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from synth_audit.core.arrow_types import is_text
from synth_audit.core.arrow_values import regular_floats
from synth_audit.core.fingerprint import DIGEST, row_digests
from synth_audit.core.keyed_hash import KeyedHash

_UNITS = ("s", "ms", "us", "ns")
_DICTIONARY = re.compile(r"dictionary<values=([^,]+), .*>")
_TIMED = re.compile(r"(?:timestamp|time32|time64)\[(s|ms|us|ns)(?:, tz=(.+))?\]")


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
    keyed, digests = KeyedHash(key), row_digests(data).tobytes()
    places = bytearray()  # a join would hold each hash as an object of its own
    for start in range(0, len(digests), DIGEST):
        places += keyed(digests[start : start + DIGEST])
    order = pa.array(np.argsort(np.frombuffer(places, dtype=f"S{DIGEST}"), kind="stable"))
    # Taken into new arrays, which leave behind what lay under nulls, and how the rows were cut into chunks;
    # one column at a time, so that memory holds the table once.
    return pa.table({n: _ordered(data.column(n), storage.get(n, ""), order) for n in names})


def _ordered(values: pa.ChunkedArray, stored: str, order: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([_plain(values, stored).combine_chunks()]).take(order)


def _plain(values: pa.ChunkedArray, stored: str) -> pa.ChunkedArray:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    stored = found[1] if (found := _DICTIONARY.fullmatch(stored)) else stored
    kind = values.type
    if pa.types.is_floating(kind):
        return regular_floats(values)
    if is_text(kind):
        return values.cast(pa.large_string() if stored == "large_string" else pa.string())
    if pa.types.is_date(kind):
        whole = values.cast(pa.date32(), safe=False)
        return whole.cast(pa.date64()) if stored.startswith("date64") else whole
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return _timed(values, stored)
    return values


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
