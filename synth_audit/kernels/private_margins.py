"""How often the values of one column occur, from noisy counts: cells are divided where many rows are.

Each round counts the rows of all cells at once. Adding or removing one row changes one of these counts by 1:
a round is one query of L2 sensitivity 1, whatever the earlier rounds found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.core.arrays import Codes, Floats

Noisy = Callable[[Floats], Floats]
"""Counts with their noise."""

_MOST_PARTS = 32
"""Parts into which a cell is divided."""

_WIDER = 1.1
"""Times the share of a group, while there are too many."""

_SPREAD = 1e-6
"""Share that is spread evenly, so that every place has some."""


@dataclass(frozen=True, eq=False)
class MarginCells:
    """Neighbouring intervals and the share of each.

    Attributes:
        edges: ascending, one more than cells. shares: shape (cells,), above 0, sum 1.
    """

    edges: Floats
    shares: Floats

    def ranks(self, places: Floats) -> Floats:
        """The share below each place, within a cell in proportion."""
        return np.interp(places, self.edges, self._sums())

    def places(self, ranks: Floats) -> Floats:
        """The place below which each share lies."""
        return np.interp(ranks, self._sums(), self.edges)

    def grouped(self, most: int) -> Codes:
        """Neighbouring cells in at most ``most`` groups of much the same share; a larger cell is one alone.

        Returns:
            The first cell of each group, ascending from 0.
        """
        least = 1 / most
        while len(found := self._groups(least)) > most:
            least *= _WIDER
        return found

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"edges": self.edges.tolist(), "shares": self.shares.tolist()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> MarginCells:
        """What :meth:`plain` wrote, among other values."""
        return cls(np.array(plain["edges"]), np.array(plain["shares"]))

    def _groups(self, share: float) -> Codes:
        """Cells of ``share`` and more alone, runs of others cut where their sum passes a multiple of it."""
        large = self.shares >= share
        below = np.cumsum(np.where(large, 0.0, self.shares)) - np.where(large, 0.0, self.shares)
        part = np.floor(below / share)
        begins = np.ones(len(large), dtype=bool)
        begins[1:] = large[1:] | large[:-1] | (part[1:] != part[:-1])
        return np.flatnonzero(begins)

    def _sums(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.shares) / self.shares.sum()])


def rounds(places: int) -> int:
    """How many rounds single out one of so many places."""
    return max(1, math.ceil(math.log(max(places, 2), _MOST_PARTS)))


def adaptive_cells(values: Floats, places: int, noisy: Noisy, least: float) -> MarginCells:
    """Cells of ``[0, places)``, down to width 1 where more than ``least`` rows were counted.

    Args:
        values: where the rows are, shape (n,).
        noisy: called ``rounds(places)`` times at most.
        least: rows, to be chosen well above the noise.
    """
    ordered, n_rounds = np.sort(values), rounds(places)
    parts = max(2, math.ceil(places ** (1 / n_rounds) - 1e-9))
    width = float(parts**n_rounds)
    starts, shares, found = np.array([0.0]), np.array([1.0]), []
    for _ in range(n_rounds):
        if not len(starts):
            break
        width /= parts
        children = starts[:, None] + width * np.arange(parts)
        ends = np.searchsorted(ordered, np.stack([children, children + width]))
        counts = noisy((ends[1] - ends[0]).astype(np.float64))
        counts[children >= places] = -math.inf  # known to be empty
        own = shares[:, None] * np.stack([settled(row, least) for row in counts])
        divided = counts > least
        found.append((children[~divided], own[~divided], width))
        starts, shares = children[divided], own[divided]
    return _joined([*found, (starts, shares, width)], places)


def settled(counts: Floats, least: float) -> Floats:
    """Shares from noisy counts: those below ``least`` share what is left in equal parts; −∞ has nothing.

    Returns:
        Shape of ``counts``, sum 1.
    """
    able = np.isfinite(counts)
    large = able & (counts > least)
    left = max(float(counts[able].sum() - counts[large].sum()), 0.0)
    kept = np.where(large, counts, 0.0)
    small = able & ~large
    if small.any():
        kept = kept + small * (left / small.sum())
    if not kept.any():
        kept = able.astype(np.float64)
    found: Floats = kept / kept.sum()
    return found


def _joined(parts: list[tuple[Floats, Floats, float]], places: int) -> MarginCells:
    starts = np.concatenate([start for start, _, _ in parts])
    shares = np.concatenate([share for _, share, _ in parts])
    order = np.argsort(starts)
    inside = order[starts[order] < places]
    edges = np.append(starts[inside], float(places))
    spread = _SPREAD * np.diff(edges) / places
    return MarginCells(edges, (1 - _SPREAD) * shares[inside] + spread)
