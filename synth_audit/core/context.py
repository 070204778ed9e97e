"""The run context: how the work is done, in one value that every step hands on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from synth_audit.core.cache import Cache
from synth_audit.core.errors import PluginError
from synth_audit.core.execution import Executor
from synth_audit.core.files import temporary_folder
from synth_audit.core.seeds import child_rng

Item = TypeVar("Item")
Done = TypeVar("Done")


class Progress(Protocol):
    """Called before and after each piece of long work."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """``done`` of ``total`` pieces are finished; ``what`` is under way."""


def silent(what: str, done: int, total: int) -> None:
    """Report no progress."""


_HERE = Executor()
_NOTHING_KEPT = Cache()


@dataclass(frozen=True, eq=False, kw_only=True)
class RunContext:
    """How the work is done; but for the seed and the draws, nothing in it moves a number.

    Attributes:
        seed: the plan's public seed. An instrument that several audits share draws from a named child of it.
        draws: what :attr:`rng` is; None outside an audit.
        executor: where equal pieces of work are done.
        cache: keeps what is costly and shared, for the length of the run.
        progress: told what is under way.
        scratch: where temporary folders are made; the system's place for them if None.
    """

    seed: int = 0
    draws: np.random.Generator | None = None
    executor: Executor = _HERE
    cache: Cache = _NOTHING_KEPT
    progress: Progress = silent
    scratch: Path | None = None

    def __reduce__(self) -> tuple[Callable[..., RunContext], tuple[Any, ...]]:
        """In another process the work goes one by one and in silence: it has no processes of its own."""
        return _elsewhere, (self.seed, self.draws, self.cache)

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

    def map(self, what: str, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
        """Results of ``work`` on each of ``items``, in order, whoever does it.

        Args:
            what: what one piece is called, such as ``iteration``.
            work: must depend on its argument alone, draws included, and be importable by name.

        Raises:
            Exception: whatever ``work`` raises, of the first item that fails.
        """
        found: list[Done] = []
        total = len(items)
        if total:
            self.progress(what, 0, total)
        with self.executor.over(work, items, self.scratch) as pieces:
            for piece in pieces:
                found.append(piece)
                self.progress(what, len(found), total)
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
        if self.cache.folder is not None:
            yield self
            return
        with temporary_folder(self.scratch) as folder:
            yield replace(self, cache=replace(self.cache, folder=Path(folder)))


SERIAL = RunContext()
"""One by one, in this process and in silence, keeping nothing."""


def _elsewhere(seed: int, draws: np.random.Generator | None, cache: Cache) -> RunContext:
    return RunContext(seed=seed, draws=draws, cache=cache)
