"""The numbers of one column in their order: sorted once, they answer for cells, counts and distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Codes, Floats

_QUANTILES, _EXTREMES = 128, 16
"""Fine cells of about equal mass, and values at either end with a cell of their own: tails weigh most."""


@dataclass(frozen=True, eq=False)
class SortedNumbers:
    """A sample.

    Attributes:
        values: those present, ascending, shape (n,). missing: how many others there are.
    """

    values: Floats
    missing: int

    @classmethod
    def of(cls, numbers: Floats) -> SortedNumbers:
        """Of numbers in any order, NaN where missing."""
        known = np.sort(numbers[~np.isnan(numbers)])
        return cls(known, len(numbers) - len(known))

    def quantile_cells(self, most: int) -> Floats:
        """Inner edges of at most ``most`` cells of about equal mass, shape (≤ most − 1,).

        A value so frequent that it fills several cells gets one of its own, so spikes survive.
        """
        if not len(self.values):
            return np.empty(0)
        edges = np.unique(np.quantile(self.values, np.linspace(0, 1, most + 1)[1:-1]))
        heavy = edges[self.held(edges) / len(self.values) >= 1 / most]
        return np.unique(np.concatenate([edges, np.nextafter(heavy, -np.inf)]))

    def held(self, at: Floats) -> Codes:
        """How many values are equal to each of ``at``."""
        return self.values.searchsorted(at, "right") - self.values.searchsorted(at, "left")

    def cell_counts(self, edges: Floats) -> Codes:
        """Numbers in each cell of these inner edges, the last for missing, shape (len(edges) + 2,)."""
        return np.append(_cell_sizes(self.values, edges), self.missing)

    def most_frequent(self) -> tuple[Floats, int]:
        """The values that no other is more frequent than, ascending, and how often each is held."""
        last = _last_of_equals(self.values)
        counts = np.diff(last, prepend=-1)
        most = int(counts.max(initial=0))
        return self.values[last[counts == most]], most


@dataclass(frozen=True, eq=False)
class SortedPair:
    """Two samples, neither of them empty, in one order.

    Attributes:
        values: of both, ascending, shape (n + m,). last: position of the last of each distinct value, (k,).
        below: how many of the first sample are no larger than each distinct value, shape (k,).
        gaps: ``F − G`` of the two distribution functions at each distinct value, shape (k,).
    """

    values: Floats
    last: Codes
    below: Codes
    gaps: Floats

    @classmethod
    def of(cls, first: SortedNumbers, second: SortedNumbers) -> SortedPair:
        """Merge them."""
        n, m = len(first.values), len(second.values)
        both = np.concatenate([first.values, second.values])
        order = np.argsort(both, kind="stable")  # which takes two sorted halves in one pass
        values = both[order]
        last = _last_of_equals(values)
        of_first = np.cumsum(order < n, dtype=np.int64)[last]
        return cls(values, last, of_first, of_first / n - (last + 1 - of_first) / m)

    def kolmogorov_smirnov(self, fewest: int = 1) -> float:
        """Largest distance between the two distribution functions, in [0, 1].

        Args:
            fewest: values are left out that divide the first sample so that fewer lie on one side, if any;
                beside the second sample the distance would tell how few.
        """
        return float(np.abs(self.gaps[tellable(self.below, fewest)]).max(initial=0.0))

    def wasserstein(self, scaled: Floats) -> float:
        """``W₁ = ∫ |F(x) − G(x)| dx``, in the unit of ``scaled``: how far a value must move on average.

        Args:
            scaled: :attr:`values` in any unit, shape (n + m,), ascending.
        """
        return float(np.abs(self.gaps[:-1]) @ np.diff(scaled[self.last]))

    def fine_cells(self, coarse: Floats) -> Floats:
        """Inner edges of cells so fine that a distance between them stands for that between values.

        Each value has a cell of its own where they are few; else about 128 cells of equal mass, and the 16
        values at either end on their own. The coarse edges are among them.
        """
        known = self.values[self.last]
        if len(known) > _QUANTILES + 2 * _EXTREMES:
            middle = np.quantile(self.values, np.linspace(0, 1, _QUANTILES + 1)[1:-1])
            known = np.concatenate([known[:_EXTREMES], middle, known[-_EXTREMES - 1 :]])
        return np.unique(np.concatenate([known[:-1], coarse]))

    def cell_places(self, edges: Floats, scaled: Floats, beside: Floats) -> Floats:
        """Where each cell lies: the mean of its values, or its edge where it has none, (len(edges) + 1,).

        Args:
            scaled: :attr:`values` in the unit of the places. beside: the edges in it.
        """
        sizes = _cell_sizes(self.values, edges)
        filled = sizes > 0
        places = np.append(beside, beside[-1:]) if len(edges) else np.zeros(1)
        starts = (np.cumsum(sizes) - sizes)[filled]
        places[filled] = np.add.reduceat(scaled, starts) / sizes[filled]
        return places


def tellable(below: Codes, fewest: int) -> Bools:
    """Where a sample is divided into none, or at least ``fewest``, on either side.

    Args:
        below: how many of the sample lie below each cut, ascending, all of them last; shape (k,).
    """
    above = below[-1:] - below
    told: Bools = ((below == 0) | (below >= fewest)) & ((above == 0) | (above >= fewest))
    return told


def _last_of_equals(ascending: Floats) -> Codes:
    if not len(ascending):
        return np.empty(0, dtype=np.int64)
    return np.append(np.flatnonzero(ascending[1:] != ascending[:-1]), len(ascending) - 1)


def _cell_sizes(ascending: Floats, edges: Floats) -> Codes:
    """A cell holds what is above the edge below it, and up to its own edge."""
    return np.diff(ascending.searchsorted(edges, "right"), prepend=0, append=len(ascending))
