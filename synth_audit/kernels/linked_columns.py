"""Columns as record linkage compares them: cells, how alike two numbers are, and which rows are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes, Counts, Floats, Integers, Positions

Places = npt.NDArray[Any]
"""Cells, counted on through all columns or not, in whatever type of whole numbers."""

LEVELS = 10
"""Levels of likeness of two numbers: within 1, 1/2, … 1/512 of the release."""

_CELLS = 256
"""Cells that a number is cut into, and labels that are told apart, at most."""

BLOCK = 2048
"""Rows that are compared for each of two columns, those nearest in it, where the release has many more."""


@dataclass(frozen=True, eq=False)
class LinkedColumn:
    """One column of the release and of the people.

    Attributes:
        release, people: cells, 0 … k−1; of numbers in their order; of the release, which may have millions,
            in the smallest type; shape (m,) and (n,).
        size: k. numeric: whether cells have an order. mirrored: numbers are alike whose ranks, one of them
            counted from the other end, are near.
        nameless: the cell of all labels too rare to learn anything about; −1 where there is none.
    """

    release: Places
    people: Codes
    size: int
    numeric: bool
    mirrored: bool = False
    nameless: int = -1

    @classmethod
    def of(cls, values: Floats, n_release: int, numeric: bool) -> Self:
        """Cut into cells.

        Args:
            values: those of the release first, none NaN; equal where labels are.
        """
        found, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        nameless = -1
        if numeric and len(found) > _CELLS:
            edges = np.unique(np.quantile(values, np.linspace(0, 1, _CELLS + 1)[1:-1]))
            codes = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]
        elif not numeric and (rare := _rare(counts)).any():
            codes = np.where(rare, 0, np.cumsum(~rare))[codes]
            nameless = 0
        size = int(codes.max()) + 1
        release = codes[:n_release].astype(np.min_scalar_type(size - 1))
        return cls(release, codes[n_release:].astype(np.int64), size, numeric, nameless=nameless)

    @cached_property
    def counts(self) -> Counts:
        """Rows of the release in each cell, shape (k,)."""
        return np.bincount(self.release, minlength=self.size)

    @cached_property
    def shares(self) -> Floats:
        """Share of the release in each cell, shape (k,); that of an empty one is half a row's."""
        shares: Floats = np.maximum(self.counts, 0.5) / len(self.release)
        return shares

    @cached_property
    def levels(self) -> Integers:
        """How alike two numbers are: −log2 of the share of rows as near by rank, as a whole; shape (k, k)."""
        weights = self.counts / len(self.release)
        middle = np.cumsum(weights) - weights / 2
        levels = np.empty((self.size, self.size), np.int64)
        for cell, place in enumerate(1 - middle if self.mirrored else middle):
            away = np.abs(middle - place)
            order = np.argsort(away, kind="stable")
            as_near = np.cumsum(weights[order])
            last = np.searchsorted(away[order], away[order] + 1e-12, side="right") - 1
            levels[cell, order] = np.floor(1e-9 - np.log2(np.maximum(as_near[last], 2.0**-LEVELS)))
        return np.clip(levels, 0, LEVELS - 1)

    @property
    def telling(self) -> float:
        """Entropy of the release's cells, in nats."""
        return float(-np.sum(self.counts / len(self.release) * np.log(self.shares)))


def _rare(counts: Counts) -> Bools:
    """Labels that are too rare, or too many, to learn anything about."""
    least = int(np.sort(counts)[-_CELLS]) if len(counts) >= _CELLS else 0
    rare: Bools = counts <= max(3, least)
    return rare


