"""Candidates for the nearest rows, tile by tile: all pairs are scored, here or on another device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from synth_audit.core.arrays import Floats, Positions, Scores
from synth_audit.kernels import gpu_scores
from synth_audit.kernels._hidden import Hidden
from synth_audit.kernels._smallest import rounded_down, smallest, true_places
from synth_audit.kernels.leaves import Leaves

_GROUPS = (64, 16)
"""Scores of which only the least is looked at first: the larger groups where there are many of them."""


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

    def on(self, device: str) -> gpu_scores.TensorScores:
        """The same scores on another device."""

    def distances(self, rows: Positions, columns: Positions) -> Floats:
        """Exact distances of pairs, rounded so that those equal in exact arithmetic compare as equal."""


def beyond(dtype: np.dtype[Any]) -> float:
    """A score beyond all others that still fits into the type."""
    return float(np.iinfo(dtype).max) if dtype.kind == "i" else np.inf


class Buffers(threading.local):
    """One block of scores for each thread: asking the system for its memory anew costs as much as scoring."""

    def __init__(self, space: SearchSpace) -> None:
        """Called anew in every thread."""
        self._own = np.empty(space.block[0] * space.block[1], space.dtype)

    def take(self, n: int, m: int) -> Scores:
        """Memory for n × m scores, no more than a block."""
        return self._own[: n * m].reshape(n, m)


def candidates(
    space: SearchSpace, block: slice, k: int, hidden: Hidden | None, buffers: Buffers
) -> tuple[Positions, Positions]:
    """Every reference row that may be among the k nearest of a query, or tied with one of them.

    Returns:
        Row within the block and position in the reference of each pair, ascending, row by row.
    """
    n, m = block.stop - block.start, space.size[1]
    least = np.full((n, k), np.inf)  # upper bounds of the k smallest scores so far
    limit = np.full(n, np.inf)
    found = []
    for tile in slices(m, space.block[1]):
        scores = buffers.take(n, tile.stop - tile.start)
        space.scores(block, tile, scores)
        if hidden is not None:
            scores[hidden.inside(block, tile.start, tile.stop)] = beyond(space.dtype)
        minima = _least_of_groups(scores)
        # Of the type that the scores have, as long as these stand alone.
        few = smallest(minima, k) if minima.shape[1] > k else minima
        least = smallest(np.hstack([least, few]), k)
        limit = least.max(axis=1)
        limit = limit + space.slack(block, limit)
        row, column = _up_to(scores, minima, limit)
        found.append((row, column + tile.start, scores[row, column].astype(np.float64)))
    return _within(space, found, limit)


def candidates_on(
    there: gpu_scores.TensorScores, space: SearchSpace, block: slice, k: int, hidden: Hidden | None
) -> tuple[Positions, Positions]:
    """What :func:`candidates` finds, by scores on another device."""
    least = np.full((block.stop - block.start, k), np.inf)
    limit = least[:, 0]
    found = []
    for tile in slices(space.size[1], gpu_scores.REFERENCES):
        scores = there.scores(block, tile)
        if hidden is not None:
            scores[hidden.inside(block, tile.start, tile.stop)] = beyond(space.dtype)
        least, limit, row, column, score = gpu_scores.near_tile(
            scores, least, lambda limit: space.slack(block, limit)
        )
        found.append((row, column + tile.start, score))
    return _within(space, found, limit)


def _within(
    space: SearchSpace, found: list[tuple[Positions, Positions, Floats]], limit: Floats
) -> tuple[Positions, Positions]:
    """Those of the rows found, with their scores, that are within the last limit of their query."""
    row, column, score = (np.concatenate(part) for part in zip(*found, strict=True))
    kept = (score <= limit[row]) & (score < beyond(space.dtype))
    row, column = row[kept], column[kept]
    if space.leaves is not None:
        column = space.leaves.order[column]
    order = np.lexsort((column, row))
    return row[order], column[order]


def slices(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _least_of_groups(scores: Scores) -> Scores:
    """The least score of disjoint groups of reference rows, shape (n, groups); all scores where few."""
    n, m = scores.shape
    size = _group_size(m)
    if size == 1:
        return scores
    groups = m // size
    least: Scores = scores[:, : groups * size].reshape(n, size, groups).min(axis=1)
    return np.hstack([least, scores[:, groups * size :]])


def _group_size(m: int) -> int:
    return next((size for size in _GROUPS if m >= 2 * size**2), 1)


def _up_to(scores: Scores, minima: Scores, limit: Floats) -> tuple[Positions, Positions]:
    """Where scores are at most the limit of their row; only groups whose least score is are looked at."""
    most = rounded_down(limit, scores.dtype)
    row, group = true_places(minima <= most[:, None])
    if minima is scores:
        return row, group
    n, m = scores.shape
    size = _group_size(m)
    groups = m // size
    rest = group >= groups
    inside, number = row[~rest], group[~rest]
    members = scores[:, : groups * size].reshape(n, size, groups)[inside, :, number]
    pair, member = true_places(members <= most[inside][:, None])
    rows = np.concatenate([inside[pair], row[rest]])
    columns = np.concatenate([member * groups + number[pair], group[rest] + groups * (size - 1)])
    return rows, columns
