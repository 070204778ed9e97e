"""Does equal pieces of work, one by one or in processes; the results do not depend on where."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from synth_audit.core.files import temporary_folder

Item = TypeVar("Item")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Executor:
    """Where work is done: in this process with one worker, in others with more."""

    workers: int = 1

    @contextmanager
    def over(
        self, work: Callable[[Item], Done], items: Sequence[Item], scratch: Path | None = None
    ) -> Iterator[Iterator[Done]]:
        """Results of ``work`` on each of ``items``, in order; the block ends before anything is left behind.

        Args:
            work: must depend on its argument alone, draws included, and be importable by name.
            scratch: where temporary folders are made.

        Raises:
            Exception: whatever ``work`` raises, of the first item that fails.
        """
        if self.workers < 2 or len(items) < 2:
            yield map(work, items)
            return
        with in_processes(self.workers, [partial(_tried, work, i) for i in items], scratch) as pieces:
            # Done again here, a failure is the same error at the same place as without processes.
            yield (
                work(item) if piece is None else piece.result
                for item, piece in zip(items, pieces, strict=True)
            )


@contextmanager
def in_processes(
    workers: int, calls: Sequence[Callable[[], Done]], scratch: Path | None = None
) -> Iterator[Iterator[Done]]:
    """What the calls return, in order, each made in another process.

    However it ends, the processes end first and then what they left in temporary folders is deleted: one that
    is stopped cannot do so itself.
    """
    from joblib import Parallel, delayed  # here, since a code location must not load it

    with temporary_folder(scratch) as folder, warnings.catch_warnings():
        # Where one fails, those under way are given up, which joblib finds worth a warning.
        warnings.filterwarnings("ignore", "[0-9]+ tasks which", UserWarning)
        work = (delayed(_within)(folder, call) for call in calls)
        with closing(Parallel(n_jobs=workers, return_as="generator")(work)) as done:
            yield done


def _within(folder: str, call: Callable[[], Done]) -> Done:
    tempfile.tempdir = folder
    try:
        return call()
    finally:
        tempfile.tempdir = None


@dataclass(frozen=True)
class _Piece(Generic[Done]):
    result: Done


def _tried(work: Callable[[Item], Done], item: Item) -> _Piece[Done] | None:
    """The result, or None for a failure, whose error might not survive the way between processes."""
    try:
        return _Piece(work(item))
    except (Exception, SystemExit):
        return None
