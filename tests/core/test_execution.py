"""Work spread over processes: the same results, errors and order as without."""

from __future__ import annotations

import os
import pickle
import tempfile
from functools import partial
from pathlib import Path

import pytest

from synth_audit.core.errors import NotApplicable
from synth_audit.core.execution import Spread, elsewhere


def squared(x: int) -> int:
    return x * x


def where(_: int) -> int:
    return os.getpid()


def refused(x: int) -> int:
    if x > 1:
        raise NotApplicable(f"no {x}")
    return x


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers: int) -> None:
    assert Spread(workers).over("piece", squared, range(5)) == [0, 1, 4, 9, 16]


def test_work_is_done_in_other_processes() -> None:
    assert os.getpid() not in Spread(2).over("piece", where, range(4))
    assert set(Spread(1).over("piece", where, range(4))) == {os.getpid()}


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_failure_is_raised_as_it_was(workers: int) -> None:
    with pytest.raises(NotApplicable) as caught:
        Spread(workers).over("piece", refused, range(4))
    assert caught.value.what == "no 2"


def test_another_process_has_no_processes_of_its_own() -> None:
    copied = pickle.loads(pickle.dumps(Spread(4, print)))  # noqa: S301  (our own bytes)
    assert (copied.workers, copied.tell) == (1, None)


@pytest.mark.parametrize("workers", [1, 2])
def test_it_tells_what_is_under_way(workers: int) -> None:
    said: list[str] = []
    Spread(workers, said.append).over("iteration", squared, range(3))
    assert said == ["iteration 1 of 3", "iteration 2 of 3", "iteration 3 of 3"]


def littered(x: int) -> str:
    folder = Path(tempfile.mkdtemp())
    (folder / "rows").write_text("a real row")
    if x > 1:
        raise ValueError(str(folder))
    return str(folder)


@pytest.mark.parametrize("n", [2, 4])
def test_what_processes_leave_in_temporary_folders_is_deleted(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left: list[str] = []
    try:
        with elsewhere(2, [partial(littered, x) for x in range(n)]) as done:
            left.extend(done)
    except ValueError as error:
        left.append(str(error))
    assert left
    assert all(Path(folder).is_relative_to(tmp_path) for folder in left)
    assert not list(tmp_path.iterdir())
