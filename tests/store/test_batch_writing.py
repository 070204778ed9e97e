"""Batches become one file of their common types, or nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import DataError
from synth_audit.store.files import write_parts


def parts_of(*batches):
    return (SimpleNamespace(data=batch) for batch in batches)


def test_batches_lie_below_one_another_under_the_types_of_the_first(tmp_path):
    first = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", None]})
    second = pa.table({"b": ["y"], "a": pa.array([3], pa.int32())})
    path = write_parts(tmp_path / "t.parquet", parts_of(first, second))
    assert pq.read_table(path).to_pydict() == {"a": [1, 2, 3], "b": ["x", None, "y"]}
    assert pq.read_schema(path).types == first.schema.types


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"a": ["secret-7391"]}),
        pa.table({"c": [1]}),
        pa.table({"a": [1], "key": ["secret-7391"]}),
        pa.table({"a": [2**40]}),
    ],
    ids=["text", "another column", "a column more", "too large"],
)
def test_batches_that_differ_leave_what_was_there_and_show_no_value(tmp_path, other):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"before")
    first = pa.table({"a": pa.array([1], pa.int32())})
    with pytest.raises(DataError, match="differ in their columns or types") as caught:
        write_parts(path, parts_of(first, other))
    assert "7391" not in str(caught.value)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


def test_no_batch_is_no_table(tmp_path):
    with pytest.raises(DataError, match="no rows"):
        write_parts(tmp_path / "t.parquet", [])
    assert not list(tmp_path.iterdir())
