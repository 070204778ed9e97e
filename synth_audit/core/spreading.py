"""Spreads the equal pieces of one audit's work over processes; the results do not depend on how many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
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
            pieces = (_Piece(work(item)) for item in items)
        else:
            from joblib import Parallel, delayed  # here, since a code location must not load it

            pieces = Parallel(n_jobs=self.workers, return_as="generator")(
                delayed(_tried)(work, item) for item in items
            )
        with closing(pieces):
            for item, piece in zip(items, pieces, strict=True):
                # Done again here, a failure is the same error at the same place as without processes.
                found.append(work(item) if piece is None else piece.result)
                self._tell(what, len(found), len(items))
        return found

    def _tell(self, what: str, done: int, total: int) -> None:
        if self.tell is not None and done < total:
            self.tell(f"{what} {done + 1} of {total}")


@dataclass(frozen=True)
class _Piece(Generic[Done]):
    result: Done


def _tried(work: Callable[[Item], Done], item: Item) -> _Piece[Done] | None:
    """The result, or None for a failure, whose error might not survive the way between processes."""
    try:
        return _Piece(work(item))
    except (Exception, SystemExit):
        return None
