"""Processes on this machine: joblib's loky, which starts each anew instead of forking."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from typing import Any, TypeVar

from synth_audit.core.execution.worker import end_with

Done = TypeVar("Done")

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
class Processes:
    """A pool of ``size`` processes; those that are idle serve the next who asks for as many."""

    size: int
    shares_files = True

    def submit(self, call: Callable[[], Done]) -> Future[Done]:
        """Have a call made."""
        made: Future[Done] = self._pool().submit(call)
        return made

    def stop(self, at_work: Collection[Future[Any]]) -> None:
        """Kill the processes, whatever is at work; the next call starts others."""
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
