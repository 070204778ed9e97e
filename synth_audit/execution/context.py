"""The run context: how the work is done, in one value that every step hands on, with cache and device."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from synth_audit.errors import OutOfTime, PluginError, ProcessLost
from synth_audit.execution import Device
from synth_audit.execution.executor import NEVER, Deadline, Done, Ending, Executor, Item, Piece
from synth_audit.execution.seeds import child_rng
from synth_audit.files import read_plain, replacing, temporary_folder
from synth_audit.hashing import framed

_HERE = Executor()

EVIDENCE_KEY = "SYNTH_AUDIT_EVIDENCE_KEY"
"""Environment variable of the key that seals evidence; whoever has it can make evidence."""

_SEAL_BYTES = 32
"""Of HMAC-SHA256."""


@dataclass(frozen=True)
class Cache:
    """A folder of results under the hash of everything they were made from.

    Without a folder nothing is kept and everything is made anew. The folder holds what was learnt from
    real rows: whoever gives it keeps it restricted and deletes it after the run.

    Attributes:
        scope: part of every key: the commitment to the salt under which the rows were split.
        secret: seals the results. One that is damaged, or sealed with another secret, counts as missing.
        used: file names of the results that were found or put.
    """

    folder: Path | None = None
    scope: str = ""
    secret: bytes = field(default=b"", repr=False)
    used: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def keeps(self) -> bool:
        """False without a folder, and on another machine, which has no such folder."""
        return self.folder is not None and self.folder.is_dir()

    def get(self, *inputs: str, make: Callable[[], bytes]) -> bytes:
        """What ``make`` returns, from the folder if it was made from the same inputs before.

        Several processes may ask at once: one makes it, the others wait for it.

        Args:
            inputs: everything that the result depends on, such as content hashes, settings and seeds.
        """
        if self.folder is None or not self.keeps:
            return make()
        path = self.folder / self._key(inputs)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (made := self.find(*inputs)) is None:
                self.put(*inputs, made=(made := make()))
            return made

    def folder_of(self, *inputs: str, fill: Callable[[Path], bool]) -> Path | None:
        """A folder of files that were made from these inputs; None when they may not be kept.

        Args:
            inputs: see :meth:`get`.
            fill: writes into an empty folder of mode 0700; false when what it made must not be kept.
        """
        if self.folder is None:
            return None
        path = self.folder / self._key(inputs)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path
            new = path.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)  # of one that failed
            new.mkdir(mode=0o700)
            if not fill(new):
                return None
            new.rename(path)
            return path

    def find(self, *inputs: str) -> bytes | None:
        """What was made from these inputs before; None if nothing was, or its seal does not hold."""
        if self.folder is None:
            return None
        key = self._key(inputs)
        try:
            content = read_plain(self.folder / key)
        except OSError:
            return None
        seal, made = content[:_SEAL_BYTES], content[_SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._seal(key, made)):
            return None
        self.used.add(key)
        return made

    def put(self, *inputs: str, made: bytes) -> None:
        """Keep what was made from these inputs."""
        if self.folder is not None:
            key = self._key(inputs)
            with replacing(self.folder / key, private=True) as temporary:
                temporary.write_bytes(self._seal(key, made) + made)
            self.used.add(key)

    def delete_unused(self) -> None:
        """Delete what was neither found nor put; what another run deletes meanwhile is no error."""
        with suppress(OSError):
            for path in [*self.folder.iterdir()] if self.folder else []:
                if path.name not in self.used:
                    path.unlink(missing_ok=True)

    def _seal(self, key: str, made: bytes) -> bytes:
        return hmac.digest(self.secret, framed([key, made]), "sha256")

    def _key(self, inputs: Sequence[str]) -> str:
        return hashlib.sha256(framed([self.scope, *inputs])).hexdigest()


class Progress(Protocol):
    """Called before and after each piece of long work."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """``done`` of ``total`` pieces are finished; ``what`` is under way. 0 of 0 where none are counted."""


def spoken(say: Callable[[str], None], every: float = 20.0) -> Progress:
    """Progress as a line now and then, for where no bar can be drawn.

    Args:
        every: seconds between two lines; work that is over before says nothing. The end of work that was
            spoken of is always told.
    """
    start = last = time.monotonic()
    open_total = 0  # pieces of the work that the last line left unfinished

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last, open_total
        if (now := time.monotonic()) - last >= every or (done == total == open_total and total):
            last, open_total = now, total if done < total else 0
            say(f"{now - start:.0f} s: {what}" + (f", {done} of {total} done" if total else ""))

    return tell


@contextmanager
def repeated(tell: Progress, every: float = 1.0) -> Iterator[Progress]:
    """The same progress, which is told again while a piece takes long, so that the time moves on.

    Args:
        every: seconds between two calls.
    """
    over, last = threading.Event(), ("", 0, 0)

    def remember(what: str, done: int, total: int) -> None:
        nonlocal last
        last = what, done, total
        tell(*last)

    def repeat() -> None:
        while not over.wait(every):
            if last[0]:
                tell(*last)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield remember
    finally:
        over.set()
        thread.join()


def silent(what: str, done: int, total: int) -> None:
    """Report no progress."""


_NOTHING_KEPT = Cache()


@dataclass(frozen=True, eq=False, kw_only=True)
class RunContext:
    """How the work is done; but for the seed and the draws, nothing in it moves a number.

    Attributes:
        seed: what all draws start from. An instrument that several audits share draws from a named child of
            it.
        draws: what :attr:`rng` is; None outside an audit.
        executor: where equal pieces of work are done.
        cache: keeps what is costly and shared, for the length of the run.
        journal: keeps each audit's outcome as it ends, which a later run of the same tables takes over.
        progress: told what is under way.
        deadline: when the work must be over.
        device: what networks, and the scores of long searches, are computed on; ``auto`` for a GPU where
            there is one. Another device may move the last digits of a network's numbers, not those of a
            search.
        scratch: where temporary folders are made; the system's place for them if None.
    """

    seed: int = 0
    draws: np.random.Generator | None = None
    executor: Executor = _HERE
    cache: Cache = _NOTHING_KEPT
    journal: Cache = _NOTHING_KEPT
    progress: Progress = silent
    deadline: Deadline = NEVER
    device: Device = "cpu"
    scratch: Path | None = None

    def __reduce__(self) -> tuple[Callable[[], RunContext], tuple[()]]:
        """In another process the work goes one by one and in silence: it has no processes of its own."""
        kept = {n: getattr(self, n) for n in ("seed", "draws", "cache", "deadline", "device")}
        return partial(RunContext, **kept), ()

    @property
    def rng(self) -> np.random.Generator:
        """An audit's own draws: the runner hands each a child of the seed."""
        if self.draws is None:
            raise PluginError(
                "there is nothing to draw from outside an audit",
                where="RunContext.rng",
                fix="take a child of the context, named after what is drawn: `context.child(...)`",
            )
        return self.draws

    def map(
        self,
        what: str,
        work: Callable[[Item], Done],
        items: Sequence[Item],
        *,
        before: int = 0,
        total: int | None = None,
    ) -> list[Done]:
        """Results of ``work`` on each of ``items``, in order, whoever does it.

        Args:
            what: what one piece is called, such as ``iteration``.
            work: must depend on its argument alone, draws included, and be importable by name.
            before: pieces that earlier rounds of the same work did. total: of all rounds, at most; progress
                counts on from round to round.

        Raises:
            Exception: whatever ``work`` raises, of the first item that fails.
            OutOfTime: the deadline passed before all was done.
            ProcessLost: a process ended before it answered.
        """
        found: list[Done] = []
        total = before + len(items) if total is None else total
        if items:
            self.progress(what, before, total)
        with self.executor.pieces(work, items, self.scratch, self.deadline) as ends:
            early: dict[int, Piece[Done]] = {}
            for position, piece in ends:
                early[position] = piece
                while len(found) in early:
                    found.append(_result(early.pop(len(found)), work, items[len(found)]))
                    self.progress(what, before + len(found), total)
        return found

    def child(self, *stream: str) -> RunContext:
        """The same context with the draws of that name."""
        return replace(self, draws=child_rng(self.seed, *stream))

    def within(self, prefix: str) -> RunContext:
        """The same context, whose progress is told with this before it."""

        def tell(what: str, done: int, total: int) -> None:
            self.progress(prefix + what, done, total)

        return replace(self, progress=tell)

    @contextmanager
    def keeping(self) -> Iterator[RunContext]:
        """This context with a cache that keeps for certain: its own, or one for the length of the block."""
        if self.cache.keeps:
            yield self
            return
        with temporary_folder(self.scratch) as folder:
            yield replace(self, cache=replace(self.cache, folder=Path(folder)))


