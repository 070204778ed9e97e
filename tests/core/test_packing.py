"""Tables go to other processes as files to map, and come to the same rows there."""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.core import arrow_files
from synth_audit.core.arrow_files import Shelf
from synth_audit.core.context import RunContext
from synth_audit.core.errors import DataError
from synth_audit.core.execution import in_processes
from synth_audit.core.execution.packing import WORTH_A_FILE, Packed, packed
from synth_audit.core.files import scratch_in
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.table import Table, read_table

N = 20_000


def table(seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    words = pa.array(rng.choice(["a", "bb", "ccc"], N)).dictionary_encode()
    gaps = pa.array(rng.normal(size=N), mask=rng.random(N) < 0.1)
    data = pa.table({"x": gaps, "k": words, "n": rng.integers(0, 9, N)})
    return read_table(data, infer_schema(data), where="train")


def told(work: Table, extra: int) -> tuple[str, int, int]:
    return work.fingerprint, work.n_rows + extra, int(work.numbers("n").sum())


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.arrow"))


def test_a_task_weighs_little_and_each_table_is_written_once(tmp_path: Path) -> None:
    shelf, whole = Shelf(tmp_path), table()
    calls = [packed(partial(told, whole, i), shelf) for i in range(3)]
    assert whole.data.nbytes > 10 * len(calls[0].content)
    assert len(files(tmp_path)) == 1
    assert [call() for call in calls] == [told(whole, i) for i in range(3)]


def test_the_file_is_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        packed(partial(told, table(), 0), Shelf(tmp_path))
    finally:
        os.umask(old)
    assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600]


def test_some_columns_of_a_written_table_are_not_written_again(tmp_path: Path) -> None:
    shelf, whole = Shelf(tmp_path), table()
    shelf.place(whole.data)
    some = whole.data.select(["n", "k"]).rename_columns(["count", "word"])
    assert shelf.place(some).mapped().to_pydict() == some.to_pydict()
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda data: data.slice(1),
        lambda data: data.slice(0, N // 2),
        lambda data: data.set_column(1, "k", data["k"].cast(pa.string())),
        lambda data: data.set_column(2, "n", pa.array(data["n"].to_numpy() + 1)),
        lambda data: data.set_column(2, "n", data["n"].cast(pa.timestamp("us"))),
        lambda data: data.set_column(
            1, "k", pa.DictionaryArray.from_arrays(data["k"].chunk(0).indices, pa.array(["z", "y", "x"]))
        ),
    ],
)
def test_other_rows_values_and_types_are_not_mistaken_for_a_written_table(tmp_path: Path, other: Any) -> None:
    shelf, whole = Shelf(tmp_path), table()
    shelf.place(whole.data)
    changed = other(whole.data)
    assert shelf.place(changed).mapped().equals(changed)


