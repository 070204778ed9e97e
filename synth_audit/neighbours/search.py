"""Exact nearest rows: one search over blocks for every distance, in memory that does not grow with n squared.

A search scores blocks of queries and reference rows roughly, in single precision where that tells rows apart.
It keeps every row whose score may be that of a nearest one, and computes the distances of these exactly. So
neither blocks nor threads nor devices move a distance, a tie or the order of tied rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Integers, Positions, Scores
from synth_audit.execution.executor import allowed_threads, over_blocks
from synth_audit.neighbours import gpu_scores, memory
from synth_audit.neighbours.coordinates import add_unlike, in_steps, small_codes, stable_order, told_apart
from synth_audit.neighbours.leaves import Boxes

if TYPE_CHECKING:
    from synth_audit.neighbours.coordinates import Coordinates, Products
    from synth_audit.neighbours.gower import CappedDifferences, Mixed


_MANY, _LARGE, _WIDE = 512, 4096, 64
"""Queries and reference rows from which on leaves are worth their making, and columns up to which they are:
in more of them almost every leaf is near every query."""

_MOST = 0.5
"""Share of the leaves that are left beyond which scoring leaf by leaf takes longer than scoring all rows."""

_SEARCHED, _FEWEST = 4 * 10**9, 1_000
"""Pairs of rows that a search of a large reference may take, and queries that it has in any case."""

_COLUMN = 40
"""Bits that name a reference row, below those of a query, where pairs are sorted as one number."""

_LOOK = 1000
"""Rows looked at to see whether duplicates abound."""


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


R = TypeVar("R", bound="Coordinates | Mixed")
"""Rows of one table in a space that has a distance."""

A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class Hidden:
    """Reference rows that a query does not look at: those of one person for each.

    Attributes:
        asked: number of that person, shape (n,). whose: number of the person of each reference row, shape
            (m,); None where each row is a person of its own, numbered by its position.
    """

    asked: Integers
    whose: Integers | None = None

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


def most_queries(wanted: int, n_reference: int) -> int:
    """How many rows are looked up in so large a reference, so that the time of a search has a bound.

    As many as are wanted up to 4·10⁹ pairs of rows, then fewer, 1,000 at least: of 10,000 all in 400,000
    rows and 2,500 in 1,600,000. Shares of n rows are known to ``± 1 / √n`` at most; a copied row is among
    them with 95 % probability if the share of such rows is 3 / n or more.
    """
    return min(wanted, max(_FEWEST, _SEARCHED // max(1, n_reference)))


def nearest(queries: R, reference: R, *, but: int | None = None, place: Positions | None = None) -> Nearest:
    """Find the nearest reference rows, exactly.

    A query is never taken for "itself": a row that also stands in the reference is at distance 0. Distances
    are rounded to nine decimals, so that those which are equal in exact arithmetic compare as equal.

    Args:
        queries: n rows; reference: m rows of the same space, m ≥ 1.
        but: position of a reference row that is not looked at; then m ≥ 2.
        place: of each reference row in the order in which the first of several nearest ones is chosen, shape
            (m,); its position if left out.
    """
    once = different_rows(reference, but, place)
    if once is None:
        hidden = None if but is None else Hidden(np.full(len(queries), but))
        return _nearest(Pairs(queries, reference), hidden, place=place)
    rows, copies = once
    # A twin of the row that is not looked at may stand for rows that come before it.
    places = rows if place is None else place[rows]
    found = _nearest(Pairs(queries, reference.take(rows)), copies=copies, place=places)
    return replace(found, index=rows[found.index])


def nearest_other(table: R, rows: Positions, persons: Integers | None = None) -> Nearest:
    """For the table's rows at these positions, the nearest of its other rows, duplicates included.

    Args:
        persons: number of the person of each row of the table, shape (m,): rows of the same person are not
            looked at then. Infinitely far where there is no other row.
    """
    asked = rows if persons is None else persons[rows]
    return _nearest(Pairs(table.take(rows), table), Hidden(asked, persons))


def nearest_but(queries: R, reference: R, left_out: Integers, persons: Integers) -> Nearest:
    """The nearest reference rows, those of one person left out for each query.

    Args:
        left_out: number of that person, shape (n,). persons: of each reference row, shape (m,).
    """
    return _nearest(Pairs(queries, reference), Hidden(left_out, persons))


def nearest_k(queries: R, reference: R, k: int, place: Positions | None = None) -> Positions:
    """Positions of the k nearest reference rows, in order of distance, ties by position in the reference.

    Args:
        place: of each reference row in the order in which ties are broken instead, shape (m,): a caller that
            must not break them by position draws it at random.

    Returns:
        shape (n, min(k, m)).
    """
    k = min(k, len(reference))
    if not abound(reference.numbers, reference.labels):
        return _nearest_k(Pairs(queries, reference), k, None, place)[1]
    kinds = row_kinds(queries.numbers, queries.labels)
    asked, answer = np.unique(kinds, return_index=True, return_inverse=True)[1:]  # equal ones, equal answers
    # Of equal reference rows only the first k can be wanted.
    kept = np.flatnonzero(copy_number(row_kinds(reference.numbers, reference.labels), place) < k)
    places = None if place is None else place[kept]
    found = _nearest_k(Pairs(queries.take(asked), reference.take(kept)), k, None, places)[1]
    return kept[found][answer]


def nearest_others(table: R, rows: Positions, k: int) -> Floats:
    """Distances of the table's rows at these positions to the k nearest of its other rows, or all others.

    Returns:
        shape (n, min(k, m - 1)), nearest first.
    """
    return _nearest_k(Pairs(table.take(rows), table), min(k, len(table) - 1), Hidden(rows))[0]


def different_rows(
    reference: Coordinates | Mixed, but: int | None = None, place: Positions | None = None
) -> tuple[Positions, Integers] | None:
    """The first row of each kind, and how many are of it; None where repeated rows are few.

    Args:
        but: position of a row that does not count.
        place: of each row in the order in which the first of its kind is chosen; its position if none.
    """
    if not abound(reference.numbers, reference.labels):
        return None
    kinds = row_kinds(reference.numbers, reference.labels)
    order = np.arange(len(kinds)) if place is None else np.argsort(place)
    order = order if but is None else order[order != but]
    first, count = np.unique(kinds[order], return_index=True, return_counts=True)[1:]
    return order[first], count


def abound(numbers: Floats, labels: npt.NDArray[Any]) -> bool:
    """Whether many rows have a twin, by rows evenly spread: then equal rows are better searched once."""
    few = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), _LOOK)).astype(np.intp))
    return len(np.unique(row_kinds(numbers[few], labels[few]))) < 0.9 * len(few)


def row_kinds(*parts: npt.NDArray[Any]) -> Integers:
    """Numbers that rows share exactly when they are equal in all parts, shape (n,); of several (n, p)."""
    from pandas import factorize  # here, since a code location must not load it

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
    first = np.arange(len(kinds)) if place is None else np.argsort(place, kind="stable")
    order = first[stable_order(kinds[first])]
    starts = np.searchsorted(kinds[order], np.arange(kinds.max(initial=0) + 1))
    number = np.empty(len(kinds), dtype=np.int64)
    number[order] = np.arange(len(kinds)) - starts[kinds[order]]
    return number


class Pairs:
    """Queries and a reference, prepared for being scored against each other.

    Args:
        queries, reference: both coordinates, or both mixed rows.
        further: rows that score so much more than the nearest are candidates too.
    """

    def __init__(self, queries: Any, reference: Any, further: float = 0.0) -> None:
        """Prepare numbers and labels, and leaves where they are worth their making."""
        n, m = self.size = len(queries), len(reference)
        width = reference.numbers.shape[1] + reference.labels.shape[1]
        self.device = gpu_scores.device_for(n, m)
        useful = n >= _MANY and m >= _LARGE and width <= _WIDE and self.device is None
        self.queries, self.further = queries, further
        self.reference: Coordinates | Mixed = reference
        self.leaves = reference.leaves if useful else None
        order = None if self.leaves is None else self.leaves.order
        self.numbers: Products | CappedDifferences = queries.beside(reference, order)
        told = told_apart(queries.labels, reference.labels)
        self.mine, theirs = small_codes(queries.labels[:, told], reference.labels[:, told])
        # Not by a mask of the second axis, which leaves each column scattered through memory.
        self.theirs = theirs if order is None else np.take(theirs, order, axis=1)
        costs = reference.unlike[told] * self.numbers.steps
        self.unlike = tuple(in_steps(costs, self.dtype).tolist())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the scores; each is below :func:`beyond`."""
        return self.numbers.theirs.dtype

    @cached_property
    def boxes(self) -> Boxes:
        """Boxes of the leaves."""
        assert self.leaves is not None
        numbers = self.numbers.theirs[: self.reference.numbers.shape[1]]
        return Boxes.of(self.leaves, numbers, self.theirs, self.unlike)

    @property
    def alike(self) -> int:
        """Reference rows that are equal to one another, at most: all of them may be tied."""
        numbers, labels = self.reference.numbers, self.reference.labels
        return int(np.bincount(row_kinds(numbers, labels)).max()) if abound(numbers, labels) else 1

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        """Score some queries against reference rows: the larger, the further; shape of ``out``."""
        self.numbers.scores(rows, columns, out)
        add_unlike(out, self.unlike, self.mine[:, rows], self.theirs[:, columns])

    def slack(self, rows: slice | Positions, limit: Floats) -> Floats:
        """At most how much higher than ``limit`` a candidate may score."""
        slack = self.numbers.slack(rows, limit, len(self.mine))
        return slack + self.further * self.numbers.steps

    def distances(self, rows: Positions, columns: Positions) -> Floats:
        """Exact distances, of so many pairs at a time that rows in thousands of ties fit into memory."""
        found = np.empty(len(rows))
        for part in slices(0, len(rows), memory.EXACT):
            found[part] = self.queries.distances(rows[part], self.reference, columns[part])
        return found


