"""What people hold in a pandas frame is read as it is meant, or refused by the name of its column."""

from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import synth_audit
from synth_audit.errors import DataError
from synth_audit.inputs import as_arrow, hash_of, resolved
from synth_audit.table.content_hash import fingerprint

CELL = "Zanzibar-7391"

READ = {
    "sparse": (pd.arrays.SparseArray([0.0, 2.5]), pa.array([0.0, 2.5])),
    "whole, with missing": (pd.array([1, None], dtype="Int64"), pa.array([1, None])),
    "truths as objects": (pd.Series([True, None], dtype=object), pa.array([True, None])),
    "categories": (
        pd.Categorical(["a", None]),
        pa.array(["a", None]).cast(pa.dictionary(pa.int8(), pa.Array.from_pandas(pd.Series(["a"])).type)),
    ),
    "nothing": (pd.Series([None, None], dtype=object), pa.nulls(2)),
    "text and none": (pd.Series(["a", np.nan], dtype=object), pa.array(["a", None])),
    "decimals": (pd.Series([Decimal("1.5"), None], dtype=object), pa.array([Decimal("1.5"), None])),
    "days": (pd.Series([date(2020, 1, 1), None], dtype=object), pa.array([date(2020, 1, 1), None])),
}
if int(pa.__version__.split(".")[0]) >= 24:  # which reads them; before, they are refused by name
    READ["uuids"] = (pd.Series([UUID(int=1)]), pa.array([UUID(int=1).bytes], pa.binary(16)))


@pytest.mark.parametrize("kind", READ)
def test_what_can_be_read_is(kind):
    values, expected = READ[kind]
    found = as_arrow(pd.DataFrame({"odd": values}), "train").column("odd")
    assert found.type == expected.type
    assert found.to_pylist() == expected.to_pylist()


REFUSED = {
    "mixed": [1, CELL, 2.5],
    "objects": [object(), object(), object()],
    "dictionaries": [{"a": CELL}] * 3,
    "sets": [{CELL}] * 3,
    "complex": [1j] * 3,
    "beyond 64 bits": [73917391 * 2**60] * 3,
    "infinite decimals": [Decimal(1), Decimal("Infinity"), Decimal(2)],
    "periods": pd.period_range("2020", periods=3, freq="M"),
    "intervals": pd.interval_range(0, 3),
    "cuts": pd.cut([1, 5, 9], 3),
    "mixed categories": pd.Categorical([1, CELL, 1]),
    "infinite": [1.0, np.inf, 2.0],
    "lists": [["a"], [CELL], []],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_read_is_refused_by_name(kind):
    with pytest.raises(DataError) as caught:
        as_arrow(pd.DataFrame({"odd": REFUSED[kind]}), "synthetic")
    assert "column 'odd'" in caught.value.what
    assert caught.value.where == "synthetic"
    assert caught.value.expected
    assert caught.value.fix
    assert CELL not in str(caught.value)
    assert "7391" not in str(caught.value)


@pytest.mark.parametrize("values", [[time(1, 2), None], pd.to_timedelta([1, 2], unit="D")])
def test_times_of_a_day_and_durations_are_kept_for_identifiers(values):
    assert as_arrow(pd.DataFrame({"odd": values}), "train").num_rows == 2


def test_zones_are_instants_whatever_their_names():
    berlin, utc = (pd.Timestamp(datetime(2020, 1, 1), tz=zone) for zone in ("Europe/Berlin", "UTC"))
    found = as_arrow(pd.DataFrame({"odd": [berlin, utc]}), "train").column("odd")
    assert found[0].as_py() == berlin.to_pydatetime()
    assert found[1].as_py() == utc.to_pydatetime()


@pytest.mark.parametrize("names", [[1, "1"], ["", "a"], [("a", "b"), ("a", "b")]])
def test_names_that_fall_together_are_refused(names):
    frame = pd.DataFrame([[1, 2]] * 3)
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    with pytest.raises(DataError, match=r"more than once|empty name"):
        as_arrow(frame, "train")


def test_names_that_are_no_text_are_read_as_text():
    assert as_arrow(pd.DataFrame({7: [1], None: [2], ("a", "b"): [3]}), "train").column_names == [
        "7",
        "None",
        "('a', 'b')",
    ]


def test_the_hash_of_a_file_is_taken_by_batches_and_is_that_of_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("synth_audit.sources.parquet.BATCH", 3)
    frame = pd.DataFrame(
        {"n": range(10), "s": [*"abcdefghi", None], "x": [0.5, float("nan"), -0.0, *range(7)]}
    )
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    hashes = {hash_of(table, "train") for table in (frame, tmp_path / "a.parquet", str(tmp_path / "a.csv"))}
    assert hashes == {fingerprint(as_arrow(frame, "train"))}
    with pytest.raises(DataError, match="synthetic is a dict"):
        hash_of({"n": [1]}, "synthetic")


def test_one_file_for_two_tables_is_a_slip(tmp_path):
    pa_csv = tmp_path / "a.csv"
    pa_csv.write_text("x\n1\n2\n")
    (tmp_path / "link.csv").symlink_to(pa_csv)
    (tmp_path / "copy.csv").write_text("x\n1\n2\n")
    resolved({"train": pa_csv, "synthetic": tmp_path / "copy.csv"})
    for other in (pa_csv, str(tmp_path / "link.csv"), tmp_path / "." / "a.csv"):
        with pytest.raises(DataError, match="train and synthetic are the same file"):
            resolved({"train": pa_csv, "synthetic": other})
    with pytest.raises(DataError, match="control and synthetic"):
        synth_audit.audit(tmp_path / "copy.csv", pa_csv, pa_csv)
