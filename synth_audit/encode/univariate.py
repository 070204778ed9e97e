"""The distribution of one column: its domain, missing values included, learned and drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from synth_audit.arrays import Floats, Labels
from synth_audit.encode.codes import Vocabulary
from synth_audit.stats.margins import Margin
from synth_audit.table.coarsening import spacing
from synth_audit.table.kind import Bounds
from synth_audit.table.resolution import Resolution, ValueGrid
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_TOGETHER = 10
"""Extreme values whose mean stands for the end of a range, so that nobody's own extreme is drawn."""

_PLACES = 4096
"""Of a number that may lie anywhere between its ends."""

_MOST_PLACES = 2**31
"""Places of a grid at most, so that each fits 32 bits."""


@dataclass(frozen=True, eq=False)
class Categories:
    """Labels, None for missing, with their frequencies, each of shape (k,)."""

    labels: Labels
    shares: Floats

    @classmethod
    def of(cls, train: Table, name: str) -> Categories:
        """As often as train holds them."""
        known = Vocabulary.of(name, train, exact=True)
        rows = np.append(known.counts(train), train.n_missing(name))
        return cls(np.array([*known.labels, None], dtype=object), rows / train.n_rows)

    def sample(self, n: int, rng: np.random.Generator) -> Labels:
        """Labels, shape (n,)."""
        return self.labels[rng.choice(len(self.labels), size=n, p=self.shares)]


@dataclass(frozen=True, eq=False)
class NumbersWithGaps:
    """A margin, None when every value is missing, and the share of missing values."""

    margin: Margin | None
    missing: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Numbers, NaN where missing, shape (n,)."""
        levels, gaps = rng.random(n), rng.random(n) < self.missing
        values = np.full(n, np.nan) if self.margin is None else self.margin.quantile(levels)
        return np.where(gaps, np.nan, values)


Univariate: TypeAlias = Categories | NumbersWithGaps
"""The distribution of one column, missing values included."""


@dataclass(frozen=True)
class NumberDomain:
    """Multiples of ``step`` from ``low`` to ``high``; any number between where it is 0."""

    low: float
    high: float
    step: float

    @property
    def places(self) -> int:
        """How many values there are; 4,096 intervals of equal width where they are not counted."""
        if self.step:
            return min(_MOST_PLACES, 1 + round((self.high - self.low) / self.step))
        return _PLACES

    def placed(self, values: Floats) -> Floats:
        """Where values lie in [0, places), beyond the ends at the nearest; whole if there is a step."""
        inside = np.clip(values, self.low, self.high) - self.low
        if self.step:
            return np.minimum(np.rint(inside / self.step), self.places - 1)
        share = inside / (self.high - self.low)
        return np.minimum(share * _PLACES, np.nextafter(_PLACES, 0))

    def values(self, places: Floats) -> Floats:
        """The values at these places; of a domain with a step the one at or below."""
        if self.step:
            found = self.low + np.floor(places) * self.step
        else:
            found = self.low + (self.high - self.low) * (places / _PLACES)
        return np.clip(found, self.low, self.high)


def number_domain(column: Column, bounds: Bounds, resolution: Resolution | None) -> NumberDomain:
    """The values within the bounds that the column can hold, by its resolution or else how it is stored."""
    if resolution is None:
        step = spacing(column)
        return NumberDomain(*(ValueGrid(step).within(bounds) if step else bounds), step)
    return NumberDomain(
        *resolution.grid.within(bounds), 0.0 if resolution.grid.calendar else resolution.grid.step
    )


def ends_of(values: Floats) -> Bounds | None:
    """The mean of the ten smallest and that of the ten largest values, of fewer where there are few."""
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return None
    some = max(1, min(_TOGETHER, len(known) // 4))
    low, high = known[0], known[-1]  # differences to them: the mean of equal values is then that value
    return float(low + (known[:some] - low).mean()), float(high + (known[-some:] - high).mean())
