"""Exact nearest neighbours: one search for every distance, in memory that does not grow with n squared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Integers, Positions, Scores
from synth_audit.execution.executor import allowed_threads, over_blocks
from synth_audit.neighbours import gpu_scores, memory

_MANY, _LARGE, _WIDE = 512, 4096, 64
"""Queries and reference rows from which on leaves are worth their making, and columns up to which they are:
in more of them almost every leaf is near every query."""

LEAF, _LARGEST = 3.0, 600
"""Most rows of a leaf over the root of all, where making leaves, visiting them and scoring their rows take
least together: of 40,000 rows two thirds to four fifths of the time that leaves of 200 take. But no more than
600: in larger ones of large tables too many rows are near too many queries."""

_LOOK = 256
"""Rows of a node by which its split is chosen."""

_TRIED = 64
"""Queries on which it is tried whether leaves can be ruled out at all."""

_WORTH_TRYING = 2**12
"""Queries up to which a trial takes longer than finding out with all of them that no leaf can be spared."""

_AT_ONCE = 2**14
"""Queries that meet a leaf together."""

_FIRST, _MANY_LEAVES = 4, 1_000
"""Leaves that a query meets before it is said which others are left, those first that may hold the nearest:
the nearer the rows met, the fewer leaves may hold nearer ones. Where there are fewer leaves than so many it
takes longer to choose than to score: at 40,000 rows `closest_record` took 45 CPU seconds instead of 34."""

_MOST = 0.5
"""Share of the pairs that are left beyond which scoring them leaf by leaf takes longer than scoring all."""

_GROUPS = (64, 16)
"""Scores of which only the least is looked at first: the larger groups where there are many of them."""

_SEARCHED, _FEWEST = 4 * 10**9, 1_000
"""Pairs of rows that a search of a large reference may take, and queries that it has in any case."""

Answer = TypeVar("Answer")
Found = TypeVar("Found", bound="Nearest | NearestK")

Apart = Callable[[Positions, Positions], Floats]
"""How far pairs of rows are from each other in each column, numbers first; shape (pairs, columns)."""


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

    @property
    def nearest(self) -> Nearest:
        """What :func:`search` tells; k ≥ 2."""
        return Nearest(self.distance[:, 0], self.distance[:, 1], self.index[:, 0], self.ties)


@dataclass(frozen=True, eq=False)
class Hidden:
    """Reference rows that a query does not look at: those of one person for each.

    Attributes:
        asked: number of that person, shape (n,). whose: number of the person of each reference row, shape
            (m,); None where each row is a person of its own, numbered by its position.
    """

    asked: Integers
    whose: Integers | None = None

    @classmethod
    def own(cls, rows: Positions, persons: Integers | None = None) -> Self:
        """Of a table's rows at these positions: themselves, or all rows of their persons, shape (m,)."""
        return cls(rows) if persons is None else cls(persons[rows], persons)

    def inside(self, rows: slice | Positions, columns: slice) -> tuple[Positions, Positions]:
        """Pairs of one of some queries and a hidden row of a slice, both counted from the first of them."""
        asked = self.asked[rows]
        if self.whose is not None:
            query, row = np.nonzero(asked[:, None] == self.whose[columns])
            return query, row
        here = np.flatnonzero((asked >= columns.start) & (asked < columns.stop))
        return here, asked[here] - columns.start

    def under(self, order: Positions) -> Hidden:
        """The same, the reference put into another order."""
        if self.whose is not None:
            return Hidden(self.asked, self.whose[order])
        return Hidden(np.argsort(order)[self.asked])


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

    return _joined(_answers(space, 2, hidden, answer))


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

    hidden = None if own is None else Hidden(own)
    return _joined(_answers(space, k, hidden, answer))


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
    """What ``answer`` makes of the candidates of each block of queries; there is at least one block."""
    leaves, n = space.leaves, space.size[0]
    if n == 0:
        nothing = np.empty(0, dtype=np.intp)
        return [answer(slice(0, 0), nothing, nothing)]
    if (device := gpu_scores.device_for(*space.size)) and leaves is None:
        with gpu_scores.while_memory_lasts():
            there = space.on(device)
            blocks = slices(0, n, memory.DEVICE_QUERIES)
            return [answer(block, *_on_device(there, space, block, k, hidden)) for block in blocks]
    if hidden is not None and leaves is not None:
        hidden = hidden.under(leaves.order)
    buffer = _Buffer(space)

    def by_tiles(block: slice) -> Answer:
        return answer(block, *_by_tiles(space, block, k, hidden, buffer))

    if leaves is None or not (n <= _WORTH_TRYING or _helpful(space, leaves, k)):
        return over_blocks(n, space.block[0], by_tiles)

    def by_leaves(block: slice) -> list[Answer]:
        found = _by_leaves(space, leaves, block, k, hidden)
        if found is not None:
            return [answer(block, *found)]
        return [by_tiles(part) for part in slices(block.start, block.stop, space.block[0])]

    most = max(1, min(_AT_ONCE, memory.BOUNDS // len(leaves), -(-n // allowed_threads())))
    parts = over_blocks(n, -(-n // max(1, -(-n // most))), by_leaves)
    return [part for several in parts for part in several]


def _helpful(space: SearchSpace, leaves: Leaves, k: int) -> bool:
    """Whether leaves can be ruled out for some of the queries."""
    start = max(0, (space.size[0] - _TRIED) // 2)
    tried = slice(start, min(start + _TRIED, space.size[0]))
    return _by_leaves(space, leaves, tried, k, None) is not None


@dataclass(eq=False)
class Candidates:
    """Every reference row that may be among the k nearest of a block of queries, in the course of a search.

    Attributes:
        first: position of the first query. hidden: rows, in the order in which they are scored, that queries
            do not look at.
        least: upper bounds of the k smallest scores so far, shape (n, k).
        limit: score up to which a row may be among the k nearest, or tied with one, shape (n,).
        found: query within the block, place in the order of scoring, and score of what may be near.
    """

    space: SearchSpace
    first: int
    hidden: Hidden | None
    least: Floats
    limit: Floats
    found: list[tuple[Positions, Positions, Floats]] = field(default_factory=list)

    @classmethod
    def of(cls, space: SearchSpace, block: slice, k: int, hidden: Hidden | None) -> Self:
        """Before anything is scored."""
        n = block.stop - block.start
        return cls(space, block.start, hidden, np.full((n, k), np.inf), np.full(n, np.inf))

    def meet(self, rows: Positions, columns: slice, buffer: Scores) -> None:
        """Score some rows of the block against neighbouring reference rows, and keep what may be near.

        Args:
            buffer: memory for the scores of all the pairs, or more.
        """
        width = columns.stop - columns.start
        scores = buffer[: len(rows) * width].reshape(len(rows), width)
        queries: slice | Positions = rows + self.first
        if len(rows) == len(self.limit):  # all of them in their order: no copy of what is known of each
            queries = slice(self.first, self.first + len(rows))
        self.space.scores(queries, columns, scores)
        if self.hidden is not None:
            scores[self.hidden.inside(queries, columns)] = beyond(scores.dtype)
        self._keep(rows, scores, columns.start)

    def _keep(self, rows: Positions, scores: Scores, start: int) -> None:
        """Remember what may be near, and lower the limits."""
        minima = _least_of_groups(scores)
        hit = np.flatnonzero(minima.min(axis=1) <= self.limit[rows])
        if not len(hit):
            return
        k, met = self.least.shape[1], rows[hit]
        few = minima if len(hit) == len(minima) else minima[hit]
        # Of the type that the scores have, as long as these stand alone.
        least = smallest(few, k) if few.shape[1] > k else few
        self.least[met] = smallest(np.hstack([self.least[met], least]), k)
        limit = self.least[met].max(axis=1)
        limit += self.space.slack(met + self.first, limit)
        self.limit[met] = limit
        row, column = _up_to(scores, hit, few, limit)
        self.found.append((met[row], column + start, scores[hit[row], column].astype(np.float64)))

    def pairs(self) -> tuple[Positions, Positions]:
        """Row within the block and position in the reference of each candidate, ascending, row by row."""
        row, column, score = (np.concatenate(part) for part in zip(*self.found, strict=True))
        kept = (score <= self.limit[row]) & (score < beyond(self.space.dtype))
        row, column = row[kept], column[kept]
        if self.space.leaves is not None:
            column = self.space.leaves.order[column]
        order = np.lexsort((column, row))
        return row[order], column[order]


def _by_tiles(
    space: SearchSpace, block: slice, k: int, hidden: Hidden | None, buffer: _Buffer
) -> tuple[Positions, Positions]:
    """The candidates of a block of queries, each of which meets every reference row."""
    search = Candidates.of(space, block, k, hidden)
    every = np.arange(block.stop - block.start)
    for tile in slices(0, space.size[1], space.block[1]):
        search.meet(every, tile, buffer.scores)
    return search.pairs()


def _by_leaves(
    space: SearchSpace, leaves: Leaves, block: slice, k: int, hidden: Hidden | None
) -> tuple[Positions, Positions] | None:
    """The candidates of a block of queries; None where too few leaves can be ruled out.

    Each query meets the leaves first that might hold the nearest rows of all, and then the others which might
    hold one as near as those met so far.
    """
    n, sizes, none = block.stop - block.start, leaves.sizes, beyond(space.dtype)
    bounds = space.bounds(block)
    buffer = np.empty(max(memory.CACHE, int(sizes.max())), bounds.dtype)
    search = Candidates.of(space, block, k, hidden)

    def meet(leaf: int, rows: Positions) -> None:
        columns = slice(*leaves.starts[leaf : leaf + 2].tolist())
        for part in slices(0, len(rows), max(1, memory.CACHE // (columns.stop - columns.start))):
            search.meet(rows[part], columns, buffer)

    for _ in range(_FIRST if len(leaves) >= _MANY_LEAVES else min(1, len(leaves))):
        best = bounds.argmin(axis=1)
        able = np.flatnonzero(bounds[np.arange(n), best] <= search.limit)
        for leaf, rows in _by_leaf(best[able], able):
            meet(leaf, rows)
        bounds[np.arange(n), best] = none
    row, leaf_of = true_places((bounds <= search.limit[:, None]) & (bounds < none))
    if sizes[leaf_of].sum() > _MOST * n * sizes.sum():
        return None
    for leaf, rows in _by_leaf(leaf_of, row):
        still = rows[bounds[rows, leaf] <= search.limit[rows]]
        if len(still):
            meet(leaf, still)
    return search.pairs()


def _on_device(
    there: gpu_scores.TensorScores, space: SearchSpace, block: slice, k: int, hidden: Hidden | None
) -> tuple[Positions, Positions]:
    """What :func:`_by_tiles` finds, by scores on another device."""
    search = Candidates.of(space, block, k, hidden)
    for tile in slices(0, space.size[1], memory.DEVICE_REFERENCES):
        scores = there.scores(block, tile)
        if hidden is not None:
            scores[hidden.inside(block, tile)] = beyond(space.dtype)
        search.least, search.limit, row, column, score = gpu_scores.near_tile(
            scores, search.least, lambda limit: space.slack(block, limit)
        )
        search.found.append((row, column + tile.start, score))
    return search.pairs()


class _Buffer(threading.local):
    """A block of scores for each thread: asking the system for its memory anew costs as much as scoring."""

    def __init__(self, space: SearchSpace) -> None:
        """Called anew in every thread."""
        self.scores = np.empty(space.block[0] * space.block[1], space.dtype)


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Neighbouring slices of at most so many of some rows."""
    for begin in range(start, stop, size):
        yield slice(begin, min(begin + size, stop))


def _by_leaf(leaves: Positions, rows: Positions) -> Iterator[tuple[int, Positions]]:
    """The rows that belong to each leaf that occurs."""
    order = np.argsort(leaves, kind="stable")
    ordered = leaves[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)) + 1, len(ordered))
    start = 0
    for end in ends if len(ordered) else ():
        yield int(ordered[start]), rows[order[start:end]]
        start = end


def _joined(parts: Sequence[Found]) -> Found:
    """The answers to several blocks of queries as one."""
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _exact(space: SearchSpace, rows: Positions, columns: Positions) -> Floats:
    """Exact distances, of so many pairs at a time that rows in thousands of ties fit into memory."""
    distance = np.empty(len(rows))
    for part in slices(0, len(rows), memory.EXACT):
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


def beyond(dtype: np.dtype[Any]) -> float:
    """A score beyond all others that still fits into the type."""
    return float(np.iinfo(dtype).max) if dtype.kind == "i" else np.inf


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


def _up_to(scores: Scores, hit: Positions, minima: Scores, limit: Floats) -> tuple[Positions, Positions]:
    """Where scores are at most the limit of their row; only groups whose least score is are looked at.

    Args:
        hit: rows of the scores that are looked at. minima, limit: of these rows.

    Returns:
        Place in ``hit`` and column of each.
    """
    most = rounded_down(limit, scores.dtype)
    row, group = true_places(minima <= most[:, None])
    n, m = scores.shape
    size = _group_size(m)
    if size == 1:
        return row, group
    groups = m // size
    rest = group >= groups
    inside, number = row[~rest], group[~rest]
    members = scores[:, : groups * size].reshape(n, size, groups)[hit[inside], :, number]
    pair, member = true_places(members <= most[inside][:, None])
    rows = np.concatenate([inside[pair], row[rest]])
    columns = np.concatenate([member * groups + number[pair], group[rest] + groups * (size - 1)])
    return rows, columns


def smallest(values: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """The k smallest of each row, in any order; shape (n, k) of (n, m), k ≤ m.

    Of one or two by looking for the least, which takes a third of the time of putting rows in part in order.

    Args:
        values: no NaN among them. They are changed on the way, and left as they were.
    """
    if k == 1:
        least: npt.NDArray[Any] = values.min(axis=1, keepdims=True)
        return least
    if k > 2 or values.shape[1] < 3:
        return np.partition(values, k - 1, axis=1)[:, :k]
    rows, where = np.arange(len(values)), values.argmin(axis=1)
    first = values[rows, where]
    values[rows, where] = np.iinfo(values.dtype).max if values.dtype.kind == "i" else np.inf
    second = values.min(axis=1)
    values[rows, where] = first
    return np.stack([first, second], axis=1)


def rounded_down(limit: Floats, dtype: np.dtype[Any]) -> Scores:
    """The largest numbers of a type that are not above limits, for comparing in that type; shape (n,)."""
    if dtype.kind == "i":
        return np.asarray(np.clip(np.floor(limit), np.iinfo(dtype).min, np.iinfo(dtype).max), dtype)
    near = limit.astype(dtype)
    below: Scores = np.where(near > limit, np.nextafter(near, dtype.type(-np.inf)), near)
    return below


def true_places(mask: Bools) -> tuple[Positions, Positions]:
    """Rows and columns where a mask is true, row by row; a sixth of the time of ``np.nonzero``."""
    row, column = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return row, column


@dataclass(frozen=True, eq=False)
class Leaves:
    """The rows of a table, leaf by leaf.

    Attributes:
        order: positions of the rows, shape (n,).
        starts: where in ``order`` each leaf begins, then n; shape (leaves + 1,).
    """

    order: Positions
    starts: Positions

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Positions:
        """Rows of each leaf."""
        sizes: Positions = np.diff(self.starts)
        return sizes

    @classmethod
    def of(cls, numbers: Floats, labels: Integers, apart: Apart) -> Leaves:
        """Halve the rows, again and again, by the column in which they lie furthest apart.

        A look at some of the rows chooses the column and the value, so that it takes little more than reading
        each row once on every level. The same rows always fall into the same leaves.

        Args:
            numbers: shape (n, p). labels: shape (n, q).
        """
        rng = np.random.default_rng(0)
        most = min(max(1, round(LEAF * len(numbers) ** 0.5)), _LARGEST)
        waiting, found = [np.arange(len(numbers))], []
        while waiting:
            rows = waiting.pop()
            left = _left(rows, numbers, labels, apart, rng) if len(rows) > most else None
            if left is None:
                found += [rows[start : start + most] for start in range(0, len(rows), most)]
            else:
                waiting += [rows[~left], rows[left]]
        return cls(np.concatenate(found), np.cumsum([0, *map(len, found)]))


def _left(
    rows: Positions, numbers: Floats, labels: Integers, apart: Apart, rng: np.random.Generator
) -> Bools | None:
    """Which rows of a node go to its left; None where a look at some finds no two that differ."""
    few = rows if len(rows) <= _LOOK else rows[rng.integers(len(rows), size=_LOOK)]
    apart_by = apart(few, np.roll(few, 1)).mean(axis=0)
    if not len(apart_by) or not apart_by.max() > 0:
        return None
    column, p = int(apart_by.argmax()), numbers.shape[1]
    if column < p:
        middle = np.median(numbers[few, column])
        values = numbers[rows, column]
        left = values <= middle
        if left.all():
            left = values < middle
    else:
        values, common = labels[rows, column - p], _commonest(labels[few, column - p])
        left = values == common[0] if len(common) == 1 else np.isin(values, common)
    return None if left.all() or not left.any() else left


def _commonest(labels: Integers) -> Integers:
    """The commonest labels, as many as come nearest to half of the rows, but not all."""
    used, counts = np.unique(labels, return_counts=True)
    falling = np.argsort(-counts, kind="stable")
    share = np.cumsum(counts[falling])[:-1] / len(labels)
    return used[falling[: 1 + int(np.abs(share - 0.5).argmin())]]
