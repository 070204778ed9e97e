"""Work spread over processes: the same results, errors and order as without."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from synth_audit.errors import NotApplicable, OutOfTime, PluginError
from synth_audit.execution import executor
from synth_audit.execution.context import Cache, RunContext, silent
from synth_audit.execution.executor import NEVER, Deadline, Ending, Executor, attempt, in_processes


def running(workers: int) -> RunContext:
    return RunContext(executor=in_processes(workers))


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
    when = Deadline.within(60)
    here = RunContext(
        seed=5,
        draws=draws,
        executor=in_processes(4),
        cache=cache,
        progress=print,
        deadline=when,
        device="cuda",
    )
    there = pickle.loads(pickle.dumps(here))  # noqa: S301  (our own bytes)
    assert (there.executor, there.progress) == (Executor(), silent)
    assert (there.deadline, there.device) == (when, "cuda")
    assert (there.seed, there.cache, there.rng.random()) == (5, cache, draws.random())


@pytest.mark.parametrize("workers", [1, 2])
def test_it_tells_what_is_under_way(workers: int) -> None:
    said: list[tuple[str, int, int]] = []
    context = replace(running(workers), progress=lambda *what: said.append(what))
    context.within("game, ").map("iteration", squared, range(3))
    assert said == [("game, iteration", done, 3) for done in range(4)]


def test_progress_of_a_later_round_goes_on_where_the_last_one_ended() -> None:
    said: list[int] = []
    context = RunContext(progress=lambda what, done, total: said.append(done))
    for done in (0, 2):
        context.map("planted leak", squared, range(2), before=done, total=10)
    assert said == [0, 1, 2, 2, 3, 4]


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
def test_what_processes_leave_in_temporary_folders_is_deleted(n: int, tmp_path: Path) -> None:
    with in_processes(2).pieces(littered, range(n), tmp_path) as pieces:
        found = dict(pieces)
    left = [piece.result for piece in found.values() if piece.ending is Ending.DONE]
    assert len(left) == 2
    assert all(Path(folder or "").is_relative_to(tmp_path) for folder in left)
    assert [found[x].ending for x in range(2, n)] == [Ending.FAILED] * (n - 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [None, "/not/on/this/machine"])
def test_elsewhere_a_piece_clears_up_after_itself(folder: str | None) -> None:
    kept = attempt(folder, partial(littered, 0))
    assert not Path(kept.result or "").parent.exists()
    assert attempt(folder, partial(littered, 2)).ending is Ending.FAILED
    assert tempfile.tempdir is None or Path(tempfile.tempdir).exists()


def asleep(log: str, seconds: float) -> float:
    """Note this process and leave a row behind before sleeping."""
    with Path(log).open("a") as file:
        file.write(f"{os.getpid()}\n")
    (Path(tempfile.mkdtemp()) / "rows").write_text("a real row")
    time.sleep(seconds)
    return seconds


def ended_soon(log: Path) -> bool:
    """Whether every process that wrote to the log is gone within some seconds."""
    pids = [int(line) for line in log.read_text().split()]
    assert pids
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_deadline_stops_what_is_at_work_and_keeps_what_is_done(tmp_path: Path) -> None:
    log, scratch = tmp_path / "log", tmp_path / "scratch"
    scratch.mkdir()
    executor = in_processes(2)
    with executor.pieces(squared, range(2)) as warm:
        assert len(list(warm)) == 2
    start = time.monotonic()
    nap = partial(asleep, str(log))
    with executor.pieces(nap, [0.0, 600.0, 600.0, 600.0], scratch, Deadline.within(5)) as pieces:
        endings = {position: piece.ending for position, piece in pieces}
    assert endings == {0: Ending.DONE} | dict.fromkeys((1, 2, 3), Ending.LATE)
    assert time.monotonic() - start < 60
    assert ended_soon(log)
    assert not list(scratch.iterdir())
    assert running(2).map("piece", squared, range(3)) == [0, 1, 4], "others take their place"


@pytest.mark.parametrize("workers", [1, 2])
def test_out_of_time_is_not_applicable(workers: int) -> None:
    context = replace(running(workers), deadline=Deadline.within(1e-9))
    with pytest.raises(NotApplicable, match="ran out of time"):
        context.map("piece", squared, range(3))


def test_one_piece_goes_elsewhere_when_it_may_have_to_be_stopped() -> None:
    executor = in_processes(2)
    for deadline, elsewhere in ((NEVER, False), (Deadline.within(600), True)):
        with executor.pieces(where, [0], deadline=deadline) as pieces:
            [(_, piece)] = pieces
        assert (piece.result != os.getpid()) is elsewhere


def dying(x: int) -> int:
    if x == 1:
        os._exit(1)
    return x


def test_a_process_that_dies_is_told_of() -> None:
    with pytest.raises(PluginError, match="ended before it answered"):
        running(2).map("piece", dying, range(3))
    assert running(2).map("piece", squared, range(3)) == [0, 1, 4]


SCRIPT = """
import signal, sys
sys.path[:0] = {paths!r}
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run
import test_execution
from functools import partial
from pathlib import Path
from synth_audit.execution.executor import in_processes