SERIAL = RunContext()
"""One by one, in this process and in silence, keeping nothing."""


def _result(piece: Piece[Done], work: Callable[[Item], Done], item: Item) -> Done:
    match piece.ending:
        case Ending.FAILED:
            return work(item)  # here, where the error is the same as without processes
        case Ending.LATE:
            raise OutOfTime
        case Ending.LOST:
            raise ProcessLost
    return cast("Done", piece.result)


def for_other_programs() -> dict[str, str]:
    """The environment without what only this program needs to know."""
    return {name: value for name, value in os.environ.items() if name != EVIDENCE_KEY}


def torch_device(wanted: str, what: str) -> str:
    """``cpu`` or ``cuda``.

    Args:
        wanted: ``cpu``, ``cuda``, or ``auto`` for a GPU where there is one.
        what: what asks, for a reader.

    Raises:
        PluginError: torch is not installed, or there is no such device.
    """
    try:
        from torch import cuda
    except ModuleNotFoundError as error:
        raise PluginError(
            f"{what} needs torch, which is not installed",
            expected="torch",
            fix="pip install 'synth-audit[deep]'",
        ) from error
    if wanted == "cuda" and not cuda.is_available():
        raise PluginError("no CUDA device was found", expected="a GPU", fix="set device to cpu or auto")
    return "cuda" if wanted != "cpu" and cuda.is_available() else "cpu"


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold torch to one thread: how it shares out a sum depends on how many there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
