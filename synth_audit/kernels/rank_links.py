"""Which numbers of a release stand in the places of which of people's: by ranks, whatever the columns.

A row that holds a person's numbers in other columns, each by its rank in the distribution there, or by its
rank counted from the other end, is near the person in all these columns at once. Two columns of people and
two of the release in which more pairs of a person and a row are near than of two people, or of two rows, are
an *edge* of two places; places that go together so, each with each, are a correspondence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Floats32, Positions

_GRIDS = ((64, 64), (64, 512), (512, 64), (512, 512))
"""Parts of two distributions: columns of few values and fine ones may lead to a person together."""

_AMONG_EQUALS = ((32, 32), (64, 512), (512, 64))
"""The same of pairs that share a label."""

_MOST_CELLS = 5_000_000
"""Cells of pairs of columns that are counted; of more rows some are looked at."""

_LARGEST = 8.0
"""Standard errors that one edge counts at most, lest it carry others along."""

_LEAST = 0.0
"""Logarithm of how much likelier than by chance a correspondence must be."""

_SEEDS, _MOST_PLACES = 300, 10
"""Edges that begin a correspondence, and places of one."""


class RankPlace(NamedTuple):
    """A column of people in a column of the release, turned round or not."""

    people: int
    release: int
    turned: bool


def spread_ranks(values: Floats, reference: Floats, rng: np.random.Generator) -> Floats:
    """Places of values in a distribution, from 0 to 1, equal ones spread over theirs at random; NaN stays."""
    order = np.sort(reference[np.isfinite(reference)])
    low, high = (np.searchsorted(order, values, side) for side in ("left", "right"))
    place = (low + rng.random(len(values)) * np.maximum(high - low, 1)) / max(1, len(order))
    return np.where(np.isfinite(values), np.clip(place, 0.0, 1 - 1e-9), np.nan)


def correspondences(
    people: Sequence[Floats], release: Sequence[Floats], labels: Sequence[tuple[Codes, Codes]], most: int
) -> list[tuple[RankPlace, ...]]:
    """Columns of people that stand in columns of the release together, the surest first.

    Args:
        people, release: ranks of every column, from 0 to 1, NaN where there is none.
        labels: codes of people and of the release, below 0 where there is none.
        most: correspondences.
    """
    d = len(people)
    if d < 2:
        return []
    edges = _edges(people, release, labels)
    nodes = [RankPlace(i, j, bool(o)) for i in range(d) for j in range(d) for o in range(2)]
    upper = np.where(np.tri(len(nodes), dtype=np.bool_), -np.inf, edges).ravel()
    seeds = np.argpartition(-upper, min(_SEEDS, len(upper) - 1))[:_SEEDS]
    found: dict[frozenset[int], float] = {}
    for seed in seeds[np.isfinite(upper[seeds])]:
        chosen, score = _grown(edges, nodes, divmod(int(seed), len(nodes)))
        found[chosen] = score
    kept: list[frozenset[int]] = []
    for had in sorted(found, key=lambda had: -found[had]):
        if found[had] > _LEAST and not any(len(had & other) > len(had) / 2 for other in kept):
            kept.append(had)
    return [tuple(nodes[k] for k in sorted(had)) for had in kept[:most]]


def _grown(
    edges: Floats32, nodes: Sequence[RankPlace], seed: tuple[int, int]
) -> tuple[frozenset[int], float]:
    """Places that go with two, each added as the surest of all; as many as are least by chance.

    With n places, whose n (n − 1) / 2 edges are z standard errors on average, that is ``log`` of how much
    likelier they are than by chance, ``n (n − 1) z² / 4``, less that of how many could have been chosen.
    """
    of_people, of_release = (np.array([n[side] for n in nodes]) for side in (0, 1))
    chosen = list(seed)
    total, sums = float(edges[seed]), edges[chosen].sum(axis=0)
    best, score = frozenset(chosen), -np.inf
    while True:
        n = len(chosen)
        likelier = n * (n - 1) * (max(0.0, total) / (n * (n - 1) / 2)) ** 2 / 4 - n * np.log(len(nodes))
        if likelier > score:
            best, score = frozenset(chosen), float(likelier)
        taken = np.isin(of_people, of_people[chosen]) | np.isin(of_release, of_release[chosen])
        if n == _MOST_PLACES or taken.all():
            return best, score
        place = int(np.where(taken, -np.inf, sums).argmax())
        total += float(sums[place])
        sums = sums + edges[place]
        chosen.append(place)


def _edges(
    people: Sequence[Floats], release: Sequence[Floats], labels: Sequence[tuple[Codes, Codes]]
) -> Floats32:
    """Standard errors by which each two places go together, in the grid where they do most."""
    d = len(people)
    both = np.array(list(combinations(range(d), 2)))
    ordered = np.concatenate([both, both[:, ::-1]])
    edges = np.full((d, d, 2, d, d, 2), -_LARGEST, np.float32)
    i1, i2 = both.T[:, :, None]
    j1, j2 = ordered.T[:, None, :]
    most = _MOST_CELLS // len(ordered)
    some = [_evenly(len(x[0]), most) for x in (people, release)]
    ranks = [[x[rows] for x in side] for side, rows in zip((people, release), some, strict=True)]
    by_people, by_release = (np.zeros(len(rows), np.int64) for rows in some)
    ways = [(parts, by_people, by_release) for parts in _GRIDS]
    ways += [(parts, a[some[0]], b[some[1]]) for a, b in labels for parts in _AMONG_EQUALS]
    for parts, by_people, by_release in ways:
        grids = _Grid.of(ranks[0], parts, by_people), _Grid.of(ranks[1], parts, by_release)
        for o, p, z in _beyond_chance(*grids, both, ordered):
            there = edges[i1, j1, o, i2, j2, p]
            edges[i1, j1, o, i2, j2, p] = np.maximum(there, z)
    size = 2 * d * d
    flat = edges.reshape(size, size)
    return np.minimum(np.maximum(flat, flat.T), _LARGEST)


def _evenly(n: int, most: int) -> Positions:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


class _Grid(NamedTuple):
    """Rows of one table in parts of the distribution of each column, for the first and second of two.

    Attributes:
        cells: −1 where there is none, shape (columns, n) each.
        groups: of rows, below 0 for none, shape (n,). parts: of each.
    """

    cells: tuple[Codes, Codes]
    groups: Codes
    parts: tuple[int, int]

    @classmethod
    def of(cls, ranks: Sequence[Floats], parts: tuple[int, int], groups: Codes) -> _Grid:
        known = np.array(ranks)
        first, second = (
            np.where(np.isfinite(known), np.minimum(np.nan_to_num(known) * k, k - 1).astype(np.int64), -1)
            for k in parts
        )
        return cls((first, second), groups, parts)

    def turned(self, which: int, turned: int) -> Codes:
        cells = self.cells[which]
        return np.where(cells >= 0, self.parts[which] - 1 - cells, -1) if turned else cells

    def pairs(self, which: Positions, turned: Sequence[int], size: int) -> Any:
        """How many rows are in each cell of each two columns, a sparse array."""
        from scipy.sparse import csr_matrix  # here, since a code location must not load it

        x, y = (self.turned(k, turned[k])[which[:, k]] for k in range(2))
        codes = (self.groups * self.parts[0] + x) * self.parts[1] + y
        there = (x >= 0) & (y >= 0) & (self.groups >= 0)
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return csr_matrix((np.ones(starts[-1], np.float32), codes[there], starts), (len(which), size))

    def selves(self, both: Positions, ordered: Positions) -> Floats32:
        """How many rows are in one cell of both, for each two columns beside each two, turned or not.

        Returns:
            shape (2, 2, both, ordered).
        """
        from scipy.sparse import csr_matrix

        d = len(self.cells[0])
        first, second = (
            csr_matrix(
                np.array(
                    [
                        (x == y) & (x >= 0) & (self.groups >= 0)
                        for o in range(2)
                        for x in self.cells[k]
                        for y in self.turned(k, o)
                    ],
                    np.float32,
                )
            )
            for k in range(2)
        )
        by_column = (first @ second.T).toarray().reshape(2, d, d, 2, d, d)
        (i1, i2), (j1, j2) = both.T[:, :, None], ordered.T[:, None, :]
        found: Floats32 = by_column.transpose(0, 3, 1, 2, 4, 5)[:, :, i1, j1, i2, j2]
        return found


def _beyond_chance(
    people: _Grid, release: _Grid, both: Positions, ordered: Positions
) -> Iterator[tuple[int, int, Floats32]]:
    """Standard errors by which people and rows are in one cell oftener than two people, or two rows.

    The variance of such a count over cells of n people and m rows is ``Σ n m (n + m − 1)``.

    Yields:
        which columns of the release are turned round, and for each two of people beside each two of it.
    """
    n_groups = max(1, *(1 + int(x.groups.max()) for x in (people, release)))  # a label may lack everywhere
    size = people.parts[0] * people.parts[1] * n_groups
    mine, theirs = (x.pairs(both, (0, 0), size) for x in (people, release))
    n_mine, n_theirs = (_sizes(x) for x in (mine, theirs))
    crowd = _others_beside(mine)
    of_people, of_rows = (x.selves(both, ordered) for x in (people, release))
    for o, p in np.ndindex(2, 2):
        own, others = (x.pairs(ordered, (o, p), size) for x in (people, release))
        found = _times(mine, others)
        among = (_times(mine, own) - of_people[o, p]) * (_sizes(others) / _sizes(own))
        usual = (_times(theirs, others) - of_rows[o, p]) * (n_mine / n_theirs)[:, None]
        usual = np.maximum(among, usual)
        crowded = _times(crowd, others) + _times(mine, _others_beside(others))
        z: Floats32 = (found - usual) / np.sqrt(np.maximum(0.0, found + usual) + 2 * crowded + 2)
        yield o, p, z


def _sizes(x: Any) -> Floats32:
    return np.maximum(1.0, np.asarray(x.sum(axis=1), np.float32).ravel())


def _times(x: Any, y: Any) -> Floats32:
    """Product with the transposed, dense where that takes less time."""
    dense = y.nnz > 0.01 * y.shape[0] * y.shape[1]
    found = x @ (y.T.toarray() if dense else y.T)
    return np.asarray(found if dense else found.toarray(), np.float32)


def _others_beside(x: Any) -> Any:
    """For each row of a cell how many others are in it."""
    counted = x.copy()
    counted.sum_duplicates()
    return counted.multiply(counted) - counted
