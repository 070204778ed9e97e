"""One number as its rank among the values that its column is known to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from synth_audit.core.arrays import Floats, Floats32
from synth_audit.core.table import Table
from synth_audit.encoding.number_domain import NumberDomain
from synth_audit.encoding.value_counts import Counting
from synth_audit.kernels.calibration import label_offsets, rank_knots
from synth_audit.kernels.private_margins import MarginCells, adaptive_cells, rounds, settled
from synth_audit.kernels.row_layout import one_hot


@dataclass(frozen=True, eq=False)
class RankTransform:
    """A number as ``2 F(x) − 1``, F its distribution by noisy counts; what many rows share is a step of F.

    Where F jumps a row lies anywhere within the jump, by a draw; what a network draws there is that value.

    Attributes:
        domain: lowest and highest value, and the distance of neighbours.
        cells: F, over the places of the domain.
        gap: share of missing values; None where none may be missing.
        knots: ranks of what a network draws; without them it draws ranks.
        offset: added to *missing* when a network draws.
    """

    name: str
    domain: NumberDomain
    cells: MarginCells = field(repr=False)
    gap: float | None
    knots: tuple[float, ...] = ()
    offset: float = 0.0

    choice = False
    known = True
    numbers = 1

    @staticmethod
    def queries(domain: NumberDomain, *, gap: bool) -> int:
        """Noisy counts that :meth:`counted` asks for."""
        return rounds(domain.places) + gap

    @classmethod
    def counted(
        cls, name: str, domain: NumberDomain, values: Floats, counting: Counting, *, gap: bool
    ) -> RankTransform:
        """From noisy counts of the values, NaN where missing."""
        missing = np.isnan(values)
        cells = adaptive_cells(domain.placed(values[~missing]), domain.places, counting.noisy, counting.least)
        share = None
        if gap:
            counts = counting.noisy(np.array([len(values) - missing.sum(), missing.sum()], dtype=np.float64))
            share = float(settled(counts, 0.0)[1])
        return cls(name, domain, cells, share)

    @property
    def slices(self) -> tuple[int, ...]:
        """*Present* and *missing*."""
        return () if self.gap is None else (2,)

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The rank, 0 where missing, and whether it is."""
        values = table.numbers(self.name)
        missing = np.isnan(values)
        known = np.where(missing, self.domain.low, values)
        ranks = 2 * self.cells.ranks(_within(self.domain.placed(known), self.domain, rng)) - 1
        number = np.where(missing, 0, ranks).astype(np.float32)[:, None]
        return np.hstack([number, one_hot(missing.astype(np.intp), 2)]) if self.slices else number

    def decode(self, vectors: Floats32) -> Floats:
        """Within the bounds, on the grid."""
        number = vectors[:, 0].astype(np.float64)
        if self.knots:
            ranks = np.interp(number, self.knots, np.linspace(0, 1, len(self.knots)))
        else:
            ranks = (np.clip(number, -1, 1) + 1) / 2
        values = self.domain.values(self.cells.places(ranks))
        if self.slices:
            values[vectors[:, -1] + self.offset > vectors[:, -2]] = np.nan
        return values

    def calibrated(self, vectors: Floats32) -> RankTransform:
        """Such that these vectors of a network decode to the counted distribution."""
        if self.gap is None:
            return replace(self, knots=tuple(rank_knots(vectors[:, 0]).tolist()))
        present, missing = label_offsets(vectors[:, -2:], np.array([1 - self.gap, self.gap]))
        offset = float(missing - present)
        there = vectors[:, -1] + offset <= vectors[:, -2]
        ranked = vectors[there] if there.any() else vectors
        return replace(self, knots=tuple(rank_knots(ranked[:, 0]).tolist()), offset=offset)

    def plain(self) -> dict[str, Any]:
        """The fields."""
        fixed = {"name": self.name, "domain": self.domain.plain(), "gap": self.gap, **self.cells.plain()}
        return {**fixed, "knots": list(self.knots), "offset": self.offset}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RankTransform:
        """What :meth:`plain` wrote."""
        cells, domain = MarginCells.from_plain(plain), NumberDomain.from_plain(plain["domain"])
        return cls(plain["name"], domain, cells, plain["gap"], tuple(plain["knots"]), plain["offset"])


def _within(places: Floats, domain: NumberDomain, rng: np.random.Generator) -> Floats:
    """Anywhere within their own step of a grid."""
    return places + rng.random(len(places)) if domain.step else places
