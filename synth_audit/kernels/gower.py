"""Gower's distance between records of mixed tables, and exact nearest neighbours by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats, Integers, Positions
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.kernels._grid import Grid
from synth_audit.kernels.encode import codes
from synth_audit.kernels.neighbours import Nearest
from synth_audit.kernels.parallel import over_blocks

MISSING = 1e300
"""A missing number: at no distance from itself, and at least 1 from everything else."""

_FAR = 1e100
"""Where numbers beyond all reason are put, so that no difference overflows."""

_BLOCK = 2**18
"""Scores held at a time by one thread; small enough to stay in a processor's cache."""

_LOOK = 1000
"""Rows looked at to see whether duplicates abound."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows of mixed columns, prepared for Gower's distance to other rows of the same preparation.

    Attributes:
        numbers: numeric columns in units of train's range, :data:`MISSING` where missing, shape (n, p).
        labels: shared codes of discrete columns, missing a code of its own, shape (n, q).
        weights: of the p numeric columns, then of the q discrete ones; they sum to 1, shape (p + q,).
    """

    numbers: Floats
    labels: Integers
    weights: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Positions) -> Mixed:
        """The rows at these positions."""
        return Mixed(self.numbers[rows], self.labels[rows], self.weights)

    def without(self, column: int) -> Mixed:
        """The same rows without one column, counted through the numeric and then the discrete ones."""
        p = self.numbers.shape[1]
        weights = np.delete(self.weights, column)
        weights = weights / max(weights.sum(), np.finfo(np.float64).tiny)
        if column < p:
            return Mixed(np.delete(self.numbers, column, axis=1), self.labels, weights)
        return Mixed(self.numbers, np.delete(self.labels, column - p, axis=1), weights)


@dataclass(frozen=True, eq=False)
class GowerEncoder:
    """Prepares tables for Gower's distance, anchored on train, so a candidate cannot move its yardstick.

    ``d(a, b) = Σ_j w_j d_j / Σ_j w_j`` with ``d_j = min(1, |a_j − b_j| / range of train)`` for numbers and
    datetimes, ``[a_j ≠ b_j]`` for labels; both missing 0, one missing 1. In [0, 1].

    A column that is constant in train (missing counted as a value) tells no two training rows apart and is
    left out: otherwise a copy of train could hide behind another value in it. Where all columns are, every
    distance is 0. Source: Gower 1971.

    Attributes:
        columns: the columns compared, those that vary in train.
        weights: one per column, positive.
        low, span: least value and range of each numeric column in train.
    """

    columns: tuple[Column, ...]
    weights: tuple[float, ...]
    low: dict[str, float]
    span: dict[str, float]

    @classmethod
    def anchored_on(
        cls, train: Table, columns: Sequence[Column], weights: Sequence[float] | None = None
    ) -> GowerEncoder:
        """Read ranges off train.

        Args:
            weights: how much each of ``columns`` counts, not negative; all alike if left out.

        Raises:
            ValueError: another number of weights than columns, or a weight that is negative or not finite.
        """
        given = np.ones(len(columns)) if weights is None else np.asarray(weights, dtype=np.float64)
        if given.shape != (len(columns),) or not np.isfinite(given).all() or (given < 0).any():
            raise ValueError("weights need one finite number per column, none of them negative")
        kept = [i for i, c in enumerate(columns) if given[i] > 0 and _varies(train, c)]
        ranges = {c.name: _range(train.numbers(c.name)) for c in columns if c.kind.numeric}
        return cls(
            tuple(columns[i] for i in kept),
            tuple(float(given[i]) for i in kept),
            {name: low for name, (low, _) in ranges.items()},
            {name: span for name, (_, span) in ranges.items()},
        )

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the columns in the order of a preparation: the numeric ones, then the discrete ones."""
        return tuple(c.name for c in sorted(self.columns, key=lambda c: not c.kind.numeric))

    def encode(self, tables: Sequence[Table]) -> list[Mixed]:
        """Prepare tables with shared codes, so that any of them may be compared with any other."""
        numeric = [i for i, c in enumerate(self.columns) if c.kind.numeric]
        discrete = [i for i, c in enumerate(self.columns) if not c.kind.numeric]
        joint = [codes(tables, self.columns[i]) for i in discrete]
        weights = np.array([self.weights[i] for i in (*numeric, *discrete)])
        weights = weights / max(weights.sum(), np.finfo(np.float64).tiny)
        prepared = []
        for position, table in enumerate(tables):
            numbers, labels = np.empty((table.n_rows, len(numeric))), [part[position] for part in joint]
            for j, i in enumerate(numeric):
                numbers[:, j] = self._scaled(table, self.columns[i].name)
            stacked = np.array(labels, dtype=np.int64).reshape(len(joint), table.n_rows).T
            prepared.append(Mixed(numbers, np.ascontiguousarray(stacked), weights))
        return prepared

    def _scaled(self, table: Table, name: str) -> Floats:
        """Halves, since the difference of two huge numbers may be infinite where that of halves is not."""
        values = table.numbers(name)
        with np.errstate(over="ignore"):
            inside = np.clip((values / 2 - self.low[name] / 2) / (self.span[name] / 2), -_FAR, _FAR)
        return np.where(np.isnan(values), MISSING, inside)


def nearest(queries: Mixed, reference: Mixed) -> Nearest:
    """Find the nearest reference rows by Gower's distance, exactly.

    A query is never taken for "itself": a row that also stands in the reference is at distance 0. Distances
    are rounded to nine decimals, so that those which are equal in exact arithmetic compare as equal.

    Args:
        queries: n rows; reference: m rows of the same preparation, m ≥ 1.
    """
    if not _repeats(reference):
        return _nearest(queries, reference)
    kinds = _row_kinds(reference)
    kept, copies = np.unique(kinds, return_index=True, return_counts=True)[1:]
    found = _nearest(queries, reference.take(kept), copies=copies)
    return Nearest(found.first, found.second, kept[found.index], found.ties)


def nearest_other(table: Mixed, rows: Positions) -> Nearest:
    """For the table's rows at these positions, the nearest of its other rows, duplicates included."""
    return _nearest(table.take(rows), table, own=rows)


