"""Tables go to other processes as files to map, and come to the same rows there."""

import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.ensemble  # noqa: F401  (brings libraries of its own)
from made_tables import table_of  # made importable by conftest.py
from threadpoolctl import threadpool_info, threadpool_limits

from synth_audit.errors import DataError
from synth_audit.execution import executor
from synth_audit.execution.context import RunContext
from synth_audit.files import scratch_in
from synth_audit.table import arrow
from synth_audit.table.arrow import PlacedRows, Shelf
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table

N = 20_000


def table(seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    words = pa.array(rng.choice(["a", "bb", "ccc"], N)).dictionary_encode()
    gaps = pa.array(rng.normal(size=N), mask=rng.random(N) < 0.1)
    return table_of({"x": gaps, "k": words, "n": rng.integers(0, 9, N)})


def told(work: Table, extra: int) -> tuple[str, int, int]:
    return work.fingerprint, work.n_rows + extra, int(work.numbers("n").sum())


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.arrow"))


def test_a_task_weighs_little_and_each_table_is_written_once(tmp_path: Path) -> None:
    shelf, whole, old = Shelf(tmp_path), table(), os.umask(0)
    try:
        calls: list[executor.Packed[Any]] = [
            executor.packed(partial(told, whole, i), shelf) for i in range(3)
        ]
    finally:
        os.umask(old)
    assert whole.data.nbytes > 10 * len(calls[0].content)
    assert len(pickle.dumps(calls[0])) < executor.WORTH_A_FILE
    assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600]
    assert [call() for call in calls] == [told(whole, i) for i in range(3)]


class Vast(executor.SharedValue):
    def __init__(self) -> None:
        self.values = np.arange(N)


def total(vast: Vast, extra: int) -> int:
    return int(vast.values.sum()) + extra


def test_what_pieces_share_is_written_once(tmp_path: Path) -> None:
    shelf, vast = Shelf(tmp_path), Vast()
    calls: list[executor.Packed[Any]] = [executor.packed(partial(total, vast, i), shelf) for i in range(3)]
    assert all(len(call.content) < N for call in calls)
    [path] = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [call() for call in calls] == [total(vast, i) for i in range(3)]
    vast.values[0] = 7
    assert executor.packed(partial(total, vast, 0), shelf)() == total(Vast(), 0), "and not changed"


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


@pytest.fixture
def lay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[pa.Table], Table]:
    monkeypatch.setattr(arrow, "MOST_HELD", 1000)

    def laid_out(data: pa.Table) -> Table:
        rows = arrow.kept(iter(data.to_batches(max_chunksize=5000)), tmp_path)
        known = {"blank": ColumnSpec.model_validate({"role": "identifier"})}
        specs = {name: spec for name, spec in known.items() if name in data.column_names}
        return table_of(rows, specs)

    return laid_out


@pytest.fixture
def whole(lay_out: Callable[[pa.Table], Table]) -> Table:
    """A table in a mapped file."""
    return lay_out(plain())


def sent(whole: Any, elsewhere: Path) -> Any:
    """A table as it arrives in another process, with tables of none in a folder ``elsewhere``."""
    elsewhere.mkdir(exist_ok=True)
    return executor.packed(partial(tuple, [whole]), Shelf(elsewhere))()[0]


def plain(seed: int = 0) -> pa.Table:
    data = table(seed).data
    return data.set_column(1, "k", data["k"].cast(pa.string()))


def test_a_mapped_table_stays_where_it_is(tmp_path: Path, whole: Table) -> None:
    assert whole.place is not None
    assert [whole.place.path] == files(tmp_path)
    there = sent(whole, tmp_path / "elsewhere")
    assert not files(tmp_path / "elsewhere")
    assert there.place == whole.place
    assert there.data.equals(whole.data)


def test_what_is_known_of_a_mapped_table_goes_along_and_two_stay_one(tmp_path: Path, whole: Table) -> None:
    fresh = sent(whole, tmp_path / "elsewhere")
    assert fresh.known_fingerprint is None
    known = whole.fingerprint
    first, second = sent((whole, whole), tmp_path / "elsewhere")
    assert first is second
    assert first.known_fingerprint == known


def test_a_view_of_some_columns_is_at_the_same_place(tmp_path: Path, whole: Table) -> None:
    other = infer_schema(whole.data.select(["n", "x"]))
    some = read_table(PlacedRows(whole.data.select(["n", "x"]), whole.place), other, where="train")
    there = sent(some, tmp_path / "elsewhere")
    assert not files(tmp_path / "elsewhere")
    assert there.data.equals(plain().select(["n", "x"]))