def _nearest(
    pairs: Pairs,
    hidden: Hidden | None = None,
    *,
    copies: Integers | None = None,
    place: Positions | None = None,
) -> Nearest:
    """Nearest and next of every query.

    Args:
        copies: how many equal rows each reference row stands for, shape (m,); 1 if left out.
    """

    def answer(block: slice, row: Positions, column: Positions) -> tuple[Any, ...]:
        n, distance = block.stop - block.start, pairs.distances(row + block.start, column)
        first, index = least(row, column, distance, n, place)
        tied = distance == first[row]
        count = np.bincount(row[tied], None if copies is None else copies[column[tied]], minlength=n)
        ties = np.maximum(count.astype(np.int64), 1)
        second, _ = least(row, column, np.where(tied, np.inf, distance), n, None)
        return first, np.where(ties > 1, first, second), index, ties

    return Nearest(*map(np.concatenate, zip(*answers(pairs, 2, answer, hidden), strict=True)))


def _nearest_k(
    pairs: Pairs, k: int, hidden: Hidden | None, place: Positions | None = None
) -> tuple[Floats, Positions]:
    """Distances and positions of the k nearest rows of every query, nearest first, shape (n, k) each."""

    def answer(block: slice, row: Positions, column: Positions) -> tuple[Floats, Positions]:
        distance = pairs.distances(row + block.start, column)
        first = column if place is None else place[column]
        ends = np.searchsorted(row, np.arange(block.stop - block.start + 1))
        parts = [slice(*ends[i : i + 2].tolist()) for i in range(len(ends) - 1)]
        found = [p.start + first_k(distance[p], first[p], k) for p in parts]
        chosen = np.array(found, dtype=np.intp).reshape(len(parts), k)
        return distance[chosen], column[chosen]

    distance, index = zip(*answers(pairs, k, answer, hidden), strict=True)
    return np.concatenate(distance), np.concatenate(index)


