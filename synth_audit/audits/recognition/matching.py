"""Record linkage: how much each release row weighs for each person, and how far the best row stands out.

A column is cut into cells. A match table says what a person's cell and a row's cell weigh together. The
weight of a pair is the sum over the columns; people times rows are never held whole. Four weightings travel
in one pass, as 16-bit steps in one machine word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits.recognition.people import PooledColumn, ReleaseMemory

CELLS = 192
"""Cells of a number at most, of equal counts or widths: values 0.5 % of the rows, or of the range, apart are
told apart."""

LABELS = 512
"""Cells of labels at most: further labels share a cell with others, which costs one bit of ten."""

MOST_BITS = 10.0
"""Bits of one column at most: no more can be learned from some thousand rows."""

WEIGHTINGS = 4
"""Weightings in one pass: four times 16 bits are a machine word."""

FIRST, LAST = 4, 8
"""The best row is compared with the mean of the fifth to eighth best, which copies rarely reach, and for
each row its person with the second to fourth best."""

RECORDS, ROWS = 64, 1024
"""Records and rows that are weighed at once: the weights, half a MiB, stay in a processor's cache."""

AT_ONCE = 2**18
"""Named pairs that are weighed at once."""

SPARE = 4
"""Rows and people that are kept beyond those that are compared: replaced rows leave gaps, and weights move a
little with the release."""

_PLACE = 32
"""Bits that name a row, below those of its weight."""

Packed = npt.NDArray[np.uint64]
Cells = npt.NDArray[np.integer[Any]]

_COLUMN = 48
"""Bits of a weight and its row, below those that name a column while several are sorted at once."""

_CHUNKS = 16
"""Chunks of rows for each weight that is kept: few rows of the others are looked at."""

_FEWER, _COMBINATIONS = 8, 2048
"""Columns form a group while it has so many times fewer combinations than rows, so that it costs little, and
so many at most, whose weights stay in the cache as well."""

_PAIRS = 2**14
"""Random pairs that say which columns agree together: correlations are known to 0.01."""


@dataclass(frozen=True, eq=False)
class CodedCells:
    """One column in cells.

    Attributes:
        people, release: cell of each record and row, 0 … k; k where missing.
        shares: mean share of both tables in each cell, shape (k,).
        middles: a typical number of each cell; empty for labels, shape (k,).
    """

    people: Cells = field(repr=False)
    release: Cells = field(repr=False)
    shares: Floats = field(repr=False)
    middles: Floats = field(repr=False)

    @classmethod
    def of(cls, column: PooledColumn) -> Self:
        """Cut a column into cells."""
        both = np.concatenate([column.people, column.release])
        n = len(column.people)
        if column.numeric:
            known = np.isfinite(both)
            edges = np.unique(both[known])
            if len(edges) > CELLS:
                wanted = np.linspace(0, 1, CELLS + 1)[1:-1]
                edges = np.unique(np.quantile(both[known], wanted, method="lower"))
            k = len(edges) + 1
            cells = np.where(known, np.searchsorted(edges, both, side="right"), k)
            sums = np.bincount(cells[known], both[known], minlength=k)[:k]
            middles = sums / np.maximum(1, np.bincount(cells, minlength=k + 1)[:k])
        else:
            k = min(int(both.max(initial=0)) + 1, LABELS)
            cells, middles = np.where(both < 0, k, both % LABELS).astype(np.intp), np.empty(0)
        people, release = cells[:n], cells[n:].astype(np.int16)
        counts = [np.bincount(c, minlength=k + 1)[:k] for c in (people, release)]
        shares = sum(c / max(1, c.sum()) for c in counts) / 2
        return cls(people, release, shares, middles)

    @property
    def numeric(self) -> bool:
        """Whether the cells have an order."""
        return bool(len(self.middles))

    def among_people(self) -> CodedCells:
        """The same with the people's records in place of the release."""
        return CodedCells(self.people, self.people, self.shares, self.middles)

    def ranks(self) -> Floats:
        """Middle rank of each cell, in (0, 1), shape (k,)."""
        found: Floats = np.cumsum(self.shares) - self.shares / 2
        return found

    def agreement(self) -> Floats32:
        """Information of an agreement: ``-log2`` of the share of cells at least as near, in bits.

        Returns:
            shape (k + 1, k + 1), a person's cell first; 0 for different labels and missing values.
        """
        k = len(self.shares)
        bits = np.zeros((k + 1, k + 1), np.float32)
        if self.numeric:
            ranks = self.ranks()
            for row, rank in zip(bits, ranks, strict=False):
                away = np.abs(ranks - rank)
                order = np.argsort(away, kind="stable")
                last = np.searchsorted(away[order], away[order] + 1e-12, side="right") - 1
                row[order] = _bits(np.cumsum(self.shares[order])[last])
        else:
            np.fill_diagonal(bits[:k, :k], _bits(self.shares))
        return bits


