"""Exact nearest neighbours: one search for every distance, in memory that does not grow with n².

A *space* says how far a query is from a reference row twice: quickly, by a score for whole blocks of pairs
that may be a little off, and exactly, for single pairs. The search scores all pairs and computes exactly
whatever could be nearest, or tied with it, given how far off the scores may be. Where the reference is large
it stands in leaves, and those whose bound says that nothing near is in them are not scored at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from synth_audit.core.arrays import Floats, Integers, Positions, Scores
from synth_audit.kernels._pruned import pruned_candidates
from synth_audit.kernels.leaves import Leaves
from synth_audit.kernels.parallel import allowed_threads, over_blocks

Answer = TypeVar("Answer")

_GROUP = 64
"""Scores of which only the least is looked at first."""

_PAIRS = 2**20
"""Pairs whose distance is computed exactly at a time."""

_AT_ONCE, _BOUNDS = 2**14, 2**22
"""Queries that meet a leaf together, and bounds of leaves held at a time."""

_MANY, _LARGE = 512, 4096
"""Queries and reference rows from which on leaves are worth their making."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest reference rows of each query, shape (n,) each.

    Attributes:
        first: distance to the nearest reference row; exactly 0 for an equal row.
        second: distance to the next one (equal to ``first`` when tied; inf when there is no second row).
        index: position of a nearest reference row, the first of several.
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


class SearchSpace(Protocol):
    """Queries and reference rows, prepared for being compared with each other."""

    @property
    def leaves(self) -> Leaves | None:
        """How the reference rows are put for scoring; None where they stand in their own order."""

    @property
    def size(self) -> tuple[int, int]:
        """Queries n and reference rows m ≥ 1."""

    @property
    def block(self) -> tuple[int, int]:
        """How many queries and reference rows are best scored together."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the scores; each is below :func:`beyond`."""

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        """Score some queries against reference rows: the larger, the further; shape of ``out``."""

    def bounds(self, rows: slice) -> Scores:
        """What no row of each leaf scores less than, but for rounding, shape (queries, leaves)."""

    def slack(self, rows: slice | Positions, limit: Floats) -> Floats:
        """At most how much higher than ``limit`` a row may score that is as near as one which scores it."""

    def distances(self, rows: Positions, columns: Positions) -> Floats:
        """Exact distances of pairs, rounded so that those equal in exact arithmetic compare as equal."""


def beyond(dtype: np.dtype[Any]) -> float:
    """A score beyond all others that still fits into the type."""
    return float(np.iinfo(dtype).max) if dtype.kind == "i" else np.inf


def worth_leaves(n: int, m: int) -> bool:
    """Whether so many queries of so many reference rows are found faster leaf by leaf."""
    return n >= _MANY and m >= _LARGE


def search(space: SearchSpace, own: Positions | None = None, copies: Integers | None = None) -> Nearest:
    """Find the nearest reference rows of every query, exactly.

    Args:
        own: position in the reference of a row to leave out for each query, shape (n,).
        copies: how many equal rows each reference row stands for, shape (m,); 1 if left out.
    """

    def answer(block: slice, row: Positions, column: Positions) -> Nearest:
        distance = _exact(space, row + block.start, column)
        count = np.ones(len(row), dtype=np.int64) if copies is None else copies[column]
        return _two_least(row, column, distance, count, block.stop - block.start)

    return Nearest.joined(_answers(space, 2, own, answer))


def search_k(space: SearchSpace, k: int) -> Positions:
    """Positions of the k ≤ m nearest reference rows, in order of distance, ties by position; shape (n, k)."""

    def answer(block: slice, row: Positions, column: Positions) -> Positions:
        distance = _exact(space, row + block.start, column)
        order = np.lexsort((distance, row))  # stable, so ties stay in the order of the reference
        first = np.searchsorted(row, np.arange(block.stop - block.start))
        found: Positions = column[order[first[:, None] + np.arange(k)]]
        return found

    parts = _answers(space, k, None, answer)
    return np.concatenate(parts) if parts else np.empty((0, k), dtype=np.intp)


