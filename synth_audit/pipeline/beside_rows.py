"""What a file made elsewhere holds beside its rows, which no audit sees: told by kind and size alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa

from synth_audit.core.arrow_values import n_distinct
from synth_audit.core.table import Table
from synth_audit.pipeline.warnings import shown_count

_TYPES = {b"ARROW:schema", b"PARQUET:field_id"}
"""Keys under which Parquet files say what the columns are."""

_BY_PANDAS = {"index_columns", "column_indexes", "columns", "creator", "pandas_version"}
"""What pandas says of every table; its `attributes` are the user's own."""

_ATTRIBUTES = b"PANDAS_ATTRS"

_USUAL, _OF_COLUMN = 1000, 400
"""Bytes in which pandas describes a table and a column; it takes about 300 and 150, and a name twice."""


def about_metadata(schema: pa.Schema) -> tuple[str, ...]:
    """Metadata of a file and of its columns, apart from those that say what the columns are."""
    kinds = [f"{what}, {_size(size)}" for what, size in _kinds(schema) if size]
    if not kinds:
        return ()
    return (
        f"the synthetic file holds metadata other than the table itself ({'; '.join(kinds)}), which no audit "
        "sees",
    )


def about_unused_labels(synthetic: Table, suppression: int) -> tuple[str, ...]:
    """Dictionaries of a candidate's columns that hold more values than its rows."""
    found = []
    for name in synthetic.names:
        values = synthetic.column(name)
        if pa.types.is_dictionary(values.type):
            listed = pa.chunked_array([chunk.dictionary for chunk in values.chunks], values.type.value_type)
            unused = n_distinct(listed) - n_distinct(values)
            found += [f"column {name!r} {shown_count(unused, suppression)}"] * (unused > 0)
    if not found:
        return ()
    return (f"dictionaries of the synthetic table hold values that no row uses: {', '.join(found)}",)


def _kinds(schema: pa.Schema) -> Iterator[tuple[str, int]]:
    """Kinds of metadata and their bytes; keys may say something too, so that only known ones are named."""
    own = _foreign(schema.metadata)
    yield from _of_pandas(own.pop(b"pandas", b"{}"), own.pop(_ATTRIBUTES, b""), schema.names)
    yield f"{len(own)} other key{'s' * (len(own) != 1)}", _length(own)
    noted = [found for field in schema if (found := _foreign(field.metadata))]
    yield f"metadata of {len(noted)} column{'s' * (len(noted) != 1)}", sum(map(_length, noted))


def _of_pandas(content: bytes, written: bytes, names: list[str]) -> Iterator[tuple[str, int]]:
    """What pandas says of a table, and attributes of the user's: in it, and as pandas writes them again."""
    try:
        said = json.loads(content)
        attributes = said.pop("attributes", {})
        usual = set(said) <= _BY_PANDAS
    except (ValueError, AttributeError, TypeError):
        attributes, usual = {}, False
    yield "pandas attributes", len(written) + (len(json.dumps(attributes)) if attributes else 0)
    if attributes:
        content = json.dumps(said).encode()
    most = _USUAL + sum(_OF_COLUMN + 2 * len(json.dumps(name)) for name in names)
    if not usual or len(content) > most:
        yield "more than pandas says of such a table", len(content)


def _foreign(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    return {key: value for key, value in (metadata or {}).items() if key not in _TYPES}


def _length(metadata: Mapping[bytes, bytes]) -> int:
    return sum(len(key) + len(value) for key, value in metadata.items())


def _size(size: int) -> str:
    return f"{size:,} B" if size < 1000 else f"{size / 1000:,.1f} kB"