if __name__ == "__main__":
    nap = partial(test_execution.asleep, {log!r})
    with in_processes(2).pieces(nap, [600.0] * 2, Path({scratch!r})) as pieces:
        list(pieces)
"""


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_when_the_parent_ends_its_processes_do(kill: signal.Signals, tmp_path: Path) -> None:
    log, scratch, script = tmp_path / "log", tmp_path / "scratch", tmp_path / "script.py"
    scratch.mkdir()
    paths = [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    script.write_text(SCRIPT.format(paths=paths, log=str(log), scratch=str(scratch)))
    parent = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (log.exists() and log.read_text().count("\n") == 2):
        time.sleep(0.1)
    try:
        parent.send_signal(kill)
        parent.wait(30)
    finally:
        parent.kill()
    assert ended_soon(log)
    if kill is signal.SIGINT:
        assert not list(scratch.iterdir()), "rows were left behind"


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is asked")
def test_what_a_call_freed_goes_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace(malloc_trim=asked.append))
    assert attempt(None, partial(squared, 3)).result == 9
    assert attempt(None, partial(refused, 2)).ending is Ending.FAILED
    assert asked == [0, 0]
    assert running(1).map("piece", squared, [2]) == [4], "and of what is done in this process"
    assert asked == [0, 0, 0, 0], "before and after"


def test_a_call_beside_the_pool_is_made_while_the_pool_works() -> None:
    began = threading.Event()

    def call() -> str:
        began.set()
        return threading.current_thread().name

    with in_processes(2).beside(call) as result:
        assert began.wait(10)
        assert result() != threading.current_thread().name
    with Executor().beside(call) as result:
        began.clear()
        assert result() == threading.current_thread().name
        assert began.is_set()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_beside_the_pool_fails_where_its_result_is_asked_for(workers: int) -> None:
    called = in_processes(workers).beside(partial(refused, 2))
    with called as result, pytest.raises(NotApplicable, match="no 2"):
        result()


@pytest.fixture
def clock(monkeypatch):
    """The time that deadlines read: it stands unless it is moved."""
    clock = SimpleNamespace(now=1_000_000.0)
    monkeypatch.setattr(executor, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


def test_it_passes_once_and_not_before(clock):
    soon = Deadline.within(0.5)
    clock.now += 0.25
    soon.check()
    assert soon.left == 0.25
    clock.now += 0.25
    assert soon.passed
    assert soon.left == 0
    with pytest.raises(OutOfTime):
        soon.check()
    assert issubclass(OutOfTime, NotApplicable)


def test_never_does_not():
    NEVER.check()
    assert Deadline.within(None) == NEVER == NEVER.again()
    assert not NEVER.passed


def test_a_stage_gets_the_whole_time_again(clock):
    spent = Deadline(at=clock.now - 1, limit=60)
    assert spent.passed
    assert spent.again().left == 60


def test_it_means_the_same_moment_in_another_process(clock):
    there = pickle.loads(pickle.dumps(Deadline.within(60)))  # noqa: S301  (our own bytes)
    assert there.left == 60
