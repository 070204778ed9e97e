"""One number in bins of much the same share, by noisy counts; its values are drawn as they were counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.table import Table
from synth_audit.encoding.number_domain import NumberDomain
from synth_audit.encoding.value_counts import Counting
from synth_audit.kernels.private_margins import MarginCells, adaptive_cells


@dataclass(frozen=True, eq=False)
class CellBins:
    """Bins of neighbouring cells; a value that many rows share is a bin alone.

    From a bin its cells are drawn as often as they were counted, and any value of a cell with equal
    probability.

    Attributes:
        cells: over the places of the domain. first: the first cell of each bin.
        gap: values may be missing.
    """

    name: str
    domain: NumberDomain
    cells: MarginCells = field(repr=False)
    first: Codes = field(repr=False)
    gap: bool

    @classmethod
    def counted(
        cls, name: str, domain: NumberDomain, values: Floats, counting: Counting, bins: int, *, gap: bool
    ) -> CellBins:
        """From ``rounds(domain.places)`` noisy counts of the values, NaN where missing."""
        placed = domain.placed(values[~np.isnan(values)])
        cells = adaptive_cells(placed, domain.places, counting.noisy, counting.least)
        return cls(name, domain, cells, cells.grouped(bins), gap)

    @property
    def size(self) -> int:
        """Bins, and missing."""
        return len(self.first) + self.gap

    def codes(self, table: Table) -> Codes:
        """The bin of each number."""
        numbers = table.numbers(self.name)
        missing = np.isnan(numbers)
        places = self.domain.placed(np.where(missing, self.domain.low, numbers))
        found = np.searchsorted(self._ends[1:-1], places, side="right")
        return np.where(missing, len(self.first) if self.gap else 0, found).astype(np.int64)

    def values(self, codes: Codes, rng: np.random.Generator) -> Floats:
        """Numbers within the bins."""
        ends = self._ends
        ranks, bins = self.cells.ranks(ends), np.minimum(codes, len(self.first) - 1)
        drawn = ranks[bins] + rng.random(len(codes)) * (ranks[bins + 1] - ranks[bins])
        places = np.clip(self.cells.places(drawn), ends[bins], np.nextafter(ends[bins + 1], 0))
        return np.where(codes == len(self.first), np.nan, self.domain.values(places))

    def plain(self) -> dict[str, Any]:
        """The fields."""
        fixed = {"name": self.name, "domain": self.domain.plain(), "gap": self.gap}
        return {**fixed, **self.cells.plain(), "first": self.first.tolist()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> CellBins:
        """What :meth:`plain` wrote."""
        domain, first = NumberDomain.from_plain(plain["domain"]), np.array(plain["first"], dtype=np.int64)
        return cls(plain["name"], domain, MarginCells.from_plain(plain), first, plain["gap"])

    @property
    def _ends(self) -> Floats:
        """Places where bins begin, and the end of the last."""
        return np.append(self.cells.edges[self.first], self.cells.edges[-1])