def nearest_k(queries: Mixed, reference: Mixed, k: int) -> Positions:
    """Positions of the k nearest reference rows, in order of distance, ties by position in the reference.

    A caller that must not break ties by position shuffles the reference.

    Returns:
        shape (n, min(k, m)).
    """
    k = min(k, len(reference))
    if _repeats(reference):  # of equal rows only the first k can be wanted; equal queries have equal answers
        kept = np.flatnonzero(_copy_number(reference) < k)
        asked, answer = np.unique(_row_kinds(queries), return_index=True, return_inverse=True)[1:]
        found: Positions = kept[_nearest_k(queries.take(asked), reference.take(kept), k)][answer]
        return found
    return _nearest_k(queries, reference, k)


def _nearest_k(queries: Mixed, reference: Mixed, k: int) -> Positions:
    grid = _grid(queries, reference)

    def search(block: slice) -> Positions:
        row, column = grid.candidates(block, k)
        distance = _distances(queries, reference, row + block.start, column)
        order = np.lexsort((distance, row))  # stable, so ties stay in the order of the reference
        first = np.searchsorted(row, np.arange(block.stop - block.start))
        found: Positions = column[order[first[:, None] + np.arange(k)]]
        return found

    parts = over_blocks(len(queries), _block_size(reference), search)
    return np.concatenate(parts) if parts else np.empty((0, k), dtype=np.intp)


def _nearest(
    queries: Mixed,
    reference: Mixed,
    own: Positions | None = None,
    copies: Integers | None = None,
) -> Nearest:
    """Search with a row left out for each query, or with reference rows that stand for several."""
    grid = _grid(queries, reference)

    def search(block: slice) -> tuple[Floats, Floats, Positions, Integers]:
        row, column = grid.candidates(block, 2, None if own is None else own[block])
        distance = _distances(queries, reference, row + block.start, column)
        count = np.ones(len(row), dtype=np.int64) if copies is None else copies[column]
        return _two_least(row, column, distance, count, block.stop - block.start)

    found = over_blocks(len(queries), _block_size(reference), search)
    if not found:
        none = np.empty(0)
        return Nearest(none, none, np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64))
    first, second, index, ties = (np.concatenate(part) for part in zip(*found, strict=True))
    return Nearest(first, second, index, ties)


