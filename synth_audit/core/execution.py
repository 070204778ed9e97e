"""Spreads the equal pieces of one audit's work over processes; the results do not depend on how many."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Generic, TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


@dataclass(frozen=True, eq=False)
class Spread:
    """What an audit gives its pieces to.

    Attributes:
        workers: processes. tell: called with what is under way.
    """

    workers: int = 1
    tell: Callable[[str], None] | None = None

    def __reduce__(self) -> tuple[type[Spread], tuple[()]]:
        """In another process the work goes one by one and in silence: it has no processes of its own."""
        return Spread, ()

    def over(self, what: str, work: Callable[[Item], Done], items: Sequence[Item]) -> list[Done]:
        """Results of ``work`` on each of ``items``, in order.

        Args:
            what: what one piece is called, such as ``iteration``.
            work: must depend on its argument alone, draws included, and be importable by name.

        Raises:
            Exception: whatever ``work`` raises, of the first item that fails.
        """
        found: list[Done] = []
        self._tell(what, 0, len(items))
        if self.workers < 2 or len(items) < 2:
            doing: AbstractContextManager[Iterator[_Piece[Done] | None]] = nullcontext(
                _Piece(work(item)) for item in items
            )
        else:
            doing = elsewhere(self.workers, [partial(_tried, work, item) for item in items])
        with doing as pieces:
            for item, piece in zip(items, pieces, strict=True):
                # Done again here, a failure is the same error at the same place as without processes.
                found.append(work(item) if piece is None else piece.result)
                self._tell(what, len(found), len(items))
        return found

    def _tell(self, what: str, done: int, total: int) -> None:
        if self.tell is not None and done < total:
            self.tell(f"{what} {done + 1} of {total}")


@contextmanager
def elsewhere(workers: int, calls: Sequence[Callable[[], Done]]) -> Iterator[Iterator[Done]]:
    """What the calls return, in order, each made in another process.

    However it ends, the processes end first and then what they left in temporary folders is deleted: one that
    is stopped cannot do so itself.
    """
    from joblib import Parallel, delayed  # here, since a code location must not load it

    with TemporaryDirectory(prefix="synth-audit-") as folder, warnings.catch_warnings():  # mode 0700
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
