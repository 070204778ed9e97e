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

from synth_audit.core.arrays import Codes, Floats, Floats32, Integers, Positions

_GRIDS = ((64, 64), (64, 512), (512, 64), (512, 512))
"""Parts of two distributions: columns of few values and fine ones may lead to a person together."""

_AMONG_EQUALS = ((32, 32), (64, 512), (512, 64))
"""The same of pairs that share a label."""

_MOST_CELLS = 5_000_000
"""Cells of pairs of columns that are counted; of more rows some are looked at."""

_DENSE, _EACH = 6_000_000, 8
"""Cells that are multiplied whether anybody is in them or not, where somebody is in one of so many."""

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
    taken = np.isin(of_people, of_people[chosen]) | np.isin(of_release, of_release[chosen])
    total, sums = float(edges[seed]), edges[chosen].sum(axis=0)
    best, score = frozenset(chosen), -np.inf
    while True:
        n = len(chosen)
        likelier = n * (n - 1) * (max(0.0, total) / (n * (n - 1) / 2)) ** 2 / 4 - n * np.log(len(nodes))
        if likelier > score:
            best, score = frozenset(chosen), float(likelier)
        if n == _MOST_PLACES or taken.all():
            return best, score
        place = int(np.where(taken, -np.inf, sums).argmax())
        total += float(sums[place])
        sums = sums + edges[place]
        chosen.append(place)
        taken |= (of_people == of_people[place]) | (of_release == of_release[place])


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
            np.where(np.isfinite(known), np.minimum(np.nan_to_num(known) * k, k - 1).astype(np.int32), -1)
            for k in parts
        )
        return cls((first, second), groups, parts)

    def turned(self, which: int, turned: int) -> Codes:
        cells = self.cells[which]
        return np.where(cells >= 0, self.parts[which] - 1 - cells, -1) if turned else cells

    def counts(self, which: Positions, size: int) -> _Counts:
        """How many rows are in each cell of each two columns."""
        first, second = (np.where(c >= 0, c, -size) for c in self.cells)
        there = (first >= 0) & (self.groups >= 0)
        first = np.where(there, (self.groups * self.parts[0] + first) * self.parts[1], -size)
        # The fewer bytes, the faster they are sorted.
        x, y = (cells.astype(np.min_scalar_type(-2 * size)) for cells in (first, second))
        found = []
        for i, j in which:
            codes = x[i] + y[j]
            found.append(np.unique(codes[codes >= 0], return_counts=True))
        counts = np.concatenate([n for _, n in found]).astype(np.float64)
        starts = np.cumsum([0, *(len(n) for _, n in found)])
        return _Counts(np.concatenate([cells for cells, _ in found]), counts, starts, self.parts, size)

    def selves(self, both: Positions, ordered: Positions) -> Floats32:
        """How many rows are in one cell of both, for each two columns beside each two, turned or not.

        Returns:
            shape (2, 2, both, ordered).
        """
        from scipy.sparse import csr_matrix  # here, since a code location must not load it

        d, n = self.cells[0].shape
        products = []
        for k in range(2):
            there = (self.cells[k] >= 0) & (self.groups >= 0)
            cells = np.where(there, self.cells[k], -1)
            turned = (np.where(there, self.turned(k, o), -2) for o in range(2))
            same = [np.flatnonzero(x == y) for others in turned for x in cells for y in others]
            starts = np.cumsum([0, *map(len, same)])
            products.append(
                csr_matrix((np.ones(starts[-1], np.float32), np.concatenate(same), starts), (len(same), n))
            )
        by_column = (products[0] @ products[1].T).toarray().reshape(2, d, d, 2, d, d)
        (i1, i2), (j1, j2) = both.T[:, :, None], ordered.T[:, None, :]
        found: Floats32 = by_column.transpose(0, 3, 1, 2, 4, 5)[:, :, i1, j1, i2, j2]
        return found