def test_released_columns_and_another_schema_keep_the_place(tmp_path: Path, whole: Table) -> None:
    specs = {"x": ColumnSpec.model_validate({"role": "identifier"})}
    again = table_of(whole, specs).released_only()
    there = sent(again, tmp_path / "elsewhere")
    assert not files(tmp_path / "elsewhere")
    assert there.data.equals(plain().select(["k", "n"]))


def test_other_rows_or_values_have_no_place(tmp_path: Path, whole: Table) -> None:
    assert whole.take(np.arange(N)).place is None
    assert [part.place for part in whole.parts(N // 2)] == [None, None]
    uneven = whole.data.set_column(0, "x", pa.array([float("nan")] * N))
    assert read_table(PlacedRows(uneven, whole.place), whole.schema, where="train").place is None
    views = whole.data.set_column(1, "k", whole.data["k"].cast(pa.string_view()))
    read = read_table(PlacedRows(views, whole.place), whole.schema, where="train")
    assert read.place is None
    assert sent(read, tmp_path / "elsewhere").data.equals(whole.data)


def test_a_table_is_laid_out_with_what_is_known_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = read_table(plain(), infer_schema(plain()), where="train")
    assert held.laid_out(tmp_path) is held, "few rows stay in memory"
    known = held.fingerprint
    monkeypatch.setattr(arrow, "MOST_HELD", 1000)
    mapped = held.laid_out(tmp_path)
    assert mapped.place is not None
    assert (mapped.known_fingerprint, mapped.data) == (known, held.data)


def test_a_mapped_table_whose_file_is_gone_is_written_anew(tmp_path: Path, whole: Table) -> None:
    files(tmp_path)[0].unlink()
    assert sent(whole, tmp_path / "elsewhere").data.equals(plain())
    assert len(files(tmp_path / "elsewhere")) == 1


def test_nothing_is_taken_for_a_table_that_is_no_more(tmp_path: Path, lay_out: Any) -> None:
    """Its place in memory may be that of another table, of the same shape, the next moment."""
    for i in range(5):
        data = pa.table({"n": np.arange(N) + i})
        held = lay_out(data)
        assert sent(held, tmp_path / "elsewhere").data.equals(data)
        for path in files(tmp_path):
            path.unlink()
        del held


def test_a_small_table_travels_with_its_task(tmp_path: Path) -> None:
    few = table().take(np.arange(10))
    assert few.data.nbytes < executor.WORTH_A_FILE
    assert executor.packed(partial(told, few, 1), Shelf(tmp_path))() == told(few, 1)
    assert not files(tmp_path)


def test_a_table_that_no_file_holds_travels_with_its_task(tmp_path: Path) -> None:
    class Refusing(Shelf):
        def place(self, table: pa.Table) -> Any:
            raise pa.ArrowNotImplementedError

    whole = table()
    assert executor.packed(partial(told, whole, 1), Refusing(tmp_path))() == told(whole, 1)


def test_a_call_that_was_sent_to_another_folder_fails_as_such(tmp_path: Path) -> None:
    call = executor.packed(partial(told, table(), 0), Shelf(tmp_path))
    files(tmp_path)[0].unlink()
    with pytest.raises(OSError, match="No such file"):
        pickle.loads(pickle.dumps(call))()  # noqa: S301  (our own bytes)


def test_processes_map_what_this_one_put_into_scratch_and_nothing_stays(tmp_path: Path) -> None:
    whole = table()
    there = RunContext(executor=executor.in_processes(2), scratch=tmp_path).map(
        "piece", partial(told, whole), [1, 2, 3]
    )
    assert there == [told(whole, i) for i in (1, 2, 3)]
    assert not list(tmp_path.iterdir())


def test_rows_by_batches_are_kept_in_a_private_file_or_in_none(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", 1000)
    data, old = plain(), os.umask(0)
    before = pa.total_allocated_bytes()
    try:
        in_folder = arrow.kept(iter(data.to_batches(max_chunksize=3000)), tmp_path)
        with scratch_in(tmp_path / "scratch"):
            (tmp_path / "scratch").mkdir()
            nowhere = arrow.kept(iter(data.to_batches(max_chunksize=3000)), None)
    finally:
        os.umask(old)
    assert in_folder.data.equals(data)
    assert in_folder.place is not None
    assert in_folder.place.mapped().equals(data)
    assert nowhere.data.equals(data)
    assert nowhere.place is None
    assert not list((tmp_path / "scratch").iterdir())
    assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600]
    assert pa.total_allocated_bytes() < before + data.nbytes


@pytest.mark.parametrize("most", [1000, 2**30])
def test_without_scratch_and_when_few_rows_are_held(tmp_path: Path, monkeypatch: Any, most: int) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", most)
    for folder in [None] if most == 1000 else [None, tmp_path]:
        assert arrow.kept(iter(plain().to_batches()), folder).data.equals(plain())
    assert not files(tmp_path)


def test_codes_whose_labels_differ_by_batch_are_laid_out(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", 10)
    parts = [pa.table({"k": pa.array([a, b] * 50).dictionary_encode()}) for a, b in ("ab", "ca")]
    rows = arrow.kept((batch for part in parts for batch in part.to_batches()), tmp_path)
    assert rows.data["k"].to_pylist() == ["a", "b"] * 50 + ["c", "a"] * 50
    assert rows.place is not None
    assert rows.place.mapped().equals(rows.data)


def test_floats_are_regular_in_the_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", 10)
    values = pa.array([1.0, float("nan"), -0.0, None], from_pandas=False)
    rows = arrow.kept(iter(pa.table({"x": values}).to_batches()), tmp_path)
    assert rows.data["x"].to_pylist() == [1.0, None, 0.0, None]
    assert not np.signbit(rows.data["x"].to_numpy()[2])


def test_a_full_disk_is_an_error_without_a_value(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", 10)
    with pytest.raises(DataError, match="cannot be put into scratch"):
        arrow.kept(iter(plain().to_batches()), tmp_path / "nowhere")


@pytest.mark.parametrize("blank", [pa.array([""] * N), pa.array([b""] * N), pa.nulls(N, pa.string())])
def test_a_column_of_empty_text_is_laid_out_too(tmp_path: Path, lay_out: Any, blank: pa.Array) -> None:
    data = pa.table({"n": range(N), "blank": blank})
    held = lay_out(data)
    assert held.data.equals(data)
    assert sent(held, tmp_path / "elsewhere").data.equals(data)
    assert not files(tmp_path / "elsewhere")
    assert Shelf(tmp_path / "elsewhere").place(data).mapped().equals(data)


@pytest.mark.parametrize("n", [0, 1, 7, 100])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_every_row_once_and_in_order(n, threads):
    rows = np.arange(n)
    parts = executor.over_blocks(n, 7, lambda block: rows[block], threads)
    assert np.array_equal(np.concatenate([*parts, rows[:0]]), rows)


@pytest.mark.parametrize(("told", "workers"), [("3", 3), ("1", 1), ("0", 1), ("4,2", 5), ("", 5)])
def test_the_threads_are_those_that_libraries_are_told(told, workers, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    made, pool = [], executor.ThreadPoolExecutor
    monkeypatch.setattr(executor, "ThreadPoolExecutor", lambda n: made.append(n) or pool(n))
    assert executor.over_blocks(20, 1, lambda block: block.start) == list(range(20))
    assert made == [workers] * (workers > 1)


def test_products_do_not_depend_on_the_threads():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(500, 37)), rng.normal(size=(37, 800))
    one, many = (np.vstack(executor.over_blocks(500, 64, lambda s: a[s] @ b, threads)) for threads in (1, 4))
    assert np.array_equal(one, many)


def test_an_error_in_a_block_is_raised():
    def fail(block):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        executor.over_blocks(10, 2, fail, 2)


def threads():
    return {library["num_threads"] for library in threadpool_info()}


def test_every_library_is_held_to_one_thread_and_let_go_again():
    with threadpool_limits(3):
        before = threads()
        with executor.single_threaded():
            assert threads() == {1}
        assert threads() == before != {1}


def test_libraries_are_looked_up_again_when_a_module_was_loaded(monkeypatch):
    made = []
    found = executor.ThreadpoolController
    monkeypatch.setattr(executor, "ThreadpoolController", lambda: made.append(1) or found())
    executor._controller.cache_clear()
    for _ in range(3):
        with executor.single_threaded():
            pass
    assert made == [1]
    monkeypatch.setitem(sys.modules, "loaded_since", ModuleType("loaded_since"))
    with executor.single_threaded():
        pass
    assert made == [1, 1]
