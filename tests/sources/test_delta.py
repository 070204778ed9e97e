"""Delta Lake: rows come back as they went, or are refused by name; a failed commit changes nothing."""

import datetime as dt
import sys
from decimal import Decimal

import pyarrow as pa
import pytest

from synth_audit.errors import DataError, PlanError, Unavailable
from synth_audit.registry import build
from synth_audit.sources import delta

KEPT = {
    "b": pa.array([True, None]),
    "i": pa.array([1, None], pa.int16()),
    "x": pa.array([-0.0, 1e300]),
    "s": pa.array(["ä", None]),
    "label": pa.array(["a", "b"]).dictionary_encode(),
    "day": pa.array([dt.date(1900, 1, 1), None]),
    "time": pa.array([dt.datetime(2020, 1, 1, 1, 1, 1, 5), None], pa.timestamp("us")),
    "price": pa.array([Decimal("1.20"), None], pa.decimal128(10, 2)),
}
REFUSED = [
    pa.uint8(),
    pa.uint64(),
    pa.timestamp("ns"),
    pa.duration("us"),
    pa.time64("us"),
    pa.list_(pa.int8()),
]


def made(path="lake"):
    return build("source", "delta", {"path": path})


def test_rows_come_back_and_a_second_release_replaces_the_first(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    rows = pa.table(KEPT)
    assert made().write(rows, tmp_path) == str(tmp_path / "lake")
    assert made().read(tmp_path).to_pylist() == rows.to_pylist()
    made().write(pa.table({"other": ["z"]}), tmp_path)
    assert made().read(tmp_path).to_pylist() == [{"other": "z"}]
    assert deltalake.DeltaTable(str(tmp_path / "lake")).version() == 1
    made().write(pa.table({"none": pa.array([], pa.int64())}), tmp_path)
    assert sum(batch.num_rows for batch in made().batches(tmp_path)) == 0


def test_what_fails_after_the_commit_does_not_undo_it(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    made().write(pa.table({"x": [1, 2]}), tmp_path)
    each = {"delta.checkpointInterval": "1"}
    deltalake.DeltaTable(str(tmp_path / "lake")).alter.set_table_properties(each)
    (tmp_path / "lake/_delta_log/_last_checkpoint").unlink(missing_ok=True)
    (tmp_path / "lake/_delta_log/_last_checkpoint").mkdir()
    made().write(pa.table({"x": [9]}), tmp_path)
    assert made().read(tmp_path).to_pylist() == [{"x": 9}]


def test_a_table_that_is_only_added_to_is_no_full_disk(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    made().write(pa.table({"x": [1, 2]}), tmp_path)
    deltalake.DeltaTable(str(tmp_path / "lake")).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(Unavailable, match="took no commit"):
        made().write(pa.table({"x": [9]}), tmp_path)
    assert made().read(tmp_path).to_pylist() == [{"x": 1}, {"x": 2}]


def test_a_commit_that_fails_leaves_the_last_release(tmp_path, monkeypatch):
    deltalake = pytest.importorskip("deltalake")
    made().write(pa.table({"x": [1, 2]}), tmp_path)

    def broken(*args, **kwargs):
        raise OSError("no space left beside Amsterdam")

    monkeypatch.setattr(deltalake, "write_deltalake", broken)
    with pytest.raises(DataError, match="cannot be written") as caught:
        made().write(pa.table({"x": [3]}), tmp_path)
    assert "Amsterdam" not in str(caught.value)
    assert made().read(tmp_path).to_pylist() == [{"x": 1}, {"x": 2}]


def test_what_is_no_table_is_said_to_be_none(tmp_path):
    pytest.importorskip("deltalake")
    with pytest.raises(DataError, match="cannot be read"):
        made().read(tmp_path)


@pytest.mark.parametrize("kind", REFUSED, ids=str)
def test_a_type_that_would_be_changed_is_refused_by_the_columns_name(kind):
    with pytest.raises(DataError, match="column 'x'"):
        made().refuse_types(pa.schema([("x", kind)]))


def test_kept_types_are_not_refused():
    made().refuse_types(pa.table(KEPT).schema)


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(PlanError, match="not installed"):
        made().read(tmp_path)
    with pytest.raises(PlanError, match="not installed"):
        made().write(pa.table({"x": [1]}), tmp_path)


def test_a_path_that_leads_elsewhere_is_the_same_place(tmp_path):
    (tmp_path / "lake").mkdir()
    assert made("lake").place(tmp_path) == made("./lake/../lake").place(tmp_path)
    with pytest.raises(ValueError, match="path"):
        delta.Delta(path="s3://bucket/table")
