"""Record linkage: how much each release row weighs for each person, and how far the best row stands out.

A column is cut into cells. A match table says what a person's cell and a row's cell weigh together. The
weight of a pair is the sum over the columns; people times rows are never held whole. Four weightings travel
in one pass, as 16-bit steps in one machine word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits.recognition.people import PooledColumn

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

AT_ONCE = 2**18
"""Pairs of people and rows that are weighed at once."""

Packed = npt.NDArray[np.uint64]

_CHUNKS = 16
"""Chunks of rows for each weight that is kept: few rows of the others are looked at."""

_FEWER = 8
"""Columns form a group while it has this many times fewer combinations than rows: then it costs little."""

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

    people: Positions = field(repr=False)
    release: Positions = field(repr=False)
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
        people, release = cells[:n], cells[n:]
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
) -> RowMatches:
    """Weigh every row for every record.

    Args:
        tables: of each column what two cells weigh, shape (weightings, k + 1, k + 1), at least 0.
        repeats: rows that may be of one person; so many times further down the other rows are looked for.
        kept: best rows that are kept for each record, times repeats; at least :data:`LAST`.
        person: given where the rows are the people's own records: nobody is compared with themselves.
    """
    n, m = len(columns[0].people), len(columns[0].release)
    steps = (2**16 - 1) / max(1e-9, float(np.sum([t.max(axis=(1, 2)) for t in tables], axis=0).max()))
    packed = [_packed(t, steps) for t in tables]
    kept = min(kept * repeats, m)
    place = 32  # bits that name a row, below those of its weight
    near = np.empty((WEIGHTINGS, n, kept), np.uint64)
    rivals = np.zeros((WEIGHTINGS, FIRST, m), np.uint16)
    for start, weights in _weighed(columns, packed):
        block = slice(start, start + len(weights))
        if person is not None:
            weights[person[block, None] == person[None]] = 0
        for w in range(WEIGHTINGS):
            mine = np.ascontiguousarray(weights.view(np.uint16).reshape(*weights.shape, WEIGHTINGS)[..., w])
            near[w, block] = _largest(mine, kept, place)
            better = np.flatnonzero(mine.max(axis=0) > rivals[w].min(axis=0))
            both = np.concatenate([mine[:, better], rivals[w][:, better]])
            rivals[w][:, better] = np.partition(both, len(both) - FIRST, axis=0)[-FIRST:]
    value, row = (near >> np.uint64(place)).astype(np.float64), near.astype(np.intp) & (2**place - 1)
    best = value[..., -1]
    compared = slice(max(0, kept - LAST * repeats), max(1, kept - FIRST * repeats))
    others = value[..., compared].mean(axis=2)
    margin = best - others
    mutual = np.empty_like(best)
    for w in range(WEIGHTINGS):
        mutual[w] = _mutual(value[w], row[w], others[w], rivals[w].T.astype(np.float64))
    return RowMatches(best / steps, margin / steps, mutual / steps, value / steps, row)


def at_most_last(weights: npt.NDArray[Any], kept: int) -> npt.NDArray[Any]:
    """A weight that so many in each row reach, not much below the last of the largest so many; shape (n,).

    Rows are cut into chunks. As many chunks as wanted have a largest weight that reaches the one returned.
    Neighbours are in different chunks, so that the last so many may all be the largest.
    """
    size = max(1, weights.shape[1] // (_CHUNKS * kept))
    chunks = weights[:, : weights.shape[1] // size * size].reshape(len(weights), size, -1).max(axis=1)
    place = chunks.shape[1] - kept
    found: npt.NDArray[Any] = np.partition(chunks, place, axis=1)[:, place]
    return found


def _largest(weights: npt.NDArray[np.uint16], kept: int, place: int) -> Packed:
    """The largest weights of each record with their rows, ``weight << place | row``, ascending."""
    n, m = weights.shape
    able = weights >= at_most_last(weights, kept)[:, None]
    if np.count_nonzero(able) > able.size // _CHUNKS:  # many are equal, but no two with their rows
        keyed = (weights.astype(np.uint64) << np.uint64(place)) | np.arange(m, dtype=np.uint64)
        able = keyed >= at_most_last(keyed, kept)[:, None]
    record, row = np.divmod(np.flatnonzero(able), m)
    keyed = (weights[record, row].astype(np.uint64) << np.uint64(place)) | row.astype(np.uint64)
    order = np.lexsort((keyed, record))
    last = np.cumsum(np.bincount(record, minlength=n))
    found: Packed = keyed[order[last[:, None] - np.arange(kept, 0, -1)]]
    return found


def _mutual(value: Floats, row: Positions, others: Floats, rivals: Floats) -> Floats:
    """Margin over other rows and over other people, the smaller of both, for each record's best row."""
    rivals = np.sort(rivals, axis=1)
    # A row's own best person is left out: it is the one who is asked about, or a better claim to the row.
    usual = rivals[:, :-1].mean(axis=1)
    found: Floats = np.minimum(value - others[:, None], value - usual[row]).max(axis=1)
    return found


def _packed(table: Floats | Floats32, steps: float) -> Packed:
    parts = np.zeros((*table.shape[1:], WEIGHTINGS), np.uint16)
    parts[..., : len(table)] = np.moveaxis(np.floor(table * steps), 0, -1)
    return parts.view(np.uint64)[..., 0]


def _weighed(columns: Sequence[CodedCells], packed: Sequence[Packed]) -> Iterator[tuple[int, Packed]]:
    """Weights of every row for blocks of records, with the first record of each block."""
    n, m = len(columns[0].people), len(columns[0].release)
    size = max(1, AT_ONCE // m)
    groups = _grouped([c.release for c in columns])
    for start in range(0, n, size):
        total = np.zeros((min(size, n - start), m), np.uint64)
        for group, first, combination in groups:
            weights = np.zeros((len(total), len(first)), np.uint64)
            for j in group:
                mine = packed[j][columns[j].people[start : start + size]]
                weights += np.take(mine, columns[j].release[first], axis=1)
            total += np.take(weights, combination, axis=1)
        yield start, total


def _grouped(cells: Sequence[Positions]) -> list[tuple[list[int], Positions, Positions]]:
    """Columns in groups of few combinations of cells, so that equal combinations are weighed once.

    Args:
        cells: of the rows in each column.

    Returns:
        The columns of each group, a row of each combination, and the combination of each row.
    """
    groups: list[tuple[list[int], Positions, Positions]] = []
    for j in sorted(range(len(cells)), key=lambda j: int(cells[j].max())):
        group, first, combination = groups[-1] if groups else ([], np.empty(0, np.intp), 0 * cells[j])
        both = combination * (int(cells[j].max()) + 1) + cells[j]
        _, first, combination = np.unique(both, return_index=True, return_inverse=True)
        if groups and len(first) <= len(both) // _FEWER:
            groups[-1] = ([*group, j], first, combination)
        else:
            _, first, combination = np.unique(cells[j], return_index=True, return_inverse=True)
            groups.append(([j], first, combination))
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