def first_k(distance: Floats, place: Positions, k: int) -> Positions:
    """Positions of the k least distances, in their order, ties by place; there may be thousands of ties.

    >>> first_k(np.array([2.0, 1.0, 2.0, 3.0]), np.array([3, 2, 1, 0]), 2)
    array([1, 2])
    """
    last = np.partition(distance, k - 1)[k - 1]
    before, tied = np.flatnonzero(distance < last), np.flatnonzero(distance == last)
    wanted = k - len(before)
    if len(tied) > wanted:
        tied = tied[np.argpartition(place[tied], wanted - 1)[:wanted]]
    found = np.concatenate([before, tied])
    order: Positions = found[np.lexsort((place[found], distance[found]))]
    return order


def least(
    row: Positions, column: Positions, distance: Floats, n: int, place: Positions | None
) -> tuple[Floats, Positions]:
    """Least distance of the candidates of each of n rows, and the first of those at it; infinity where none.

    Args:
        row, column: of each candidate, ascending row by row. place: as in :func:`nearest`.
    """
    found, index = np.full(n, np.inf), np.zeros(n, dtype=np.intp)
    if not len(row):
        return found, index
    present, starts = np.unique(row, return_index=True)
    found[present] = np.minimum.reduceat(distance, starts)
    near = np.flatnonzero(distance == found[row])
    if place is not None:
        near = near[np.argsort(place[column[near]])]
    near = near[::-1]
    index[row[near]] = column[near]  # the last assignment, of the first position, stays
    return found, index


