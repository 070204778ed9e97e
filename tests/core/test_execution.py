"""Work spread over processes: the same results, errors and order as without."""

from __future__ import annotations

import os
import pickle
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from synth_audit.core.cache import Cache
from synth_audit.core.context import RunContext, silent
from synth_audit.core.errors import NotApplicable, PluginError
from synth_audit.core.execution import Executor, in_processes


def running(workers: int) -> RunContext:
    return RunContext(executor=Executor(workers))


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
    assert running(workers).map("piece", squared, range(5)) == [0, 1, 4, 9, 16]


def test_work_is_done_in_other_processes() -> None:
    assert os.getpid() not in running(2).map("piece", where, range(4))
    assert set(running(1).map("piece", where, range(4))) == {os.getpid()}


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_failure_is_raised_as_it_was(workers: int) -> None:
    with pytest.raises(NotApplicable) as caught:
        running(workers).map("piece", refused, range(4))
    assert caught.value.what == "no 2"


def test_another_process_has_no_processes_of_its_own() -> None:
    cache, draws = Cache(Path("somewhere")), np.random.default_rng(3)
    here = RunContext(seed=5, draws=draws, executor=Executor(4), cache=cache, progress=print)
    there = pickle.loads(pickle.dumps(here))  # noqa: S301  (our own bytes)
    assert (there.executor.workers, there.progress) == (1, silent)
    assert (there.seed, there.cache, there.rng.random()) == (5, cache, draws.random())


@pytest.mark.parametrize("workers", [1, 2])
def test_it_tells_what_is_under_way(workers: int) -> None:
    said: list[tuple[str, int, int]] = []
    context = replace(running(workers), progress=lambda *what: said.append(what))
    context.within("game, ").map("iteration", squared, range(3))
    assert said == [("game, iteration", done, 3) for done in range(4)]


def test_there_is_nothing_to_draw_from_outside_an_audit() -> None:
    with pytest.raises(PluginError, match="nothing to draw"):
        _ = RunContext().rng
    one, same, other = (RunContext(seed=1).child("audit", name).rng.random() for name in "aab")
    assert one == same != other


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
        with in_processes(2, [partial(littered, x) for x in range(n)]) as done:
            left.extend(done)
    except ValueError as error:
        left.append(str(error))
    assert left
    assert all(Path(folder).is_relative_to(tmp_path) for folder in left)
    assert not list(tmp_path.iterdir())
