"""What a source hands out by batches is one table, or it is refused."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from synth_audit.errors import DataError
from synth_audit.files import scratch_in
from synth_audit.plugins.source import SourceInfo, batches, read
from synth_audit.table import arrow

FIRST = pa.record_batch({"a": [1, 2], "b": [3, 4]})


class Lying:
    """A source that somebody else wrote."""

    info: Any = None

    def __init__(self, *handed_out: pa.RecordBatch) -> None:
        self._handed_out = handed_out

    def read(self, base: Path) -> pa.Table:
        raise NotImplementedError

    def batches(self, base: Path) -> Any:
        return iter(self._handed_out)


@pytest.mark.parametrize("most", [0, 2**30])
@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch.select(["b", "a"]),
        lambda batch: batch.rename_columns(["a", "c"]),
        lambda batch: batch.select(["a"]),
        lambda batch: batch.append_column("c", batch["a"]),
        lambda batch: batch.set_column(0, "a", batch["a"].cast(pa.float64())),
    ],
)
def test_no_value_comes_under_the_name_of_another_column(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    change: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", most)
    with scratch_in(tmp_path), pytest.raises(DataError, match="batches whose columns differ"):
        arrow.kept(batches(Lying(FIRST, change(FIRST)), tmp_path), None)
    assert not list(tmp_path.iterdir())


def test_no_batch_at_all_is_told() -> None:
    with pytest.raises(DataError, match="no batch"):
        list(batches(Lying(), Path()))
    assert list(batches(Lying(FIRST.slice(0, 0)), Path())) == [FIRST.slice(0, 0)]


class Unplugged(Lying):
    info: Any = SourceInfo(title="Warehouse", summary="")

    def read(self, base: Path) -> pa.Table:
        raise ConnectionResetError("swordfish")

    def batches(self, base: Path) -> Any:
        yield FIRST
        raise OSError(errno.ENOSPC, "swordfish")


@pytest.mark.parametrize("most", [0, 2**30])
def test_what_the_system_says_to_a_source_is_not_told_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", most)
    with (
        scratch_in(tmp_path),
        pytest.raises(DataError, match=r"the source cannot be read \(OSError\)") as caught,
    ):
        arrow.kept(batches(Unplugged(), tmp_path), None)
    assert caught.value.where == "source, Warehouse"
    assert caught.value.fix
    assert "swordfish" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_source_that_is_read_whole_tells_the_same(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the source cannot be read \(ConnectionResetError\)"):
        read(Unplugged(), tmp_path)