def _answers(
    space: SearchSpace,
    k: int,
    own: Positions | None,
    answer: Callable[[slice, Positions, Positions], Answer],
) -> list[Answer]:
    """What ``answer`` makes of the candidates of each block of queries."""
    scratch = _Buffers(space)
    leaves, n = space.leaves, space.size[0]
    if leaves is None:
        return over_blocks(
            n, space.block[0], lambda block: answer(block, *_candidates(space, block, k, own, scratch))
        )
    if own is not None:
        place = np.empty(len(leaves.order), dtype=np.intp)
        place[leaves.order] = np.arange(len(leaves.order))
        own = place[own]

    def work(block: slice) -> list[Answer]:
        mine = None if own is None else own[block]
        found = pruned_candidates(space, leaves, block, k, mine, beyond(space.dtype))
        if found is not None:
            return [answer(block, *found)]
        parts = [
            slice(block.start + s.start, block.start + s.stop)
            for s in _slices(block.stop - block.start, space.block[0])
        ]
        return [answer(part, *_candidates(space, part, k, own, scratch)) for part in parts]

    most = max(1, min(_AT_ONCE, _BOUNDS // len(leaves), -(-n // allowed_threads())))
    parts = over_blocks(n, -(-n // max(1, -(-n // most))), work)
    return [part for several in parts for part in several]


class _Buffers(threading.local):
    """One block of scores for each thread: asking the system for its memory anew costs as much as scoring."""

    def __init__(self, space: SearchSpace) -> None:
        """Called anew in every thread."""
        self._own = np.empty(space.block[0] * space.block[1], space.dtype)

    def take(self, n: int, m: int) -> Scores:
        """Memory for n × m scores, no more than a block."""
        return self._own[: n * m].reshape(n, m)


def _candidates(
    space: SearchSpace, block: slice, k: int, own: Positions | None, buffers: _Buffers
) -> tuple[Positions, Positions]:
    """Every reference row that may be among the k nearest of a query, or tied with one of them.

    Returns:
        Row within the block and position in the reference of each pair, ascending, row by row.
    """
    n, m = block.stop - block.start, space.size[1]
    least = np.full((n, k), np.inf)  # upper bounds of the k smallest scores so far
    limit = np.full(n, np.inf)
    found = []
    for tile in _slices(m, space.block[1]):
        scores = buffers.take(n, tile.stop - tile.start)
        space.scores(block, tile, scores)
        if own is not None:
            _hide(scores, own[block] - tile.start)
        minima = _least_of_groups(scores)
        least = np.partition(np.hstack([least, minima]), k - 1, axis=1)[:, :k]
        limit = least.max(axis=1)
        limit = limit + space.slack(block, limit)
        row, column = _up_to(scores, minima, limit)
        found.append((row, column + tile.start, scores[row, column].astype(np.float64)))
    row, column, score = (np.concatenate(part) for part in zip(*found, strict=True))
    kept = (score <= limit[row]) & (score < beyond(space.dtype))
    row, column = row[kept], column[kept]
    if space.leaves is not None:
        column = space.leaves.order[column]
    order = np.lexsort((column, row))
    return row[order], column[order]


def _slices(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _hide(scores: Scores, column: Positions) -> None:
    """Put one row of the reference beyond all others for each query, if it is in this tile."""
    here = np.flatnonzero((column >= 0) & (column < scores.shape[1]))
    scores[here, column[here]] = beyond(scores.dtype)


def _least_of_groups(scores: Scores) -> Scores:
    """The least score of disjoint groups of reference rows, shape (n, groups); all scores where few."""
    n, m = scores.shape
    groups = m // _GROUP
    if groups < 2 * _GROUP:
        return scores
    least: Scores = scores[:, : groups * _GROUP].reshape(n, _GROUP, groups).min(axis=1)
    return np.hstack([least, scores[:, groups * _GROUP :]])


def _up_to(scores: Scores, minima: Scores, limit: Floats) -> tuple[Positions, Positions]:
    """Where scores are at most the limit of their row; only groups whose least score is are looked at."""
    row, group = np.nonzero(minima <= limit[:, None])
    if minima is scores:
        return row, group
    n, m = scores.shape
    groups = m // _GROUP
    rest = group >= groups
    inside, number = row[~rest], group[~rest]
    members = scores[:, : groups * _GROUP].reshape(n, _GROUP, groups)[inside, :, number]
    pair, member = np.nonzero(members <= limit[inside][:, None])
    rows = np.concatenate([inside[pair], row[rest]])
    columns = np.concatenate([member * groups + number[pair], group[rest] + groups * (_GROUP - 1)])
    return rows, columns


def _exact(space: SearchSpace, rows: Positions, columns: Positions) -> Floats:
    """Exact distances, of so many pairs at a time that rows in thousands of ties fit into memory."""
    distance = np.empty(len(rows))
    for part in _slices(len(rows), _PAIRS):
        distance[part] = space.distances(rows[part], columns[part])
    return distance


def _two_least(row: Positions, column: Positions, distance: Floats, count: Integers, n: int) -> Nearest:
    """Nearest and next of each of n rows from its candidates, which stand row by row."""
    first, second = np.full(n, np.inf), np.full(n, np.inf)
    index, ties = np.zeros(n, dtype=np.intp), np.ones(n, dtype=np.int64)
    if not len(row):
        return Nearest(first, second, index, ties)
    present, starts = np.unique(row, return_index=True)
    first[present] = np.minimum.reduceat(distance, starts)
    least = distance == first[row]
    ties = np.maximum(np.bincount(row[least], count[least], minlength=n).astype(np.int64), 1)
    index[row[least][::-1]] = column[least][::-1]  # the last assignment, of the first position, stays
    others = np.where(least, np.inf, distance)
    second[present] = np.minimum.reduceat(others, starts)
    return Nearest(first, np.where(ties > 1, first, second), index, ties)
