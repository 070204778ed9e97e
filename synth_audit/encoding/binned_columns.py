"""One column as the number of a cell, and back: labels one each, numbers in bins of equal width or share.

What is missing has a cell of its own, the last, wherever values may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Labels
from synth_audit.core.kind import Bounds
from synth_audit.core.table import Table
from synth_audit.encoding.cell_bins import CellBins

_EXACT = 2.0**40
"""More values than this between two bounds are drawn as if there were no spacing."""


class BinnedColumn(Protocol):
    """The cells of one column."""

    @property
    def name(self) -> str:
        """Of the column."""

    @property
    def size(self) -> int:
        """How many cells, 1 or more."""

    def codes(self, table: Table) -> Codes:
        """The cell of each row, shape (n,), in 0 … size − 1."""

    def values(self, codes: Codes, rng: np.random.Generator) -> Floats | Labels:
        """A plain value from each cell, shape (n,)."""

    def plain(self) -> dict[str, Any]:
        """As JSON values; :func:`column_from_plain` reads them."""


@dataclass(frozen=True)
class LabelBins:
    """A cell for every label.

    Attributes:
        labels: all that may be drawn; a label of a row that is not among them counts as missing, or where
            nothing may be missing as the first.
        gap: values may be missing.
    """

    name: str
    labels: tuple[str, ...]
    gap: bool

    @property
    def size(self) -> int:
        """Labels, and missing."""
        return max(1, len(self.labels) + self.gap)

    def codes(self, table: Table) -> Codes:
        """Positions among the labels."""
        from pandas import Index  # here, so that looking around stays light

        found = Index(np.array(self.labels, dtype=object)).get_indexer(Index(table.labels(self.name)))
        return np.where(found < 0, len(self.labels) if self.gap else 0, found).astype(np.int64)

    def values(self, codes: Codes, rng: np.random.Generator) -> Labels:
        """The labels."""
        return np.array([*self.labels, None], dtype=object)[codes]

    def plain(self) -> dict[str, Any]:
        """The fields."""
        return {"name": self.name, "labels": list(self.labels), "gap": self.gap}


@dataclass(frozen=True)
class RangeBins:
    """Bins of equal width between two bounds; what lies outside is clipped.

    Values that are a step apart are dealt to the bins as evenly as they go, and are drawn from a bin with
    equal probability; without a step any number between the ends of the bin is.

    Attributes:
        bounds: lowest and highest value; None where no value is known.
        bins: how many at most.
        step: spacing of the values; 0 where all between the bounds can occur.
        gap: values may be missing.
    """

    name: str
    bounds: Bounds | None
    bins: int
    step: float
    gap: bool

    @property
    def size(self) -> int:
        """Bins, and missing."""
        return max(1, self._bins + self.gap)

    @property
    def _values(self) -> int:
        """How many values there are; 0 where they are not counted."""
        if self.bounds is None or not self.step:
            return 0
        last = (self.bounds[1] - self.bounds[0]) / self.step
        return round(last) + 1 if last < _EXACT else 0

    @property
    def _bins(self) -> int:
        if self.bounds is None:
            return 0
        if self.bounds[0] == self.bounds[1]:
            return 1
        return min(self.bins, self._values) if self._values else self.bins

    def codes(self, table: Table) -> Codes:
        """The bin of each number."""
        numbers = table.numbers(self.name)
        missing = np.isnan(numbers)
        last = self._bins if self.gap else 0
        if self.bounds is None:
            return np.zeros(len(numbers), dtype=np.int64)
        low, high = self.bounds
        inside = np.clip(np.where(missing, low, numbers), low, high) - low
        if self._values:
            place = np.rint(inside / self.step).astype(np.int64) * self._bins // self._values
        else:
            place = np.floor(inside / ((high - low) or 1.0) * self._bins).astype(np.int64)
        return np.where(missing, last, np.clip(place, 0, self._bins - 1))

    def values(self, codes: Codes, rng: np.random.Generator) -> Floats:
        """Numbers within the bins."""
        if self.bounds is None:
            return np.full(len(codes), np.nan)
        low, high = self.bounds
        share = rng.random(len(codes))
        if n := self._values:
            first, after = -(-codes * n // self._bins), -(-(codes + 1) * n // self._bins)
            numbers = low + (first + np.floor(share * (after - first))) * self.step
        else:
            numbers = low + (codes + share) / self._bins * (high - low)
        return np.where(codes == self._bins, np.nan, np.clip(numbers, low, high))

    def plain(self) -> dict[str, Any]:
        """The fields."""
        return {
            "name": self.name,
            "bounds": self.bounds,
            "bins": self.bins,
            "step": self.step,
            "gap": self.gap,
        }


def column_from_plain(plain: Mapping[str, Any]) -> BinnedColumn:
    """The column that wrote these JSON values."""
    if "edges" in plain:
        return CellBins.from_plain(plain)
    if "labels" in plain:
        return LabelBins(plain["name"], tuple(plain["labels"]), plain["gap"])
    ends = None if plain["bounds"] is None else (float(plain["bounds"][0]), float(plain["bounds"][1]))
    return RangeBins(plain["name"], ends, plain["bins"], plain["step"], plain["gap"])
