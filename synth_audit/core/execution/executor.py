"""The executor: hands pieces of work to a pool and says how each ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from synth_audit.core.arrow_files import Shelf
from synth_audit.core.execution.deadline import NEVER, Deadline
from synth_audit.core.execution.packing import packed
from synth_audit.core.execution.worker import CallResult, attempt
from synth_audit.core.files import temporary_folder
from synth_audit.core.workplace import ExecutorName

Item = TypeVar("Item")
Done = TypeVar("Done")


class Ending(Enum):
    """How a piece of work ended."""

    DONE = auto()
    FAILED = auto()
    """It raised, or could not travel: done again here, it is the same error at the same place."""
    LOST = auto()
    """Its process ended before it answered."""
    LATE = auto()
    """The deadline passed before it was done."""


@dataclass(frozen=True)
class Piece(Generic[Done]):
    """How a piece ended, and its result if it is done."""

    ending: Ending
    result: Done | None = None


class Pool(Protocol):
    """Processes that take calls, here or elsewhere."""

    @property
    def size(self) -> int:
        """Calls that are worked on at a time."""
        ...

    @property
    def shares_files(self) -> bool:
        """True when its processes end before a folder of ours is deleted, and see it until then."""
        ...

    def submit(self, call: Callable[[], Done]) -> Future[Done]:
        """Have a call made; it must survive the way to another process."""
        ...

    def stop(self, at_work: Collection[Future[Any]]) -> None:
        """End what is still at work, by force where that is possible, and be ready for new calls."""
        ...

    def lost(self, error: Exception) -> bool:
        """Whether the error of a call means that its process ended before it answered."""
        ...


@dataclass(frozen=True)
class Executor:
    """Where equal pieces of work are done: one by one in this process, or by a pool."""

    pool: Pool | None = None

    @contextmanager
    def beside(self, call: Callable[[], Done]) -> Iterator[Callable[[], Done]]:
        """Have a call made in this process while a pool works: this process only waits for it meanwhile.

        Args:
            call: must not depend on what is done in the block, nor on random draws of the process.

        Yields:
            What returns its result, or raises what it raised. Without a pool the call is made only then.
        """
        if self.pool is None:
            yield call
            return
        with ThreadPoolExecutor(1) as thread:
            yield thread.submit(call).result

    @contextmanager
    def pieces(
        self,
        work: Callable[[Item], Done],
        items: Sequence[Item],
        scratch: Path | None = None,
        deadline: Deadline = NEVER,
    ) -> Iterator[Iterator[tuple[int, Piece[Done]]]]:
        """How ``work`` on each of ``items`` ended, by its position, in the order in which they end.

        However the block ends, processes that are still at work end first, and then what they left in
        temporary folders is deleted: one that is stopped cannot do so itself.

        Args:
            work: must depend on its argument alone, draws included, and be importable by name. What it raises
                goes up from this process; in another it makes a piece that failed.
            scratch: where temporary folders are made.
            deadline: pieces that are not done by then are late; processes at work on them are killed.
        """
        if self.pool is None or (len(items) < 2 and deadline == NEVER):  # what may be stopped goes elsewhere
            yield _one_by_one(work, items, deadline)
            return
        with temporary_folder(scratch) as folder:
            calls = _Calls(work, items, folder if self.pool.shares_files else None)
            at_work: dict[Future[CallResult[Done]], int] = {}
            try:
                yield _by_pool(self.pool, calls, at_work, deadline)
            finally:
                if at_work:
                    self.pool.stop(at_work)


def _one_by_one(
    work: Callable[[Item], Done], items: Sequence[Item], deadline: Deadline
) -> Iterator[tuple[int, Piece[Done]]]:
    for i, item in enumerate(items):
        yield i, Piece(Ending.LATE) if deadline.passed else Piece(Ending.DONE, work(item))


class _Calls(Generic[Item, Done]):
    """The pieces as calls that can be sent away.

    Args:
        folder: where their temporary files go, and the tables that they work on; None where these must travel
            with each call, since there is no folder that both sides see.
    """

    def __init__(self, work: Callable[[Item], Done], items: Sequence[Item], folder: str | None) -> None:
        self._work, self._items, self._folder = work, items, folder
        self._shelf = folder and Shelf(Path(folder))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, i: int) -> Callable[[], CallResult[Done]]:
        """The call of one piece; raises whatever pickling it does."""
        call: Callable[[], Done] = partial(self._work, self._items[i])
        return partial(attempt, self._folder, packed(call, self._shelf) if self._shelf else call)


def _by_pool(
    pool: Pool,
    calls: _Calls[Item, Done],
    at_work: dict[Future[CallResult[Done]], int],
    deadline: Deadline,
) -> Iterator[tuple[int, Piece[Done]]]:
    """Keep the pool busy without piling up calls in it, each of which may hold much."""
    todo = list(reversed(range(len(calls))))
    while todo or at_work:
        while todo and len(at_work) < 2 * pool.size and not deadline.passed:
            i = todo.pop()
            try:
                call = calls[i]
            except Exception:  # it cannot travel; why is met again, and told of, where it is done again
                yield i, Piece(Ending.FAILED)
                continue
            at_work[pool.submit(call)] = i
        done, _ = wait(at_work, _seconds(deadline), FIRST_COMPLETED)
        for future in done:
            yield at_work.pop(future), _ended(pool, future, deadline)
        if not done and deadline.passed:
            pool.stop(at_work)
            late = sorted([*at_work.values(), *todo])
            at_work.clear()
            yield from ((i, Piece[Done](Ending.LATE)) for i in late)
            return


def _seconds(deadline: Deadline) -> float | None:
    return None if math.isinf(deadline.left) else deadline.left


def _ended(pool: Pool, future: Future[CallResult[Done]], deadline: Deadline) -> Piece[Done]:
    try:
        tried = future.result()
    # Pools and pickles raise what they like: which errors mean a loss, the pool says.
    except Exception as error:
        if pool.lost(error):
            return Piece(Ending.LATE if deadline.passed else Ending.LOST)
        # What could not travel there or back is met again, and told of, where it is done again.
        return Piece(Ending.FAILED)
    return Piece(Ending.FAILED) if tried.failed else Piece(Ending.DONE, tried.result)


@contextmanager
def opened(name: ExecutorName, workers: int = 1, scheduler: str | None = None) -> Iterator[Executor]:
    """The executor of that name for the length of the block.

    Args:
        workers: processes; for ``dask`` those of a cluster on this machine, without ``scheduler``.
        scheduler: address of a Dask scheduler, such as ``tls://10.0.0.5:8786``.

    Raises:
        PlanError: Dask is not installed, or no scheduler with workers of these versions answers.
    """
    if name == "serial" or (name == "processes" and workers < 2):
        yield Executor()
    elif name == "processes":
        yield Executor(_processes(workers))
    else:
        from synth_audit.core.execution.dask_cluster import connected

        with connected(workers, scheduler) as cluster:
            yield Executor(cluster)


def in_processes(workers: int) -> Executor:
    """An executor of so many processes on this machine."""
    return Executor(_processes(workers)) if workers > 1 else Executor()


def _processes(workers: int) -> Any:
    from synth_audit.core.execution.processes import Processes

    return Processes(workers)
