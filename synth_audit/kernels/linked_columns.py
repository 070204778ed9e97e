"""Columns as record linkage compares them: cells, how alike two numbers are, and which rows are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

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
        below = np.concatenate([[0.0], np.cumsum(weights)])
        middle = below[1:] - weights / 2
        places = (1 - middle if self.mirrored else middle)[:, None]
        away = np.abs(middle - places) + 1e-12
        first, end = np.searchsorted(middle, places - away), np.searchsorted(middle, places + away, "right")
        as_near = np.maximum(below[end] - below[first], 2.0**-LEVELS)
        levels: Integers = np.floor(1e-9 - np.log2(as_near)).astype(np.int64)
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
class Blocks:
    """Which rows of the release each person is compared with: all, or those near in one of two numbers.

    Attributes:
        first_cells: the place of each column's cell 0, shape (d, 1).
        places: cells of every column counted on through all columns, so that one look into a row of all
            their weights finds them; of the release in each of the orders, one after the other, shape
            (d, orders · m).
        starts: of each person's block among the rows of each order, shape (orders, n).
        width: rows of a block.
        first_place: of the rows in the second order, their place in the first; None with one order.
    """

    first_cells: Codes
    places: Places
    starts: Positions
    width: int
    first_place: Positions | None = None

    @classmethod
    def of(cls, columns: Sequence[LinkedColumn]) -> Self:
        """By the two numbers that tell most, where there are more rows than both blocks hold together."""
        m, first_cells = len(columns[0].release), _first_cells(columns)[:, None]
        best = sorted((c for c in columns if c.numeric), key=lambda c: -c.telling)[:2]
        if m <= 2 * BLOCK or not best:
            nowhere_else = np.zeros((1, len(columns[0].people)), np.intp)
            return cls(first_cells, _places(columns, [np.arange(m)]), nowhere_else, m)
        rows = [np.argsort(c.release, kind="stable") for c in best]
        starts = np.array([_starts(c, m) for c in best])
        first_place = None
        if len(rows) > 1:
            in_first = np.empty(m, np.intp)
            in_first[rows[0]] = np.arange(m)
            first_place = in_first[rows[1]]
        return cls(first_cells, _places(columns, rows), starts, BLOCK, first_place)

    @property
    def compared(self) -> int:
        """Rows compared with one person."""
        return len(self.starts) * self.width

    @property
    def n_release(self) -> int:
        """Rows of the release."""
        return int(self.places.shape[1]) // len(self.starts)

    def places_of(self, people: Positions, chosen: Positions) -> Codes:
        """In each column the places of some of the rows that people are compared with.

        Args:
            chosen: which of these rows, shape (people, some), or for each column, shape (people, d, some).

        Returns:
            shape (people, d, some).
        """
        block = np.arange(len(self.starts))
        before = (self.starts[:, people] + (block * (self.n_release - self.width))[:, None]).T
        each = chosen if chosen.ndim == 3 else chosen[:, None]
        at = each + (
            before[:, :1, None]
            if len(block) == 1
            else np.where(each < self.width, before[:, :1, None], before[:, 1:, None])
        )
        first = np.arange(len(self.places))[:, None] * self.places.shape[1]
        found: Codes = self.places.ravel().take(at + first, mode="clip").astype(np.int64)
        return found

    def seen_before(self, people: Positions) -> Bools:
        """Which rows of the second block of each of some people are in the first, shape (people, width)."""
        assert self.first_place is not None
        first, second = self.starts[:, people]
        place = sliding_window_view(self.first_place, self.width)[second] - first[:, None]
        seen: Bools = (place >= 0) & (place < self.width)
        return seen


def _starts(column: LinkedColumn, m: int) -> Positions:
    """Of each person's block among the m rows in the order of a column."""
    ends = np.concatenate([[0], np.cumsum(column.counts)])
    middle = (ends[column.people] + ends[column.people + 1]) // 2
    starts: Positions = np.clip((m - middle if column.mirrored else middle) - BLOCK // 2, 0, m - BLOCK)
    return starts


def _first_cells(columns: Sequence[LinkedColumn]) -> Codes:
    """The place of each column's cell 0, shape (d,)."""
    return np.cumsum([0, *(c.size for c in columns[:-1])])


def _places(columns: Sequence[LinkedColumn], orders: Sequence[Positions]) -> Places:
    """Places of the cells of all rows in each of the orders, shape (d, orders · m)."""
    most, m = sum(c.size for c in columns) - 1, len(orders[0])
    found = np.empty((len(columns), len(orders) * m), np.min_scalar_type(most))
    for place, column, first in zip(found, columns, _first_cells(columns), strict=True):
        for k, rows in enumerate(orders):
            np.add(column.release[rows], first, out=place[k * m : (k + 1) * m], casting="unsafe")
    return found