def answers(
    pairs: Pairs,
    k: int,
    answer: Callable[[slice, Positions, Positions], A],
    hidden: Hidden | None = None,
) -> list[A]:
    """What ``answer`` makes of the candidates of each block of queries; there is at least one block.

    Args:
        answer: takes a block, and row within the block and position in the reference of each candidate,
            ascending, row by row.
    """
    n, leaves = pairs.size[0], pairs.leaves
    if n == 0:
        nothing = np.empty(0, dtype=np.intp)
        return [answer(slice(0, 0), nothing, nothing)]
    if pairs.device is not None:
        with gpu_scores.while_memory_lasts():
            there = gpu_scores.TensorScores(
                pairs.numbers.on(pairs.device), pairs.mine, pairs.theirs, pairs.unlike, pairs.device
            )
            blocks = slices(0, n, memory.DEVICE_QUERIES)
            return [answer(block, *_on_device(there, pairs, block, k, hidden)) for block in blocks]
    if hidden is not None and leaves is not None:
        hidden = hidden.under(leaves.order)
    most = memory.QUERIES if leaves is None else min(memory.QUERIES, memory.BOUNDS // len(leaves))
    most = min(most, memory.EXACT // pairs.alike)
    size = max(1, min(most, -(-n // allowed_threads())))
    return over_blocks(n, size, lambda block: answer(block, *_candidates(pairs, block, k, hidden)))


def _candidates(pairs: Pairs, block: slice, k: int, hidden: Hidden | None) -> tuple[Positions, Positions]:
    """The candidates of a block of queries.

    Each query meets the leaf first that might hold the nearest row of all, and then those that might hold one
    as near as those met so far; or all rows, where few leaves can be ruled out.
    """
    every, leaves = np.arange(block.stop - block.start), pairs.leaves
    if leaves is not None:
        found = Candidates(pairs, block, k, hidden)
        bounds = pairs.numbers.bounds(pairs.boxes, block, pairs.mine[:, block])
        places = [slice(*leaves.starts[i : i + 2].tolist()) for i in range(len(leaves))]
        best = bounds.argmin(axis=0)
        for leaf in np.unique(best):
            found.meet(np.flatnonzero(best == leaf), places[leaf])
        bounds[best, every] = beyond(pairs.dtype)
        left = (bounds <= found.limit) & (bounds < beyond(pairs.dtype))
        if left.mean() <= _MOST:
            for leaf in np.flatnonzero(left.any(axis=1)):
                still = left[leaf] & (bounds[leaf] <= found.limit)  # limits have fallen
                found.meet(np.flatnonzero(still), places[leaf])
            return found.pairs()
    found = Candidates(pairs, block, k, hidden)
    for tile in slices(0, pairs.size[1], memory.TILE):
        found.meet(every, tile)
    return found.pairs()


class Candidates:
    """Every reference row that may be among the k nearest of a block of queries, in the course of a search.

    Attributes:
        least: upper bounds of the k smallest scores so far, shape (n, k).
        limit: score up to which a row may be among the k nearest, or tied with one, shape (n,).
        found: query within the block, place in the order of scoring, and score of what may be near.
    """

    def __init__(self, pairs: Pairs, block: slice, k: int, hidden: Hidden | None) -> None:
        """Before anything is scored.

        Args:
            hidden: rows, in the order in which they are scored, that queries do not look at.
        """
        n = block.stop - block.start
        self.of, self.first, self.hidden = pairs, block.start, hidden
        self.least, self.limit = np.full((n, k), np.inf), np.full(n, np.inf)
        self.found = list[tuple[Positions, Positions, Floats]]()
        # Asking the system for memory anew costs as much as scoring.
        self._buffer = np.empty(memory.SCORES, pairs.dtype)

    def meet(self, rows: Positions, columns: slice) -> None:
        """Score some rows of the block against neighbouring reference rows, and keep what may be near."""
        width = columns.stop - columns.start
        at_once = max(1, memory.SCORES // width)
        if width > len(self._buffer):
            self._buffer = np.empty(width, self._buffer.dtype)
        for part in slices(0, len(rows), at_once):
            some = rows[part]
            scores = self._buffer[: len(some) * width].reshape(len(some), width)
            queries = some + self.first
            self.of.scores(queries, columns, scores)
            if self.hidden is not None:
                scores[self.hidden.inside(queries, columns)] = beyond(scores.dtype)
            self._keep(some, scores, columns.start)

    def _keep(self, rows: Positions, scores: Scores, start: int) -> None:
        """Remember what may be near, and lower the limits."""
        hit = np.flatnonzero(scores.min(axis=1) <= self.limit[rows])
        if not len(hit):
            return
        k, met = self.least.shape[1], rows[hit]
        few = scores if len(hit) == len(scores) else scores[hit]
        self.least[met] = smallest(np.hstack([self.least[met], smallest(few, k)]), k)
        limit = self.least[met].max(axis=1)
        limit += self.of.slack(met + self.first, limit)
        self.limit[met] = limit
        row, column = np.divmod(np.flatnonzero(few <= rounded_down(limit, few.dtype)[:, None]), few.shape[1])
        self.found.append((met[row], column + start, few[row, column].astype(np.float64)))

    def pairs(self) -> tuple[Positions, Positions]:
        """Row within the block and position in the reference of each candidate, ascending, row by row."""
        row, column, score = (np.concatenate(part) for part in zip(*self.found, strict=True))
        kept = (score <= self.limit[row]) & (score < beyond(self.of.dtype))
        row, column = row[kept], column[kept]
        if self.of.leaves is not None:
            column = self.of.leaves.order[column]
        both = np.sort(row << _COLUMN | column)  # one number for each pair is sorted several times as fast
        return both >> _COLUMN, both & (2**_COLUMN - 1)


def _on_device(
    there: gpu_scores.TensorScores, pairs: Pairs, block: slice, k: int, hidden: Hidden | None
) -> tuple[Positions, Positions]:
    """The candidates of a block by scores on another device."""
    search = Candidates(pairs, block, k, hidden)
    for tile in slices(0, pairs.size[1], memory.DEVICE_REFERENCES):
        scores = there.scores(block, tile)
        if hidden is not None:
            scores[hidden.inside(block, tile)] = beyond(pairs.dtype)
        search.least, search.limit, row, column, score = gpu_scores.near_tile(
            scores, search.least, lambda limit: pairs.slack(block, limit)
        )
        search.found.append((row, column + tile.start, score))
    return search.pairs()


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Neighbouring slices of at most so many of some rows."""
    for begin in range(start, stop, size):
        yield slice(begin, min(begin + size, stop))


def smallest(values: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """The k smallest of each row, or all of fewer, in any order; of shape (n, m).

    Of one or two by looking for the least, which takes a third of the time of putting rows in part in order.

    Args:
        values: no NaN among them. They are changed on the way, and left as they were.
    """
    if values.shape[1] <= k:
        return values
    if k > 2:
        return np.partition(values, k - 1, axis=1)[:, :k]
    rows, where = np.arange(len(values)), values.argmin(axis=1)
    first = values[rows, where]
    if k == 1:
        return np.asarray(first[:, None])
    values[rows, where] = beyond(values.dtype)
    second = values.min(axis=1)
    values[rows, where] = first
    return np.stack([first, second], axis=1)


def beyond(dtype: np.dtype[Any]) -> float:
    """A score beyond all others that still fits into the type."""
    return float(np.iinfo(dtype).max) if dtype.kind == "i" else np.inf


def rounded_down(limit: Floats, dtype: np.dtype[Any]) -> Scores:
    """The largest numbers of a type that are not above limits, for comparing in that type; shape (n,)."""
    if dtype.kind == "i":
        return np.asarray(np.clip(np.floor(limit), np.iinfo(dtype).min, np.iinfo(dtype).max), dtype)
    near = limit.astype(dtype)
    below: Scores = np.where(near > limit, np.nextafter(near, dtype.type(-np.inf)), near)
    return below
