"""Exact nearest neighbours: one search for every distance, in memory that does not grow with n².

A *space* says how far a query is from a reference row twice: quickly, by a score for whole blocks of pairs
that may be a little off, and exactly, for single pairs. The search scores all pairs and computes exactly
whatever could be nearest, or tied with it, given how far off the scores may be. Where the reference is large
it stands in leaves, and those whose bound says that nothing near is in them are not scored at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from synth_audit.core.arrays import Floats, Integers, Positions
from synth_audit.kernels import gpu_scores
from synth_audit.kernels._hidden import Hidden, OwnRow
from synth_audit.kernels._pruned import pruned_candidates
from synth_audit.kernels._tiles import Buffers, SearchSpace, beyond, candidates, candidates_on, slices
from synth_audit.kernels.leaves import Leaves
from synth_audit.kernels.parallel import allowed_threads, over_blocks

Answer = TypeVar("Answer")

_PAIRS = 2**20
"""Pairs whose distance is computed exactly at a time."""

_AT_ONCE, _BOUNDS = 2**14, 2**24
"""Queries that meet a leaf together, and bounds of leaves held at a time."""

_MANY, _LARGE, _WIDE = 512, 4096, 64
"""Queries and reference rows from which on leaves are worth their making, and columns up to which they are:
in more of them almost every leaf is near every query."""

_TRIED = 64
"""Queries on which it is tried whether leaves can be ruled out at all."""

_SEARCHED, _FEWEST = 4 * 10**9, 1_000
"""Pairs of rows that a search of a large reference may take, and queries that it has in any case."""

_WORTH_TRYING = 2**12
"""Queries up to which a trial takes longer than finding out with all of them that no leaf can be spared."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest reference rows of each query, shape (n,) each.

    Attributes:
        first: distance to the nearest reference row; exactly 0 for an equal row.
        second: distance to the next one (equal to ``first`` when tied; inf when there is no second row).
        index: position of a nearest reference row, the first of several in the order that was asked for.
        ties: number of reference rows at that distance, at least 1.
    """

    first: Floats
    second: Floats
    index: Positions
    ties: Integers

    @classmethod
    def joined(cls, parts: list[Nearest]) -> Nearest:
        """The answers to several blocks of queries as one."""
        if not parts:
            nothing = np.empty(0)
            return cls(nothing, nothing, np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64))
        return cls(
            np.concatenate([p.first for p in parts]),
            np.concatenate([p.second for p in parts]),
            np.concatenate([p.index for p in parts]),
            np.concatenate([p.ties for p in parts]),
        )


@dataclass(frozen=True, eq=False)
class NearestK:
    """The k nearest reference rows of each query, nearest first.

    Attributes:
        distance, index: to and position of each, shape (n, k); ties in the order that was asked for.
        ties: number of reference rows at the least distance, shape (n,), at least 1.
    """

    distance: Floats
    index: Positions
    ties: Integers

    @classmethod
    def joined(cls, parts: list[NearestK], k: int) -> NearestK:
        """The answers to several blocks of queries as one."""
        if not parts:
            none = np.empty((0, k))
            return cls(none, none.astype(np.intp), np.empty(0, dtype=np.int64))
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in _FIELDS))

    @property
    def nearest(self) -> Nearest:
        """What :func:`search` tells; k ≥ 2."""
        return Nearest(self.distance[:, 0], self.distance[:, 1], self.index[:, 0], self.ties)


_FIELDS = ("distance", "index", "ties")


def most_queries(wanted: int, n_reference: int) -> int:
    """How many rows are looked up in so large a reference, so that the time of a search has a bound.

    As many as are wanted up to 4·10⁹ pairs of rows, then fewer, 1,000 at least: of 10,000 all in 400,000
    rows and 2,500 in 1,600,000. Shares of n rows are known to ``± 1 / √n`` at most; a copied row is among
    them with 95 % probability if the share of such rows is 3 / n or more.
    """
    return min(wanted, max(_FEWEST, _SEARCHED // max(1, n_reference)))


def worth_leaves(n: int, m: int, width: int) -> bool:
    """Whether so many queries of so many reference rows of that width are found faster leaf by leaf."""
    return n >= _MANY and m >= _LARGE and width <= _WIDE and gpu_scores.device_for(n, m) is None


def search(
    space: SearchSpace,
    hidden: Hidden | None = None,
    copies: Integers | None = None,
    place: Positions | None = None,
) -> Nearest:
    """Find the nearest reference rows of every query, exactly.

    Args:
        hidden: reference rows that are left out, query by query.
        copies: how many equal rows each reference row stands for, shape (m,); 1 if left out.
        place: of each reference row in the order in which the first of several nearest ones is chosen, shape
            (m,); its position if left out.
    """

    def answer(block: slice, row: Positions, column: Positions) -> Nearest:
        distance = _exact(space, row + block.start, column)
        count = np.ones(len(row), dtype=np.int64) if copies is None else copies[column]
        return _two_least(row, column, distance, count, block.stop - block.start, place)

    return Nearest.joined(_answers(space, 2, hidden, answer))


def search_k(space: SearchSpace, k: int, place: Positions | None = None) -> Positions:
    """Positions of the k ≤ m nearest reference rows, in order of distance, ties by place; shape (n, k).

    Args:
        place: as in :func:`search`.
    """
    return search_nearest_k(space, k, place=place).index


def search_nearest_k(
    space: SearchSpace,
    k: int,
    own: Positions | None = None,
    copies: Integers | None = None,
    place: Positions | None = None,
) -> NearestK:
    """The k nearest reference rows of every query, with their distances, exactly.

    Args:
        k: at most as many as there are reference rows besides the one left out.
        own: position in the reference of a row to leave out for each query, shape (n,).
        copies, place: as in :func:`search`.
    """

    def answer(block: slice, row: Positions, column: Positions) -> NearestK:
        distance = _exact(space, row + block.start, column)
        order = np.lexsort((*(() if place is None else (place[column],)), distance, row))  # stable
        first = np.searchsorted(row, np.arange(block.stop - block.start))
        chosen = order[first[:, None] + np.arange(k)]
        least = distance == distance[chosen[:, 0]][row]
        count = None if copies is None else copies[column[least]]
        ties = np.bincount(row[least], count, minlength=len(first)).astype(np.int64)
        return NearestK(distance[chosen], column[chosen], ties)

    hidden = None if own is None else OwnRow(own)
    return NearestK.joined(_answers(space, k, hidden, answer), k)


def search_several(
    space: SearchSpace,
    distances: Callable[[Positions, Positions], Iterator[Floats]],
    places: Sequence[Positions | None],
) -> Positions:
    """Positions of the nearest reference rows by several distances, the first of several; shape (g, n).

    Args:
        distances: how far pairs of a query and a reference row are apart, by each distance. The slack of the
            space allows for the nearest rows by any of them.
        places: as in :func:`search`, for each distance.
    """

    def answer(block: slice, row: Positions, column: Positions) -> Positions:
        n = block.stop - block.start
        apart = distances(row + block.start, column)
        pairs = zip(apart, places, strict=True)
        return np.array([_first_least(row, column, d, n, place) for d, place in pairs])

    return np.concatenate(_answers(space, 1, None, answer), axis=1)


def _answers(
    space: SearchSpace,
    k: int,
    hidden: Hidden | None,
    answer: Callable[[slice, Positions, Positions], Answer],
) -> list[Answer]:
    """What ``answer`` makes of the candidates of each block of queries."""
    leaves, n = space.leaves, space.size[0]
    if (device := gpu_scores.device_for(*space.size)) and leaves is None:
        with gpu_scores.while_memory_lasts():
            there = space.on(device)
            blocks = slices(n, gpu_scores.QUERIES)
            return [answer(block, *candidates_on(there, space, block, k, hidden)) for block in blocks]
    if hidden is not None and leaves is not None:
        hidden = hidden.under(leaves.order)
    scratch = Buffers(space)
    if leaves is None or not (n <= _WORTH_TRYING or _helpful(space, leaves, k)):
        return over_blocks(
            n, space.block[0], lambda block: answer(block, *candidates(space, block, k, hidden, scratch))
        )

    def work(block: slice) -> list[Answer]:
        mine = None if hidden is None else hidden.of(block)
        found = pruned_candidates(space, leaves, block, k, mine, beyond(space.dtype))
        if found is not None:
            return [answer(block, *found)]
        parts = [
            slice(block.start + s.start, block.start + s.stop)
            for s in slices(block.stop - block.start, space.block[0])
        ]
        return [answer(part, *candidates(space, part, k, hidden, scratch)) for part in parts]

    most = max(1, min(_AT_ONCE, _BOUNDS // len(leaves), -(-n // allowed_threads())))
    parts = over_blocks(n, -(-n // max(1, -(-n // most))), work)
    return [part for several in parts for part in several]


def _helpful(space: SearchSpace, leaves: Leaves, k: int) -> bool:
    """Whether leaves can be ruled out for some of the queries."""
    start = max(0, (space.size[0] - _TRIED) // 2)
    tried = slice(start, min(start + _TRIED, space.size[0]))
    return pruned_candidates(space, leaves, tried, k, None, beyond(space.dtype)) is not None


def _exact(space: SearchSpace, rows: Positions, columns: Positions) -> Floats:
    """Exact distances, of so many pairs at a time that rows in thousands of ties fit into memory."""
    distance = np.empty(len(rows))
    for part in slices(len(rows), _PAIRS):
        distance[part] = space.distances(rows[part], columns[part])
    return distance


def _first_least(
    row: Positions, column: Positions, distance: Floats, n: int, place: Positions | None
) -> Positions:
    """The first of the nearest candidates of each of n rows, which stand row by row and have at least one."""
    least = np.minimum.reduceat(distance, np.searchsorted(row, np.arange(n)))
    near = np.flatnonzero(distance == least[row])
    if place is not None:
        near = near[np.argsort(place[column[near]])]
    near = near[::-1]
    index = np.empty(n, dtype=np.intp)
    index[row[near]] = column[near]  # the last assignment, of the first position, stays
    return index


def _two_least(
    row: Positions,
    column: Positions,
    distance: Floats,
    count: Integers,
    n: int,
    place: Positions | None,
) -> Nearest:
    """Nearest and next of each of n rows from its candidates, which stand row by row."""
    first, second = np.full(n, np.inf), np.full(n, np.inf)
    index, ties = np.zeros(n, dtype=np.intp), np.ones(n, dtype=np.int64)
    if not len(row):
        return Nearest(first, second, index, ties)
    present, starts = np.unique(row, return_index=True)
    first[present] = np.minimum.reduceat(distance, starts)
    least = distance == first[row]
    ties = np.maximum(np.bincount(row[least], count[least], minlength=n).astype(np.int64), 1)
    among, tied = row[least], column[least]
    if place is not None:
        by_place = np.lexsort((place[tied], among))
        among, tied = among[by_place], tied[by_place]
    index[among[::-1]] = tied[::-1]  # the last assignment, of the first position, stays
    others = np.where(least, np.inf, distance)
    second[present] = np.minimum.reduceat(others, starts)
    return Nearest(first, np.where(ties > 1, first, second), index, ties)