def _bits(shares: Floats) -> Floats:
    return -np.log2(np.clip(shares, 2.0**-MOST_BITS, 1.0))


@dataclass(frozen=True, eq=False)
class RowMatches:
    """What the rows weigh for each record, for each weighting; shape (weightings, records) each.

    Attributes:
        best: weight of the best row.
        margin: best weight minus the mean weight of the fifth to eighth best row.
        mutual: the smaller of a row's margin and of its weight minus its mean weight for the best other
            people, for the row where that is largest.
        weights, rows: of the best rows, the best one last, shape (weightings, records, kept).
    """

    best: Floats = field(repr=False)
    margin: Floats = field(repr=False)
    mutual: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    rows: Positions = field(repr=False)


def matched(
    columns: Sequence[CodedCells],
    tables: Sequence[Floats | Floats32],
    *,
    repeats: int = 1,
    person: Positions | None = None,
    kept: int = LAST,
    memory: ReleaseMemory | None = None,
    name: str = "",
) -> RowMatches:
    """Weigh every row for every record.

    Args:
        tables: of each column what two cells weigh, shape (weightings, k + 1, k + 1), at least 0.
        repeats: rows that may be of one person; so many times further down the other rows are looked for.
        kept: best rows that are kept for each record, times repeats; at least :data:`LAST`.
        person: given where the rows are the people's own records: nobody is compared with themselves.
        memory: keeps which pairs stand out, under a name; or spares all others, once rows were replaced.
    """
    m = len(columns[0].release)
    steps = (2**16 - 1) / max(1e-9, float(np.sum([t.max(axis=(1, 2)) for t in tables], axis=0).max()))
    packed = [_packed(t, steps) for t in tables]
    kept = min(kept * repeats, m)
    if memory and (known := memory.known(name)):
        return _row_matches(*_among(columns, packed, kept, known, memory.replaced), repeats, steps)
    wanted = min(kept + SPARE, m) if memory and memory.keeps else kept
    near = best_rows(columns, packed, wanted, person, person)
    asked = np.unique(_rows(near))
    rivals = _rivals(columns, packed, asked, FIRST + SPARE if memory else FIRST, person)
    if memory and memory.keeps:
        memory.found[name] = NearPairs(named_once(_rows(near)), asked, named_once(_rows(rivals)))
    return _row_matches(near[..., wanted - kept :], asked, _weights(rivals[..., -FIRST:]), repeats, steps)


