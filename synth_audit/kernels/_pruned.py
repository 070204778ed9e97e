"""Candidates for the nearest rows: leaves of the reference are ruled out by what bounds their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from synth_audit.core.arrays import Floats, Positions, Scores
from synth_audit.kernels._hidden import Hidden
from synth_audit.kernels._smallest import rounded_down, smallest, true_places
from synth_audit.kernels.leaves import Leaves

_PAIRS = 2**17
"""Pairs scored at a time; few enough to stay in a processor's cache."""

_FIRST, _MANY = 4, 1_000
"""Leaves that a query meets before it is said which others are left, those first that may hold the nearest:
the nearer the rows met, the fewer leaves may hold nearer ones. Where there are fewer leaves than so many it
takes longer to choose than to score: at 40,000 rows `closest_record` took 45 CPU seconds instead of 34."""

_MOST = 0.5
"""Share of the pairs that are left beyond which scoring them leaf by leaf takes longer than scoring all."""


class LeafSpace(Protocol):
    """Queries and reference rows, the latter leaf by leaf."""

    def bounds(self, rows: slice) -> Scores:
        """A score that no row of a leaf is below, but for rounding; shape (queries, leaves)."""

    def scores(self, rows: Positions, columns: slice, out: Scores) -> None:
        """Score some queries against neighbouring reference rows, shape of ``out``."""

    def slack(self, rows: Positions, limit: Floats) -> Floats:
        """How much above ``limit`` a row may score, or a leaf be bounded, that is as near as one at it."""


@dataclass(eq=False)
class LeafSearch:
    """A search for the k nearest rows of a block of queries, in the course of it.

    Attributes:
        first: position of the first query. hidden: rows, in the order of the leaves, that the queries of the
            block do not look at.
        least: upper bounds of the k smallest scores so far, shape (n, k).
        limit: score up to which a row may be among the k nearest, or tied with one, shape (n,).
        found: query within the block, place in the order of the leaves and score of the candidates.
    """

    space: LeafSpace
    leaves: Leaves
    first: int
    hidden: Hidden | None
    beyond: float
    least: Floats
    limit: Floats
    found: list[tuple[Positions, Positions, Floats]] = field(default_factory=list)

    def visit(self, leaf: int, rows: Positions, memory: Scores) -> None:
        """Score the rows of a leaf for some of the queries."""
        start, stop = self.leaves.starts[leaf : leaf + 2]
        at_once = max(1, _PAIRS // (stop - start))
        for begin in range(0, len(rows), at_once):
            part = rows[begin : begin + at_once]
            scores = memory[: len(part) * (stop - start)].reshape(len(part), stop - start)
            self.space.scores(part + self.first, slice(start, stop), scores)
            if self.hidden is not None:
                scores[self.hidden.inside(part, start, stop)] = self.beyond
            self._keep(part, scores, start)

    def _keep(self, rows: Positions, scores: Scores, start: int) -> None:
        """Remember what may be near, and lower the limits."""
        hit = np.flatnonzero(scores.min(axis=1) <= self.limit[rows])
        if not len(hit):
            return
        k, met = self.least.shape[1], rows[hit]
        few = scores if len(hit) == len(scores) else scores[hit]
        # Of whole numbers of two bytes, as these are before they stand beside floats.
        least = smallest(few, k) if few.shape[1] > k else few
        self.least[met] = smallest(np.hstack([self.least[met], least]), k)
        limit = self.least[met].max(axis=1)
        limit += self.space.slack(met + self.first, limit)
        self.limit[met] = limit
        row, column = true_places(few <= rounded_down(limit, few.dtype)[:, None])
        self.found.append((met[row], column + start, few[row, column].astype(np.float64)))

    def candidates(self) -> tuple[Positions, Positions]:
        """Query within the block and position in the reference of each candidate, ascending."""
        row, column, score = (np.concatenate(part) for part in zip(*self.found, strict=True))
        kept = (score <= self.limit[row]) & (score < self.beyond)
        row, column = row[kept], self.leaves.order[column[kept]]
        order = np.lexsort((column, row))
        return row[order], column[order]


def pruned_candidates(
    space: LeafSpace, leaves: Leaves, block: slice, k: int, hidden: Hidden | None, beyond: float
) -> tuple[Positions, Positions] | None:
    """Every reference row that may be among the k nearest of a query, or tied with one of them.

    Each query meets the leaves first that might hold the nearest rows of all, and then the others which might
    hold one as near as those met so far.

    Args:
        hidden: rows, in the order of the leaves, that the queries of the block do not look at.
        beyond: a score beyond all others.

    Returns:
        Row within the block and position in the reference of each pair, ascending, row by row; None where too
        few leaves can be ruled out.
    """
    n, sizes = block.stop - block.start, leaves.sizes
    bounds = space.bounds(block)
    memory = np.empty(max(_PAIRS, int(sizes.max())), bounds.dtype)
    search = LeafSearch(
        space, leaves, block.start, hidden, beyond, np.full((n, k), np.inf), np.full(n, np.inf)
    )
    for _ in range(_FIRST if len(leaves) >= _MANY else min(1, len(leaves))):
        best = bounds.argmin(axis=1)
        able = np.flatnonzero(bounds[np.arange(n), best] <= search.limit)
        for leaf, rows in _by_leaf(best[able], able):
            search.visit(leaf, rows, memory)
        bounds[np.arange(n), best] = beyond
    row, leaf_of = true_places((bounds <= search.limit[:, None]) & (bounds < beyond))
    if sizes[leaf_of].sum() > _MOST * n * sizes.sum():
        return None
    for leaf, rows in _by_leaf(leaf_of, row):
        still = rows[bounds[rows, leaf] <= search.limit[rows]]
        if len(still):
            search.visit(leaf, still, memory)
    return search.candidates()


def _by_leaf(leaves: Positions, rows: Positions) -> Iterator[tuple[int, Positions]]:
    """The rows that belong to each leaf that occurs."""
    order = np.argsort(leaves, kind="stable")
    ordered = leaves[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)) + 1, len(ordered))
    start = 0
    for end in ends if len(ordered) else ():
        yield int(ordered[start]), rows[order[start:end]]
        start = end