class _Counts(NamedTuple):
    """How many rows are in each cell of each two columns.

    Attributes:
        cells: where there are any, one two after the other. counts: how many; the same shape.
        starts: where each two columns begin among these. parts: of the two. size: cells that there may be.
    """

    cells: Integers
    counts: Floats
    starts: Positions
    parts: tuple[int, int]
    size: int

    def first(self, n: int) -> _Counts:
        """Of the first n."""
        some = slice(self.starts[n])
        return self._replace(cells=self.cells[some], counts=self.counts[some], starts=self.starts[: n + 1])

    @property
    def totals(self) -> Floats32:
        """Rows that have both columns, 1 at least."""
        return np.maximum(1.0, np.add.reduceat(np.append(self.counts, 0.0), self.starts[:-1])).astype(
            np.float32
        )

    @property
    def crowds(self) -> _Counts:
        """For each row of a cell how many others are in it."""
        return self._replace(counts=self.counts * (self.counts - 1))

    def turned(self, o: int, p: int) -> _Counts:
        """Of columns turned round."""
        first, second = self.parts
        x, y = self.cells // second % first, self.cells % second
        moved = o * (first - 1 - 2 * x) * second + p * (second - 1 - 2 * y)
        return self._replace(cells=self.cells + moved)

    def before(self, dense: bool) -> Any:
        """What is multiplied by :meth:`beside`, shape (columns, cells)."""
        from scipy.sparse import csr_matrix  # here, since a code location must not load it

        found = csr_matrix((self.counts, self.cells, self.starts), (len(self.starts) - 1, self.size))
        return found.toarray() if dense else found

    def beside(self, dense: bool) -> Any:
        """By what others are multiplied, shape (cells, columns)."""
        found = self.before(dense).T
        return found if dense else found.tocsr()


def _beyond_chance(
    people: _Grid, release: _Grid, both: Positions, ordered: Positions
) -> Iterator[tuple[int, int, Floats32]]:
    """Standard errors by which people and rows are in one cell oftener than two people, or two rows.

    The variance of such a count over cells of n people and m rows is ``Σ n m (n + m − 1)``.

    Args:
        ordered: begins with ``both``.

    Yields:
        which columns of the release are turned round, and for each two of people beside each two of it.
    """
    n_groups = max(1, *(1 + int(x.groups.max()) for x in (people, release)))  # a label may lack everywhere
    size = people.parts[0] * people.parts[1] * n_groups
    own, others = (x.counts(ordered, size) for x in (people, release))
    mine, theirs = (x.first(len(both)) for x in (own, others))
    of_people, of_rows = (x.selves(both, ordered) for x in (people, release))
    cells = size * len(ordered)
    dense = cells <= min(_DENSE, _EACH * max(len(own.cells), len(others.cells)))
    beside_own, beside_others, beside_crowds = (x.beside(dense) for x in (own, others, others.crowds))
    for o, p in np.ndindex(2, 2):
        # Instead of the columns of the release those of people are turned round.
        turned = mine.turned(o, p)
        first, crowds, rows = (x.before(dense) for x in (turned, turned.crowds, theirs.turned(o, p)))
        found = _times(first, beside_others)
        among = (_times(first, beside_own) - of_people[o, p]) * (others.totals / own.totals)
        usual = (_times(rows, beside_others) - of_rows[o, p]) * (mine.totals / theirs.totals)[:, None]
        usual = np.maximum(among, usual)
        crowded = _times(crowds, beside_others) + _times(first, beside_crowds)
        z: Floats32 = (found - usual) / np.sqrt(np.maximum(0.0, found + usual) + 2 * crowded + 2)
        yield o, p, z


def _times(counts: Any, beside: Any) -> Floats32:
    """Sums of products over all cells, exact as long as they are below 2⁵³."""
    found = counts @ beside
    return np.asarray(found if isinstance(found, np.ndarray) else found.toarray(), np.float32)
