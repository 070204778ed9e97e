"""One number as a standard normal coordinate by its rank in train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.core.arrays import Floats, Floats32
from synth_audit.core.kind import Bounds
from synth_audit.core.table import Table
from synth_audit.kernels.row_layout import one_hot

_MOST, _LEAST, _ROWS_EACH = 1000, 10, 30
"""Quantiles that are kept: one for so many rows each, but no more and no fewer than these."""

_RAREST = 1e-5
"""Ranks nearer to 0 or 1 count as this."""


@dataclass(frozen=True)
class QuantileTransform:
    """A number x as ``Φ⁻¹(F(x))``, F linear between quantiles of train: a standard normal coordinate.

    A value that many rows share is a step of F, and each of its rows lies anywhere within the step, by a
    draw; whatever a network draws there is that value. What is missing lies anywhere.

    Attributes:
        quantiles: ascending, shape (k,), k ≥ 2, the i-th for rank ``i / (k − 1)``; the first and last are
            means of the ten outermost values. A shared value occurs several times.
        gap: values may be missing; then a slice, *present* and *missing*, follows the number.

    Source: Kotelnikov et al. 2023, section 4; that shared values fill their step is ours.
    """

    name: str
    quantiles: tuple[float, ...]
    gap: bool

    numbers = 1
    choice = False
    known = False

    @classmethod
    def of(cls, name: str, values: Floats, bounds: Bounds) -> QuantileTransform:
        """Quantiles of the values that are present, of which two at least differ, within the bounds."""
        known = values[~np.isnan(values)]
        count = min(_MOST, max(_LEAST, len(known) // _ROWS_EACH))
        inner = np.quantile(known, np.linspace(0, 1, count)[1:-1], method="median_unbiased")
        quantiles = np.concatenate([bounds[:1], np.clip(inner, *bounds), bounds[1:]])
        return cls(name, tuple(quantiles.tolist()), len(known) < len(values))

    @property
    def slices(self) -> tuple[int, ...]:
        """*Present* and *missing*."""
        return (2,) if self.gap else ()

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The normal coordinate, and whether the number is missing."""
        from scipy.special import ndtri  # here, so that looking around stays light

        values = table.numbers(self.name)
        missing = np.isnan(values)
        ranks = np.where(missing, rng.random(len(values)), self._ranks(values, rng.random(len(values))))
        number = ndtri(np.clip(ranks, _RAREST, 1 - _RAREST)).astype(np.float32)[:, None]
        return np.hstack([number, one_hot(missing.astype(np.intp), 2)]) if self.gap else number

    def _ranks(self, values: Floats, places: Floats) -> Floats:
        """``F``; of a shared value as far up its step as its place in [0, 1) says."""
        distinct, first, count = np.unique(self.quantiles, return_index=True, return_counts=True)
        last = first + count - 1
        below = np.clip(np.searchsorted(distinct, values, side="right") - 1, 0, len(distinct) - 1)
        above = np.minimum(below + 1, len(distinct) - 1)
        width = np.where(above > below, distinct[above] - distinct[below], 1.0)
        share = np.clip((values - distinct[below]) / width, 0, 1)
        between = last[below] + share * (first[above] - last[below])
        within = first[below] + places * (last - first)[below]
        ranks: Floats = np.where(values <= distinct[below], within, between) / (len(self.quantiles) - 1)
        return ranks

    def decode(self, vectors: Floats32) -> Floats:
        """Within the bounds."""
        from scipy.special import ndtr

        ranks = ndtr(vectors[:, 0].astype(np.float64))
        values: Floats = np.interp(ranks, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        if self.gap:
            values[vectors[:, -1] > vectors[:, -2]] = np.nan
        return values

    def calibrated(self, vectors: Floats32) -> QuantileTransform:
        """As it is."""
        return self

    def plain(self) -> dict[str, Any]:
        """The fields."""
        return {"name": self.name, "quantiles": self.quantiles, "gap": self.gap}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> QuantileTransform:
        """What :meth:`plain` wrote."""
        return cls(plain["name"], tuple(plain["quantiles"]), plain["gap"])
