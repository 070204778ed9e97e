"""Record linkage: how much each release row weighs for each person, and how far the best row stands out.

A match table says what a person's cell and a row's cell of one column weigh together. The weight of a pair
is the sum over the columns; people times rows are never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits.recognition.coded_cells import CodedCells
from synth_audit.audits.recognition.pair_weights import (
    WEIGHTINGS,
    Packed,
    best_rows,
    placed,
    rows_of,
    weights_of,
)
from synth_audit.audits.recognition.people import ReleaseMemory

FIRST, LAST = 4, 8
"""The best row is compared with the mean of the fifth to eighth best, which copies rarely reach, and for
each row its person with the second to fourth best."""

AT_ONCE = 2**18
"""Named pairs that are weighed at once."""

SPARE = 4
"""Rows and people that are kept beyond those that are compared: replaced rows leave gaps, and weights move a
little with the release."""

_PAIRS = 2**14
"""Random pairs that say which columns agree together: correlations are known to 0.01."""


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
    asked = np.unique(rows_of(near))
    rivals = _rivals(columns, packed, asked, FIRST + SPARE if memory else FIRST, person)
    if memory and memory.keeps:
        memory.found[name] = NearPairs(named_once(rows_of(near)), asked, named_once(rows_of(rivals)))
    return _row_matches(near[..., wanted - kept :], asked, weights_of(rivals[..., -FIRST:]), repeats, steps)


def _row_matches(
    near: Packed, asked: Positions, rivals: npt.NDArray[np.uint16], repeats: int, steps: float
) -> RowMatches:
    """What is said of the best rows, see above.

    Args:
        near: the best rows of each record, ``weight << 32 | row``, shape (weightings, records, kept).
        asked: all of these rows, ascending.
        rivals: largest weights of each of them, shape (weightings, asked, FIRST).
    """
    value, row, kept = weights_of(near).astype(np.float64), rows_of(near), near.shape[2]
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
            near[w, block] = np.sort(_top(np.where(rows >= 0, placed(mine, rows), 0).T, kept).T, axis=1)
    asked = np.unique(rows_of(near))
    rivals = np.zeros((WEIGHTINGS, len(asked), FIRST), np.uint16)
    new = np.isin(asked, replaced)
    people = known.people[np.searchsorted(known.asked, asked[~new])]
    for w, mine in enumerate(_each(_of_pairs(columns, packed, people, asked[~new][:, None]))):
        rivals[w][~new] = _top(np.where(people >= 0, mine, 0).T, FIRST).T
    rivals[:, new] = weights_of(_rivals(columns, packed, asked[new], FIRST))
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


def _top(values: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """The largest so many of each column, in any order."""
    if len(values) < most:
        values = np.pad(values, ((most - len(values), 0), (0, 0)))
    found: npt.NDArray[Any] = np.partition(values, len(values) - most, axis=0)[len(values) - most :]
    return found


def _packed(table: Floats | Floats32, steps: float) -> Packed:
    parts = np.zeros((*table.shape[1:], WEIGHTINGS), np.uint16)
    parts[..., : len(table)] = np.moveaxis(np.floor(table * steps), 0, -1)
    return parts.view(np.uint64)[..., 0]


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
