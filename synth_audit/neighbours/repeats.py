"""Rows that occur several times, so that a search need look at each only once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Integers, Positions
from synth_audit.neighbours.search import Hidden, Nearest, SearchSpace, search

_LOOK = 1000
"""Rows looked at to see whether duplicates abound."""


class _Takes(Protocol):
    def take(self, rows: Positions, /) -> Self: ...


Prepared = TypeVar("Prepared", bound=_Takes)


@dataclass(frozen=True, eq=False)
class Repeats:
    """The different rows of a table.

    Attributes:
        first: position of the first row of each kind. count: how many rows are of it.
    """

    first: Positions
    count: Integers

    @classmethod
    def of(
        cls,
        numbers: Floats,
        labels: npt.NDArray[Any],
        but: int | None = None,
        place: Positions | None = None,
    ) -> Repeats | None:
        """The different rows; None where repeated rows are few, as a look at some of them tells.

        Args:
            numbers: shape (n, p). labels: shape (n, q). but: position of a row that does not count.
            place: of each row in the order in which the first of its kind is chosen; its position if none.
        """
        if not abound(numbers, labels):
            return None
        kinds = row_kinds(numbers, labels)
        order = np.arange(len(kinds)) if place is None else np.argsort(place)
        order = order if but is None else order[order != but]
        first, count = np.unique(kinds[order], return_index=True, return_counts=True)[1:]
        return cls(order[first], count)

    def restored(self, found: Nearest) -> Nearest:
        """Answers by the different rows, as positions among all rows."""
        return Nearest(found.first, found.second, self.first[found.index], found.ties)


def search_once(
    queries: Prepared,
    reference: Prepared,
    repeats: Repeats | None,
    between: Callable[[Prepared, Prepared], SearchSpace],
    but: int | None = None,
    place: Positions | None = None,
) -> Nearest:
    """Nearest reference rows, each of its different rows looked at once where rows repeat.

    Args:
        repeats: of the reference. between: the space of queries and reference rows.
        but: position of a reference row that is not looked at, nor counted in ``repeats``.
        place: as in :func:`~synth_audit.neighbours.search.search`.
    """
    if repeats is None:
        space = between(queries, reference)
        return search(space, None if but is None else Hidden(np.full(space.size[0], but)), place=place)
    space = between(queries, reference.take(repeats.first))
    places = None if place is None else place[repeats.first]
    return repeats.restored(search(space, copies=repeats.count, place=places))


def abound(numbers: Floats, labels: npt.NDArray[Any]) -> bool:
    """Whether many rows have a twin, by rows evenly spread: then equal rows are better searched once."""
    few = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), _LOOK)).astype(np.intp))
    return len(np.unique(row_kinds(numbers[few], labels[few]))) < 0.9 * len(few)


def row_kinds(*parts: npt.NDArray[Any]) -> Integers:
    """Numbers that rows share exactly when they are equal in all parts, shape (n,); of several (n, p)."""
    from pandas import factorize  # here, so that looking around stays light

    kinds = np.zeros(len(parts[0]), dtype=np.int64)
    for column in (column for part in parts for column in part.T):
        if kinds.max(initial=0) + 1 >= len(kinds):
            break  # all rows differ already
        values = factorize(np.ascontiguousarray(column))[0].astype(np.int64)
        kinds = factorize(kinds * (values.max(initial=0) + 1) + values)[0].astype(np.int64)
    return kinds


def repeated_at_most(kinds: Integers, most: int) -> Positions:
    """Positions of rows, ascending: the first of equal ones that are ``most`` or fewer, every one of others.

    Args:
        kinds: by :func:`row_kinds`, shape (n,).
    """
    often = np.bincount(kinds, minlength=1)[kinds] > most
    often[np.unique(kinds, return_index=True)[1]] = True
    return np.flatnonzero(often)


def copy_number(kinds: Integers, place: Positions | None = None) -> Integers:
    """How many equal rows stand before each row, shape (n,), by :func:`row_kinds`.

    Args:
        place: of each row in the order in which they stand; its position if left out.
    """
    order = np.argsort(kinds, kind="stable") if place is None else np.lexsort((place, kinds))
    starts = np.searchsorted(kinds[order], np.arange(kinds.max(initial=0) + 1))
    number = np.empty(len(kinds), dtype=np.int64)
    number[order] = np.arange(len(kinds)) - starts[kinds[order]]
    return number
