"""The executor: does equal pieces of work in threads or processes, until a deadline; equal results."""

from __future__ import annotations

import ctypes
import io
import math
import os
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, cast

import pyarrow as pa
from threadpoolctl import ThreadpoolController

from synth_audit.errors import OutOfTime
from synth_audit.execution import ExecutorName
from synth_audit.files import temporary_folder
from synth_audit.table.arrow import Place, Shelf
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.execution.dask_cluster import DaskWorkers

Done = TypeVar("Done")
Item = TypeVar("Item")

WORTH_A_FILE = 2**16
"""Bytes of a table from which on it goes as a file."""

ONE_AT_A_TIME = threading.RLock()
"""Held by the piece at work: where temporary files go, and how many threads algebra has, is settled for the
whole process, so that two pieces in threads of one process would move each other's last digits. A pool whose
workers have threads holds it earlier."""

_LOOK = 0.5
"""Seconds between two looks at whether the parent is alive."""

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
"""What tells a process how many threads its libraries may start."""

_IDLE = 300.0
"""Seconds after which a process without work ends."""


@dataclass(frozen=True)
class Deadline:
    """A moment by the wall clock, which processes and machines share; never, as it comes.

    Attributes:
        at: seconds since 1970. limit: seconds from start to end.
    """

    at: float = math.inf
    limit: float = math.inf

    @classmethod
    def within(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; never if None."""
        return NEVER if seconds is None else cls(time.time() + seconds, seconds)

    def again(self) -> Deadline:
        """As many seconds as this one had, from now."""
        return NEVER if self == NEVER else Deadline.within(self.limit)

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self.at - time.time())

    @property
    def passed(self) -> bool:
        """True from that moment on."""
        return time.time() >= self.at

    def check(self) -> None:
        """Go on, or raise ``OutOfTime``: what long work calls between its pieces."""
        if self.passed:
            raise OutOfTime


NEVER = Deadline()


class SharedValue:
    """What many pieces of work share and none changes: it goes to a cluster, or into a file, once for all.

    Its class must be importable by name, and it holds no tables.
    """


@dataclass(frozen=True)
class Packed(Generic[Done]):
    """A call without its tables and shared values; making it maps tables, and reads the others."""

    content: bytes

    def __call__(self) -> Done:
        """Make the call.

        Raises:
            Exception: whatever the call raises, or what it is made of cannot be had here.
        """
        # Packed by the process that started this one, in which nobody else has a part.
        call = cast("Callable[[], Done]", _Unpickler(io.BytesIO(self.content)).load())
        return call()


def packed(call: Callable[[], Done], shelf: Shelf) -> Packed[Done]:
    """The call for a process on this machine.

    Tables that lie in a mapped file stay where they are.

    Args:
        shelf: where other tables and shared values are put; its folder must last until the call was made.

    Raises:
        Exception: the call cannot be pickled.
    """
    from cloudpickle import CloudPickler  # here: a code location must not load it

    class Pickler(CloudPickler):  # type: ignore[misc]  # it has no types
        def persistent_id(self, thing: Any) -> Place | Path | None:
            if isinstance(thing, SharedValue):
                return shelf.pickled(thing)
            if not isinstance(thing, pa.Table) or thing.nbytes < WORTH_A_FILE:
                return None
            try:
                return shelf.place(thing)
            except pa.ArrowException:  # of types that no file holds: it goes with the others
                return None

        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, Table) and thing.place is not None and thing.place.path.exists():
                return Table.at, (thing.place, thing.schema, thing.known_fingerprint)
            return super().reducer_override(thing)

    content = io.BytesIO()
    Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(call)
    return Packed(content.getvalue())


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, place: Place | Path) -> Any:
        if isinstance(place, Place):
            return place.mapped()
        with place.open("rb") as file:
            return _Unpickler(file).load()


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


def attempt(folder: str | None, call: Callable[[], Done]) -> Piece[Done]:
    """Make a call; an error, which might not survive the way between processes, is told of without itself.

    Args:
        folder: where its temporary files go, deleted by whoever asked for the call. None, or one that is not
            on this machine: a folder of its own, deleted here.
    """
    with ONE_AT_A_TIME:
        if folder is not None and Path(folder).is_dir():
            return _in_folder(folder, call)
        with temporary_folder() as own:
            return _in_folder(own, call)


def _in_folder(folder: str, call: Callable[[], Done]) -> Piece[Done]:
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        return Piece(Ending.DONE, call())
    except (Exception, SystemExit):
        return Piece(Ending.FAILED)
    finally:
        tempfile.tempdir = before
        _return_memory()


def _return_memory() -> None:
    """Give the system back what was freed, which would else add up from call to call.

    Arrow's pool knows how. Of the C libraries only glibc does, which is asked where it is in use.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _here(work: Callable[[Item], Done], item: Item) -> Piece[Done]:
    try:
        return Piece(Ending.DONE, work(item))
    finally:
        _return_memory()


def end_with(parent: int) -> None:
    """End this process soon after its parent did, however that ended.

    A thread looks for it. The system's own signal would come too early: it is sent when the *thread* ends
    that started this process.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with the parent").start()


Pool: TypeAlias = "Processes | DaskWorkers"
"""Processes that take calls, here or elsewhere; the first says what is asked of both."""


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
            _return_memory()
            yield (
                (i, Piece(Ending.LATE) if deadline.passed else _here(work, item))
                for i, item in enumerate(items)
            )
            return
        with temporary_folder(scratch) as folder:
            # Where no folder is seen by both sides, tables must travel with each call.
            shelf = Shelf(Path(folder)) if self.pool.shares_files else None

            def call_of(i: int) -> Callable[[], Piece[Done]]:
                call: Callable[[], Done] = partial(work, items[i])
                return partial(attempt, folder if shelf else None, packed(call, shelf) if shelf else call)

            at_work: dict[Future[Piece[Done]], int] = {}
            try:
                yield _by_pool(self.pool, call_of, len(items), at_work, deadline)
            finally:
                if at_work:
                    self.pool.stop(at_work)


def _by_pool(
    pool: Pool,
    call_of: Callable[[int], Callable[[], Piece[Done]]],
    n: int,
    at_work: dict[Future[Piece[Done]], int],
    deadline: Deadline,
) -> Iterator[tuple[int, Piece[Done]]]:
    """Keep the pool busy without piling up calls in it, each of which may hold much.

    Args:
        call_of: the call of one of n pieces; raises whatever pickling it does.
    """
    todo = list(reversed(range(n)))
    while todo or at_work:
        while todo and len(at_work) < 2 * pool.size and not deadline.passed:
            i = todo.pop()
            try:
                call = call_of(i)
            except Exception:  # it cannot travel; why is met again, and told of, where it is done again
                yield i, Piece(Ending.FAILED)
                continue
            at_work[pool.submit(call)] = i
        done, _ = wait(at_work, None if deadline == NEVER else deadline.left, FIRST_COMPLETED)
        for future in done:
            yield at_work.pop(future), _ended(pool, future, deadline)
        if not done and deadline.passed:
            pool.stop(at_work)
            late = sorted([*at_work.values(), *todo])
            at_work.clear()
            yield from ((i, Piece[Done](Ending.LATE)) for i in late)
            return


def _ended(pool: Pool, future: Future[Piece[Done]], deadline: Deadline) -> Piece[Done]:
    try:
        return pool.result(future)
    # Pools and pickles raise what they like: which errors mean a loss, the pool says.
    except Exception as error:
        if pool.lost(error):
            return Piece(Ending.LATE if deadline.passed else Ending.LOST)
        # What could not travel there or back is met again, and told of, where it is done again.
        return Piece(Ending.FAILED)


@contextmanager
def opened(name: ExecutorName, workers: int = 1, scheduler: str | None = None) -> Iterator[Executor]:
    """The executor of that name for the length of the block.

    Args:
        workers: processes; for ``dask`` those of a cluster on this machine, without ``scheduler``.
        scheduler: address of a Dask scheduler, such as ``tls://10.0.0.5:8786``.

    Raises:
        PlanError: Dask is not installed, or no scheduler with workers of these versions answers.
    """
    if name != "dask":
        yield in_processes(workers if name == "processes" else 1)
        return
    from synth_audit.execution.dask_cluster import connected

    with connected(workers, scheduler) as cluster:
        yield Executor(cluster)


def in_processes(workers: int) -> Executor:
    """An executor of so many processes on this machine; of one, this process itself."""
    return Executor(Processes(workers)) if workers > 1 else Executor()


@dataclass(frozen=True)
class Processes:
    """A pool of processes; those that are idle serve the next who asks for as many.

    Attributes:
        size: calls that are worked on at a time.
        shares_files: whether its processes end before a folder of ours is deleted, and see it until then.
    """

    size: int
    shares_files: ClassVar[bool] = True

    def submit(self, call: Callable[[], Done]) -> Future[Done]:
        """Have a call made; it must survive the way to another process."""
        made: Future[Done] = self._pool().submit(call)
        return made

    def result(self, made: Future[Done]) -> Done:
        """What a call returned; raises what it raised."""
        return made.result()

    def stop(self, at_work: Collection[Future[Any]]) -> None:
        """End what is still at work by force; the next call starts other processes."""
        self._pool().shutdown(wait=True, kill_workers=True)

    def lost(self, error: Exception) -> bool:
        """True when a process died of a call, its own or one beside it."""
        return isinstance(error, BrokenExecutor)

    def _pool(self) -> Any:
        from joblib.externals.loky import get_reusable_executor  # here: a code location must not load it

        share = str(max(1, (os.cpu_count() or 1) // self.size))
        return get_reusable_executor(
            max_workers=self.size,
            timeout=_IDLE,
            initializer=end_with,
            initargs=(os.getpid(),),
            env={name: os.environ.get(name, share) for name in _THREADS},
        )


def over_blocks(n: int, size: int, work: Callable[[slice], Done], threads: int | None = None) -> list[Done]:
    """Results of ``work`` on the slices of 0 … n−1 of at most ``size`` rows, in order.

    Numpy lets go of the interpreter inside its loops, so threads are enough. Linear algebra is held to
    one thread of its own meanwhile: each block is then computed alike, whoever computes it.

    Args:
        threads: as many as ``OMP_NUM_THREADS`` says if left out, as for the libraries underneath, which
            processes of a pool are told so that they do not contend; else as many as there are cores.
    """
    blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    workers = min(len(blocks), threads or allowed_threads())
    with single_threaded_algebra():
        if workers < 2:
            return [work(block) for block in blocks]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, blocks))


def allowed_threads() -> int:
    """Threads that this process may use."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(told)) if told.isdecimal() else os.cpu_count() or 1


@contextmanager
def single_threaded_algebra() -> Iterator[None]:
    """Hold the linear algebra library to one thread, whose rounding does not depend on the machine's load."""
    with _controller(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@contextmanager
def single_threaded() -> Iterator[None]:
    """Hold every library that has been loaded to one thread; models bring libraries of their own, so import
    first what fits them."""
    with _controller(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """What holds the libraries, looked up again only when a module was imported since: a look-up takes
    milliseconds, a search of few rows less."""
    return ThreadpoolController()