def laid_out(data: pa.Table, folder: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    monkeypatch.setattr(arrow_files, "MOST_HELD", 1000)
    return arrow_files.kept(iter(data.to_batches(max_chunksize=5000)), folder)


def plain(seed: int = 0) -> pa.Table:
    data = table(seed).data
    return data.set_column(1, "k", data["k"].cast(pa.string()))


def test_a_mapped_table_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    held = laid_out(plain(), tmp_path, monkeypatch)
    place = Shelf(elsewhere).place(held.select(["n", "x"]))
    assert [place.path] == files(tmp_path)
    assert not files(elsewhere)
    assert place.mapped().equals(plain().select(["n", "x"]))


def test_a_mapped_table_whose_file_is_gone_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    held = laid_out(plain(), tmp_path, monkeypatch)
    files(tmp_path)[0].unlink()
    assert Shelf(elsewhere).place(held).mapped().equals(plain())
    assert len(files(elsewhere)) == 1


def test_nothing_is_taken_for_a_table_that_is_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place in memory may be that of another table, of the same shape, the next moment."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for i in range(5):
        data = pa.table({"n": np.full(N, i)})
        held = laid_out(data, tmp_path, monkeypatch)
        assert Shelf(elsewhere).place(held).mapped().equals(data)
        for path in files(tmp_path):
            path.unlink()
        del held


def test_a_small_table_travels_with_its_task(tmp_path: Path) -> None:
    few = table().take(np.arange(10))
    assert few.data.nbytes < WORTH_A_FILE
    assert packed(partial(told, few, 1), Shelf(tmp_path))() == told(few, 1)
    assert not files(tmp_path)


def test_a_table_that_no_file_holds_travels_with_its_task(tmp_path: Path) -> None:
    class Refusing(Shelf):
        def place(self, table: pa.Table) -> Any:
            raise pa.ArrowNotImplementedError

    whole = table()
    assert packed(partial(told, whole, 1), Refusing(tmp_path))() == told(whole, 1)


def test_a_call_that_was_sent_to_another_folder_fails_as_such(tmp_path: Path) -> None:
    call = packed(partial(told, table(), 0), Shelf(tmp_path))
    files(tmp_path)[0].unlink()
    with pytest.raises(OSError, match="No such file"):
        pickle.loads(pickle.dumps(call))()  # noqa: S301  (our own bytes)


def test_processes_map_what_this_one_put_into_scratch_and_nothing_stays(tmp_path: Path) -> None:
    whole = table()
    there = RunContext(executor=in_processes(2), scratch=tmp_path).map(
        "piece", partial(told, whole), [1, 2, 3]
    )
    assert there == [told(whole, i) for i in (1, 2, 3)]
    assert not list(tmp_path.iterdir())


def test_a_packed_call_is_small_on_its_way(tmp_path: Path) -> None:
    call: Packed[Any] = packed(partial(told, table(), 0), Shelf(tmp_path))
    assert len(pickle.dumps(call)) < WORTH_A_FILE


def test_rows_by_batches_are_kept_in_a_private_file_or_in_none(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow_files, "MOST_HELD", 1000)
    data, old = plain(), os.umask(0)
    before = pa.total_allocated_bytes()
    try:
        in_folder = arrow_files.kept(iter(data.to_batches(max_chunksize=3000)), tmp_path)
        with scratch_in(tmp_path / "scratch"):
            (tmp_path / "scratch").mkdir()
            nowhere = arrow_files.kept(iter(data.to_batches(max_chunksize=3000)), None)
    finally:
        os.umask(old)
    assert in_folder.equals(data)
    assert nowhere.equals(data)
    assert not list((tmp_path / "scratch").iterdir())
    assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600]
    assert pa.total_allocated_bytes() < before + data.nbytes


@pytest.mark.parametrize("most", [1000, 2**30])
def test_without_scratch_and_when_few_rows_are_held(tmp_path: Path, monkeypatch: Any, most: int) -> None:
    monkeypatch.setattr(arrow_files, "MOST_HELD", most)
    for folder in [None] if most == 1000 else [None, tmp_path]:
        assert arrow_files.kept(iter(plain().to_batches()), folder).equals(plain())
    assert not files(tmp_path)


def test_codes_whose_labels_differ_by_batch_are_held(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow_files, "MOST_HELD", 10)
    parts = [pa.table({"k": pa.array([a, b] * 50).dictionary_encode()}) for a, b in ("ab", "ca")]
    rows = arrow_files.kept((batch for part in parts for batch in part.to_batches()), tmp_path)
    assert rows["k"].to_pylist() == ["a", "b"] * 50 + ["c", "a"] * 50


def test_floats_are_regular_in_the_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow_files, "MOST_HELD", 10)
    values = pa.array([1.0, float("nan"), -0.0, None], from_pandas=False)
    rows = arrow_files.kept(iter(pa.table({"x": values}).to_batches()), tmp_path)
    assert rows["x"].to_pylist() == [1.0, None, 0.0, None]
    assert not np.signbit(rows["x"].to_numpy()[2])


def test_a_full_disk_is_an_error_without_a_value(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow_files, "MOST_HELD", 10)
    with pytest.raises(DataError, match="cannot be put into scratch"):
        arrow_files.kept(iter(plain().to_batches()), tmp_path / "nowhere")


@pytest.mark.parametrize("blank", [pa.array([""] * N), pa.array([b""] * N), pa.nulls(N, pa.string())])
def test_a_column_of_empty_text_is_laid_out_too(tmp_path: Path, monkeypatch: Any, blank: pa.Array) -> None:
    data = pa.table({"n": range(N), "blank": blank})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    held = laid_out(data, tmp_path, monkeypatch)
    assert held.equals(data)
    assert Shelf(elsewhere).place(held).path in files(tmp_path)
    assert Shelf(elsewhere).place(data).mapped().equals(data)
