"""Numbers that few people have, drawn from among those of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions


@dataclass(frozen=True, eq=False)
class RareNumbers:
    """The numbers of a column that fewer people have than may leave as they are.

    Attributes:
        values: these numbers, ascending and distinct, shape (k,).
        levels: how many people have one of them up to the middle of each, shape (k,).
        fewest: people among whom a number is drawn.
    """

    values: Floats
    levels: Floats
    fewest: float

    @classmethod
    def of(cls, numbers: Floats, weights: Floats, fewest: float) -> RareNumbers:
        """Of a sample without missing values.

        Args:
            weights: of the rows, shape (n,); those of one person sum to 1 at most.
        """
        values, place = np.unique(numbers, return_inverse=True)
        people = np.bincount(place, weights=weights, minlength=len(values))
        rare = people < fewest
        upto = np.cumsum(people[rare])
        return cls(values[rare], upto - people[rare] / 2, fewest)

    def windows(self, numbers: Floats, leaf: Positions) -> Floats:
        """Between which levels a number is drawn in the place of each, shape (n, 2); NaN if it is not rare.

        From the next lower to the next higher rare number of the same leaf, and at any rate among ``fewest``
        people of the whole column, or all where they are fewer.

        Args:
            leaf: in which each number lies, shape (n,).
        """
        found = np.full((len(numbers), 2), np.nan)
        rare = self.holds(numbers)
        if not rare.any():
            return found
        rows = np.flatnonzero(rare)
        rows = rows[np.lexsort((numbers[rows], leaf[rows]))]
        level = self.levels[np.searchsorted(self.values, numbers[rows])]
        first = np.append(True, (np.diff(leaf[rows]) != 0) | (np.diff(level) != 0))
        run = np.cumsum(first) - 1
        own, place = level[first], leaf[rows][first]
        alike = place[1:] == place[:-1]
        below, above = own.copy(), own.copy()
        below[1:][alike], above[:-1][alike] = own[:-1][alike], own[1:][alike]
        low, high = np.minimum(below, own - self.fewest / 2), np.maximum(above, own + self.fewest / 2)
        ends = self.levels[0], self.levels[-1]
        low, high = np.minimum(low, ends[1] - self.fewest), np.maximum(high, ends[0] + self.fewest)
        found[rows] = np.clip(np.column_stack([low, high]), *ends)[run]
        return found

    def holds(self, numbers: Floats) -> Bools:
        """Which numbers are rare, shape (n,)."""
        if not len(self.values):
            return np.zeros(len(numbers), dtype=bool)
        place = np.searchsorted(self.values, numbers).clip(max=len(self.values) - 1)
        held: Bools = self.values[place] == numbers
        return held

    def drawn(self, windows: Floats, uniform: Floats) -> Floats:
        """A number from each window, shape (n,); NaN from one of a number that is not rare.

        Args:
            uniform: in [0, 1), shape (n,).
        """
        if not len(self.values):
            return np.full(len(windows), np.nan)
        level = windows[:, 0] + uniform * (windows[:, 1] - windows[:, 0])
        return np.where(np.isnan(level), np.nan, np.interp(level, self.levels, self.values))