def _two_least(
    row: Positions, column: Positions, distance: Floats, count: Integers, n: int
) -> tuple[Floats, Floats, Positions, Integers]:
    """First, second, index and ties of each of n rows from its candidates, which stand row by row."""
    first, second = np.full(n, np.inf), np.full(n, np.inf)
    index = np.zeros(n, dtype=np.intp)
    if not len(row):
        return first, second, index, np.ones(n, dtype=np.int64)
    present, starts = np.unique(row, return_index=True)
    first[present] = np.minimum.reduceat(distance, starts)
    least = distance == first[row]
    ties = np.maximum(np.bincount(row[least], count[least], minlength=n).astype(np.int64), 1)
    index[row[least][::-1]] = column[least][::-1]  # the last assignment, of the first position, stays
    others = np.where(least, np.inf, distance)
    second[present] = np.minimum.reduceat(others, starts)
    return first, np.where(ties > 1, first, second), index, ties


def _distances(queries: Mixed, reference: Mixed, rows: Positions, columns: Positions) -> Floats:
    """Gower's distance of pairs of rows, column by column in float64, rounded to nine decimals."""
    total = np.zeros(len(rows))
    p = queries.numbers.shape[1]
    for j, weight in enumerate(queries.weights):
        if j < p:
            apart = np.abs(queries.numbers[rows, j] - reference.numbers[columns, j])
            total += weight * np.minimum(apart, 1.0)
        else:
            total += weight * (queries.labels[rows, j - p] != reference.labels[columns, j - p])
    rounded: Floats = np.round(total, 9)
    return rounded


def _varies(train: Table, column: Column) -> bool:
    [values] = codes([train], column)
    return bool(len(values)) and bool((values != values[0]).any())


def _range(values: Floats) -> tuple[float, float]:
    """Least value and range of the present values; infinite without a range, so that no difference counts.

    A range beyond the largest number is cut to it.
    """
    known = values[~np.isnan(values)]
    half = known.max() / 2 - known.min() / 2 if len(known) else 0.0
    if half == 0:
        return (float(known[0]) if len(known) else 0.0), np.inf
    return float(known.min()), float(min(half, np.finfo(np.float64).max / 2)) * 2


def _repeats(reference: Mixed) -> bool:
    """Whether many rows have a twin, by the first of them: then equal rows are better searched once."""
    few = reference.take(np.arange(min(len(reference), _LOOK)))
    return len(np.unique(_row_kinds(few))) < 0.9 * len(few)


def _row_kinds(rows: Mixed) -> Integers:
    """Numbers that rows share exactly when they are equal, shape (n,)."""
    from pandas import factorize  # here, so that looking around stays light

    kinds = np.zeros(len(rows), dtype=np.int64)
    for part in (*rows.numbers.T, *rows.labels.T):
        values = factorize(np.ascontiguousarray(part))[0].astype(np.int64)
        kinds = factorize(kinds * (values.max(initial=0) + 1) + values)[0].astype(np.int64)
    return kinds


def _copy_number(rows: Mixed) -> Integers:
    """How many equal rows stand before each row, shape (n,)."""
    kinds = _row_kinds(rows)
    order = np.argsort(kinds, kind="stable")
    starts = np.searchsorted(kinds[order], np.arange(kinds.max(initial=0) + 1))
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.arange(len(rows)) - starts[kinds[order]]
    return number


def _grid(mine: Mixed, theirs: Mixed) -> Grid:
    return Grid.over(mine.numbers, mine.labels, theirs.numbers, theirs.labels, mine.weights, MISSING)


def _block_size(reference: Mixed) -> int:
    return max(1, _BLOCK // max(1, len(reference)))
