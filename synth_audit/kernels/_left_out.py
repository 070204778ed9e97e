"""Rows of a table in groups that are left out once each, and sums over them; shared by the associations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes, Counts32, Floats, Floats32

Scalar = TypeVar("Scalar", bound=np.generic)

_MOST_CELLS, _MOST_ROWS = 512, 8192
"""Cells and rows that are multiplied at a time: some 40 MiB with the counts of twenty groups."""


@dataclass(frozen=True, eq=False)
class JackknifeRows:
    """Rows of one table in groups, each of which is left out once.

    Attributes:
        cells: cell of each row in every column, 0 … size − 1, shape (n, d).
        sizes: number of cells of each column, shape (d,).
        numbers: values of the numeric columns, NaN where missing, shape (n, p).
        groups: rows of each group; together all rows. A single group is never left out.
    """

    cells: Codes
    sizes: Codes
    numbers: Floats
    groups: tuple[slice, ...]

    @classmethod
    def of(
        cls,
        cells: Codes,
        sizes: Codes,
        numbers: Floats,
        n_groups: int = 1,
        rng: np.random.Generator | None = None,
    ) -> JackknifeRows:
        """Put the rows into at most ``n_groups`` groups of one size, at random where ``rng`` is given."""
        n = len(cells)
        order = np.arange(n) if rng is None else rng.permutation(n)
        ends = np.linspace(0, n, min(n_groups, n) + 1).astype(int).tolist()
        groups = tuple(slice(a, b) for a, b in pairwise(ends))
        return cls(cells[order], sizes, numbers[order], groups)

    @property
    def left_out(self) -> tuple[slice, ...]:
        """The rows that each replicate lacks: none, then each group."""
        return (slice(0, 0), *(self.groups if len(self.groups) > 1 else ()))


def differences(parts: npt.NDArray[Scalar]) -> Iterator[npt.NDArray[Scalar]]:
    """The sum of the parts of all groups, shape (g, …), then the sum without each."""
    total = parts.sum(axis=0, dtype=parts.dtype)
    yield total
    if len(parts) > 1:
        yield from (total - part for part in parts)


def margins(rows: JackknifeRows, column: int) -> Counts32:
    """Rows in every cell of a column, for each replicate; shape (t, cells)."""
    size = int(rows.sizes[column])
    parts = [np.bincount(rows.cells[group, column], minlength=size) for group in rows.groups]
    return np.stack(list(differences(np.stack(parts).astype(np.int32))))


def counts(rows: JackknifeRows, a: slice, b: slice, group: slice) -> Counts32:
    """Rows of a group in every pair of cells of two blocks of columns, shape (cells, cells)."""
    total = np.zeros((rows.sizes[a].sum(), rows.sizes[b].sum()), dtype=np.int32)
    for block in row_blocks(group):
        hot = [one_hot(rows.cells[block, of], rows.sizes[of]) for of in (a, b)]
        total += (hot[0].T @ hot[1]).astype(np.int32)  # whole numbers: exact, whatever the order of the sum
    return total


def rows_apart(rows: JackknifeRows, present: Bools, missing: Codes) -> Codes:
    """Rows that do not lie in the fullest cell of column i, of those in which columns i and j are present.

    Args:
        present: where each column has a value to compare, shape (n, d).
        missing: cell of each column that stands for no value, −1 for none, shape (d,).

    Returns:
        shape (d, d), not symmetric.
    """
    first = starts(rows.sizes)
    counts = np.zeros((int(rows.sizes.sum()), len(rows.sizes)))
    for block in row_blocks(slice(0, len(rows.cells))):
        counts += one_hot(rows.cells[block], rows.sizes).T @ present[block].astype(np.float32)
    counts[(first + missing)[missing >= 0]] = 0
    rest = np.add.reduceat(counts, first, axis=0) - np.maximum.reduceat(counts, first, axis=0)
    return np.asarray(rest, dtype=np.int64)


def standardised(numbers: Floats) -> Floats:
    """Columns in standard deviations from their mean; 0 where a column does not vary, NaN where missing."""
    made = np.full(numbers.shape, np.nan)
    for j, values in enumerate(numbers.T):
        known = ~np.isnan(values)
        if known.any():
            unit = np.abs(values[known]).max() or 1.0  # squares of huge numbers have no room
            centred = values[known] / unit - (values[known] / unit).mean()
            spread = centred.std() if values[known].min() < values[known].max() else 0.0
            made[known, j] = centred / spread if spread > 0 else 0.0
    return made


def one_hot(cells: Codes, sizes: Codes) -> Floats32:
    """1 in the cell of each column that a row lies in, shape (n, cells of all columns)."""
    hot = np.zeros((len(cells), int(sizes.sum())), dtype=np.float32)
    hot[np.arange(len(cells))[:, None], cells + starts(sizes)] = 1
    return hot


def column_blocks(sizes: Codes) -> Iterator[slice]:
    """Neighbouring columns with few enough cells together; a column of too many stands alone."""
    start, width = 0, 0
    for j, size in enumerate(sizes.tolist()):
        if width and width + size > _MOST_CELLS:
            yield slice(start, j)
            start, width = j, 0
        width += size
    if len(sizes):
        yield slice(start, len(sizes))


def row_blocks(group: slice) -> Iterator[slice]:
    """A group's rows, few enough at a time."""
    for start in range(group.start, group.stop, _MOST_ROWS):
        yield slice(start, min(start + _MOST_ROWS, group.stop))


def starts(sizes: Codes) -> Codes:
    """Position of the first cell of each column, shape (d,)."""
    return np.cumsum(sizes) - sizes


def over_pairs(values: Floats, first: Codes, second: Codes) -> Floats:
    """Sums of the cells of every pair of columns, whose first cells are given; shape (columns, columns)."""
    summed: Floats = np.add.reduceat(np.add.reduceat(values, second, axis=1), first, axis=0)
    return summed


def divided(a: Floats, b: Floats, above: float = 0.0) -> Floats:
    """a / b, and 0 where b is not above the limit."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > above)
