"""One number as its rank among the values that its column is known to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from synth_audit.core.arrays import Floats, Floats32
from synth_audit.core.table import Table
from synth_audit.encoding.number_domain import NumberDomain
from synth_audit.kernels.calibration import label_offsets, rank_knots
from synth_audit.kernels.private_margins import MarginCells, Noisy, adaptive_cells, rounds, settled
from synth_audit.kernels.row_layout import one_hot

_PLACES = 4096
"""Of a number that may lie anywhere between its ends."""


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
        return rounds(_places(domain)) + gap

    @classmethod
    def counted(
        cls, name: str, domain: NumberDomain, values: Floats, noisy: Noisy, least: float, *, gap: bool
    ) -> RankTransform:
        """From noisy counts of the values, NaN where missing; ``least`` rows are told from noise."""
        missing = np.isnan(values)
        rng = np.random.default_rng(0)  # a place within a step of the grid; nothing hangs on it
        cells = adaptive_cells(_placed(values[~missing], domain, rng), _places(domain), noisy, least)
        share = None
        if gap:
            counts = noisy(np.array([len(values) - missing.sum(), missing.sum()], dtype=np.float64))
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
        ranks = 2 * self.cells.ranks(_placed(known, self.domain, rng)) - 1
        number = np.where(missing, 0, ranks).astype(np.float32)[:, None]
        return np.hstack([number, one_hot(missing.astype(np.intp), 2)]) if self.slices else number

    def decode(self, vectors: Floats32) -> Floats:
        """Within the bounds, on the grid."""
        number = vectors[:, 0].astype(np.float64)
        if self.knots:
            ranks = np.interp(number, self.knots, np.linspace(0, 1, len(self.knots)))
        else:
            ranks = (np.clip(number, -1, 1) + 1) / 2
        values = _value(self.cells.places(ranks), self.domain)
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
        domain = [self.domain.low, self.domain.high, self.domain.step]
        edges, shares = self.cells.edges.tolist(), self.cells.shares.tolist()
        fixed = {"name": self.name, "domain": domain, "edges": edges, "shares": shares, "gap": self.gap}
        return {**fixed, "knots": list(self.knots), "offset": self.offset}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RankTransform:
        """What :meth:`plain` wrote."""
        cells = MarginCells(np.array(plain["edges"]), np.array(plain["shares"]))
        domain = NumberDomain(*plain["domain"])
        return cls(plain["name"], domain, cells, plain["gap"], tuple(plain["knots"]), plain["offset"])


def _places(domain: NumberDomain) -> int:
    if domain.step:
        return min(2**31, 1 + round((domain.high - domain.low) / domain.step))
    return _PLACES


def _placed(values: Floats, domain: NumberDomain, rng: np.random.Generator) -> Floats:
    """Where values lie in [0, places): anywhere within their own step of a grid."""
    values = np.clip(values, domain.low, domain.high)
    if domain.step:
        index = np.minimum(np.rint((values - domain.low) / domain.step), _places(domain) - 1)
        return index + rng.random(len(values))
    share = (values - domain.low) / (domain.high - domain.low)
    return np.minimum(share * _PLACES, np.nextafter(_PLACES, 0))


def _value(places: Floats, domain: NumberDomain) -> Floats:
    if domain.step:
        found = domain.low + np.floor(places) * domain.step
    else:
        found = domain.low + (domain.high - domain.low) * (places / _PLACES)
    return np.clip(found, domain.low, domain.high)