def _row_matches(
    near: Packed, asked: Positions, rivals: npt.NDArray[np.uint16], repeats: int, steps: float
) -> RowMatches:
    """What is said of the best rows, see above.

    Args:
        near: the best rows of each record, ``weight << 32 | row``, shape (weightings, records, kept).
        asked: all of these rows, ascending.
        rivals: largest weights of each of them, shape (weightings, asked, FIRST).
    """
    value, row, kept = _weights(near).astype(np.float64), _rows(near), near.shape[2]
    best = value[..., -1]
    compared = slice(max(0, kept - LAST * repeats), max(1, kept - FIRST * repeats))
    others = value[..., compared].mean(axis=2)
    margin = best - others
    # A row's own best person is left out: it is the one who is asked about, or a better claim to the row.
    usual = np.sort(rivals.astype(np.float64), axis=2)[..., :-1].mean(axis=2)
    usual = np.take_along_axis(usual[:, None], np.searchsorted(asked, row), axis=2)
    mutual = np.minimum(value - others[..., None], value - usual).max(axis=2)
    return RowMatches(best / steps, margin / steps, mutual / steps, value / steps, row)


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Pairs of records and rows that stand out in one comparison.

    Attributes:
        rows: the best rows of each record, of every weighting; -1 where named before, (records, named).
        asked: all rows that are named, ascending, shape (asked,).
        people: the records for which each of these weighs most, in the same way, shape (asked, named).
    """

    rows: Positions = field(repr=False)
    asked: Positions = field(repr=False)
    people: Positions = field(repr=False)


def named_once(named: Positions) -> Positions:
    """Positions of every weighting side by side, ascending, and -1 for those named before.

    >>> named_once(np.array([[[3, 5]], [[5, 4]]]))
    array([[ 3,  4,  5, -1]], dtype=int32)
    """
    beside = np.sort(np.concatenate(list(named), axis=1), axis=1)
    again = np.pad(beside[:, 1:] == beside[:, :-1], ((0, 0), (0, 1)))
    return np.where(again, -1, beside).astype(np.int32)


def with_replaced(rows: Positions, replaced: Positions, m: int) -> Positions:
    """Some of m rows for each record, -1 for those that were replaced, and then all that were.

    >>> with_replaced(np.array([[3, 4, -1]]), np.array([4, 9]), 10)
    array([[ 3, -1, -1,  4,  9]])
    """
    left = np.ones(m, dtype=np.bool_)
    left[replaced] = False
    return np.hstack([np.where(left[rows], rows, -1), np.tile(replaced, (len(rows), 1))])


def _among(
    columns: Sequence[CodedCells], packed: Sequence[Packed], kept: int, known: NearPairs, replaced: Positions
) -> tuple[Packed, Positions, npt.NDArray[np.uint16]]:
    """Best rows and rivals among pairs that stood out and the new rows, as `_row_matches` takes them."""
    n, m = len(columns[0].people), len(columns[0].release)
    near = np.empty((WEIGHTINGS, n, kept), np.uint64)
    size = max(1, AT_ONCE // (known.rows.shape[1] + len(replaced)))
    for start in range(0, n, size):
        block = np.arange(start, min(start + size, n))
        rows = with_replaced(known.rows[block], replaced, m)
        weights = _of_pairs(columns, packed, block[:, None], rows)
        for w, mine in enumerate(_each(weights)):
            near[w, block] = np.sort(_top(np.where(rows >= 0, _keyed(mine, rows), 0).T, kept).T, axis=1)
    asked = np.unique(_rows(near))
    rivals = np.zeros((WEIGHTINGS, len(asked), FIRST), np.uint16)
    new = np.isin(asked, replaced)
    people = known.people[np.searchsorted(known.asked, asked[~new])]
    for w, mine in enumerate(_each(_of_pairs(columns, packed, people, asked[~new][:, None]))):
        rivals[w][~new] = _top(np.where(people >= 0, mine, 0).T, FIRST).T
    rivals[:, new] = _weights(_rivals(columns, packed, asked[new], FIRST))
    return near, asked, rivals


def _rivals(
    columns: Sequence[CodedCells],
    packed: Sequence[Packed],
    rows: Positions,
    most: int,
    person: Positions | None = None,
) -> Packed:
    """The records for which some rows weigh most, as `best_rows` gives rows; (weightings, rows, most)."""
    turned = [replace(c, people=c.release[rows], release=c.people) for c in columns]
    asked = None if person is None else person[rows]
    found = best_rows(turned, [t.T for t in packed], min(most, len(columns[0].people)), asked, person)
    return np.pad(found, ((0, 0), (0, 0), (most - found.shape[2], 0)))


def _of_pairs(
    columns: Sequence[CodedCells], packed: Sequence[Packed], record: Positions, row: Positions
) -> Packed:
    """Weights of pairs, in the shape of both."""
    shape = np.broadcast_shapes(record.shape, row.shape)
    total = np.zeros(shape, np.uint64)
    for column, table in zip(columns, packed, strict=True):
        total += table.take(column.people[record] * len(table) + column.release[row])
    return total


def _each(weights: Packed) -> Iterator[npt.NDArray[np.uint16]]:
    """The weights of each weighting."""
    parts = weights.view(np.uint16).reshape(*weights.shape, WEIGHTINGS)
    return (np.ascontiguousarray(parts[..., w]) for w in range(WEIGHTINGS))


def _keyed(weights: npt.NDArray[np.uint16], place: Positions) -> Packed:
    return (weights.astype(np.uint64) << np.uint64(_PLACE)) | place.astype(np.uint64)


def _rows(keyed: Packed) -> Positions:
    found: Positions = keyed.astype(np.intp) & (2**_PLACE - 1)
    return found


def _weights(keyed: Packed) -> npt.NDArray[np.uint16]:
    return (keyed >> np.uint64(_PLACE)).astype(np.uint16)


def _top(values: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """The largest so many of each column, in any order."""
    if len(values) < most:
        values = np.pad(values, ((most - len(values), 0), (0, 0)))
    found: npt.NDArray[Any] = np.partition(values, len(values) - most, axis=0)[len(values) - most :]
    return found


def at_most_last(weights: npt.NDArray[Any], kept: int) -> npt.NDArray[Any]:
    """A weight that so many in each column reach, not much below the last of the largest so many.

    Rows are cut into chunks. As many chunks as wanted have a largest weight that reaches the one returned.
    Neighbours are in different chunks, so that the last so many may all be the largest.

    Args:
        weights: shape (rows, columns), with at least so many rows.
    """
    size = max(1, len(weights) // (_CHUNKS * kept))
    chunks = weights[: len(weights) // size * size].reshape(size, -1, weights.shape[1]).max(axis=0)
    found: npt.NDArray[Any] = np.partition(chunks, len(chunks) - kept, axis=0)[len(chunks) - kept]
    return found


def best_rows(
    columns: Sequence[CodedCells],
    packed: Sequence[Packed],
    most: int,
    person: Positions | None = None,
    of_rows: Positions | None = None,
) -> Packed:
    """The rows that weigh most for each record, of equal ones the last, ``weight << 32 | row``, ascending.

    Args:
        most: at most the number of rows.
        person, of_rows: the person of each record and row, given where nobody is compared with themselves.

    Returns:
        shape (weightings, records, most).
    """
    found = np.zeros((len(columns[0].people), WEIGHTINGS, most), np.uint64)
    for records, blocks in weighed(columns, packed):
        best = found[records].reshape(-1, most)
        for rows, weights in blocks:
            if person is not None and of_rows is not None:
                weights[of_rows[rows, None] == person[records]] = 0
            lanes = weights.view(np.uint16)
            first = rows.stop == len(columns[0].release)
            some = np.flatnonzero(first | (lanes.max(axis=0) > _weights(best[:, 0])))
            if len(some):
                best[some] = _larger(best[some], lanes.take(some, axis=1), rows.start)
    return np.ascontiguousarray(np.moveaxis(found, 1, 0))


def _larger(best: Packed, weights: npt.NDArray[np.uint16], first: int) -> Packed:
    """The largest weights so far, once further rows were weighed.

    Args:
        best: ``weight << 32 | row``, 0 where there are fewer, shape (columns, kept).
        weights: of the rows from the first one on, shape (rows, columns).

    Returns:
        As ``best``, ascending.
    """
    columns, kept = best.shape
    row = np.arange(first, first + len(weights))[:, None]
    able = np.ones(weights.shape, np.bool_)
    if len(weights) > kept:
        able = weights >= at_most_last(weights, kept)
        if np.count_nonzero(able) > able.size // _CHUNKS:  # many are equal, but no two with their rows
            keyed = _keyed(weights, row)
            able = keyed >= at_most_last(keyed, kept)
    at, column = np.divmod(np.flatnonzero(able), columns)
    own = np.arange(columns, dtype=np.uint64) << np.uint64(_COLUMN)
    new = _keyed(weights[at, column], row[at, 0]) | own[column]
    both = np.sort(np.concatenate([(best | own[:, None]).ravel(), new]))
    last = np.append(np.searchsorted(both, own[1:]), len(both))
    larger: Packed = both[last[:, None] - np.arange(kept, 0, -1)] ^ own[:, None]
    return larger


def _packed(table: Floats | Floats32, steps: float) -> Packed:
    parts = np.zeros((*table.shape[1:], WEIGHTINGS), np.uint16)
    parts[..., : len(table)] = np.moveaxis(np.floor(table * steps), 0, -1)
    return parts.view(np.uint64)[..., 0]


def weighed(
    columns: Sequence[CodedCells], tables: Sequence[npt.NDArray[Any]]
) -> Iterator[tuple[slice, Iterator[tuple[slice, npt.NDArray[Any]]]]]:
    """Weights of all pairs: for each block of records, blocks of rows from the last to the first.

    Args:
        tables: what two cells of each column weigh, a person's cell first, shape (k + 1, k + 1).

    Yields:
        Records, and their rows with the weights of the pairs, shape (rows, records), until the next rows.
    """
    n, groups = len(columns[0].people), _grouped([c.release for c in columns])
    for start in range(0, n, RECORDS):
        records = slice(start, min(start + RECORDS, n))
        of_people = [t[c.people[records]].T for c, t in zip(columns, tables, strict=True)]
        weights = [np.ascontiguousarray(sum(of_people[j][cells] for j, cells in g.cells)) for g in groups]
        yield records, _of_rows(weights, groups)


def _of_rows(
    weights: Sequence[npt.NDArray[Any]], groups: Sequence[_Group]
) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    m = len(groups[0].rows)
    total, more = np.empty((2, min(ROWS, m), weights[0].shape[1]), weights[0].dtype)
    for stop in range(m, 0, -ROWS):
        rows = slice(max(0, stop - ROWS), stop)
        some, added = (x[: stop - rows.start] for x in (total, more))
        some.fill(0)
        for of_group, group in zip(weights, groups, strict=True):
            np.take(of_group, group.rows[rows].astype(np.intp), axis=0, out=added, mode="clip")
            some += added
        yield rows, some


@dataclass(frozen=True, eq=False)
class _Group:
    """Columns whose cells come in few combinations, so that one look-up weighs them all.

    Attributes:
        cells: columns, and their cell in each combination.
        rows: combination of each row.
    """

    cells: list[tuple[int, Positions]] = field(repr=False)
    rows: npt.NDArray[np.uint16] = field(repr=False)


def _grouped(cells: Sequence[Cells]) -> list[_Group]:
    """Columns in groups, those of fewest cells first.

    Args:
        cells: of the rows in each column.
    """
    groups: list[_Group] = []
    most = min(len(cells[0]) // _FEWER, _COMBINATIONS)
    for j in sorted(range(len(cells)), key=lambda j: int(cells[j].max())):
        k = int(cells[j].max()) + 1
        if groups:
            both = groups[-1].rows * np.intp(k) + cells[j]
            number = np.bincount(both)
            seen = np.flatnonzero(number)
            if len(seen) <= most:
                number[seen] = np.arange(len(seen))
                before, own = np.divmod(seen, k)
                of_columns = [(i, of[before]) for i, of in groups[-1].cells]
                groups[-1] = _Group([*of_columns, (j, own)], number[both].astype(np.uint16))
                continue
        groups.append(_Group([(j, np.arange(k))], cells[j].astype(np.uint16)))
    return groups


def shared_weights(columns: Sequence[CodedCells], tables: Sequence[Any], rng: np.random.Generator) -> Floats:
    """One over how many columns agree together, so that columns that repeat each other count once.

    ``w_c = 1 / max(1, sum_k r_ck^2)`` with r the correlation of two columns' weights over random pairs.

    Returns:
        shape (columns,).
    """
    n, m = len(columns[0].people), len(columns[0].release)
    i, j = rng.integers(n, size=_PAIRS), rng.integers(m, size=_PAIRS)
    terms = np.array([t[c.people[i], c.release[j]] for c, t in zip(columns, tables, strict=True)], np.float64)
    terms -= terms.mean(axis=1, keepdims=True)
    size = np.sqrt((terms**2).sum(axis=1))
    terms /= np.where(size > 0, size, 1.0)[:, None]
    weights: Floats = 1 / np.maximum(1.0, ((terms @ terms.T) ** 2).sum(axis=1))
    return weights