@dataclass(frozen=True, eq=False)
class _Order:
    """The release in the order of one column.

    Attributes:
        starts: of each person's block among its rows, shape (n,).
        places: of every column's cells in this order, as :class:`Blocks` has them, shape (d, m).
    """

    starts: Positions
    places: Places

    @classmethod
    def by(cls, column: LinkedColumn, rows: Positions, columns: Sequence[LinkedColumn]) -> Self:
        """By a column in whose order these rows are."""
        m, ends = len(rows), np.concatenate([[0], np.cumsum(column.counts)])
        middle = (ends[column.people] + ends[column.people + 1]) // 2
        starts = np.clip((m - middle if column.mirrored else middle) - BLOCK // 2, 0, m - BLOCK)
        return cls(starts, _places(columns, rows))


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which rows of the release each person is compared with: all, or those near in one of two numbers.

    Attributes:
        first_cells: the place of each column's cell 0, shape (d, 1).
        places: cells of every column counted on through all columns, so that one look into a row of all
            their weights finds them, shape (d, m); of no row where there are orders, which have them.
        orders: none where all rows are compared.
        first_place: of the rows in the second order, their place in the first.
    """

    first_cells: Codes
    places: Places
    orders: Sequence[_Order] = ()
    first_place: Positions | None = None

    @classmethod
    def of(cls, columns: Sequence[LinkedColumn]) -> Self:
        """By the two numbers that tell most, where there are more rows than both blocks hold together."""
        m, first_cells = len(columns[0].release), _first_cells(columns)[:, None]
        best = sorted((c for c in columns if c.numeric), key=lambda c: -c.telling)[:2]
        if m <= 2 * BLOCK or not best:
            return cls(first_cells, _places(columns, np.arange(m)))
        rows = [np.argsort(c.release, kind="stable") for c in best]
        orders = [_Order.by(c, r, columns) for c, r in zip(best, rows, strict=True)]
        in_first = np.empty(m, np.intp)
        in_first[rows[0]] = np.arange(m)
        none = np.empty((len(columns), 0), np.intp)
        return cls(first_cells, none, orders, in_first[rows[1]] if len(orders) > 1 else None)

    @property
    def compared(self) -> int:
        """Rows compared with one person, at most."""
        return len(self.orders) * BLOCK or self.places.shape[1]

    def of_person(self, person: int) -> tuple[list[Places], Bools | None]:
        """Places of the rows of each block, shape (d, rows), and which of the second were in the first."""
        if not self.orders:
            return [self.places], None
        starts = [int(o.starts[person]) for o in self.orders]
        found = [o.places[:, s : s + BLOCK] for o, s in zip(self.orders, starts, strict=True)]
        if self.first_place is None:
            return found, None
        place = self.first_place[starts[1] : starts[1] + BLOCK] - starts[0]
        return found, (place >= 0) & (place < BLOCK)

    def cells_of(self, person: int, chosen: Positions) -> Codes:
        """In each column the cells of some of the rows compared with a person.

        Args:
            chosen: which of these rows, for each column, shape (d, some).
        """
        of_column = np.arange(len(chosen))[:, None]
        if not self.orders:
            return self.places[of_column, chosen] - self.first_cells
        found = np.empty(chosen.shape, np.int64)
        for k, order in enumerate(self.orders):
            here = chosen // BLOCK == k
            at = int(order.starts[person]) + np.where(here, chosen - k * BLOCK, 0)
            np.copyto(found, order.places[of_column, at], where=here)
        return found - self.first_cells


def _first_cells(columns: Sequence[LinkedColumn]) -> Codes:
    """The place of each column's cell 0, shape (d,)."""
    return np.cumsum([0, *(c.size for c in columns[:-1])])


def _places(columns: Sequence[LinkedColumn], rows: Positions) -> Places:
    """Places of the cells of some rows, shape (d, rows): of few as positions, which are looked up fastest."""
    most = sum(c.size for c in columns) - 1
    found = np.empty(
        (len(columns), len(rows)), np.intp if len(rows) <= 2 * BLOCK else np.min_scalar_type(most)
    )
    for place, column, first in zip(found, columns, _first_cells(columns), strict=True):
        np.add(column.release[rows], first, out=place, dtype=found.dtype, casting="unsafe")
    return found
