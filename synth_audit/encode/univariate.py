"""The distribution of one column: its domain, missing values included, learned and drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from synth_audit.arrays import Floats, Labels, Positions
from synth_audit.encode.codes import Vocabulary, codes
from synth_audit.encode.kinds import number_kind
from synth_audit.stats.margins import Margin, empirical_margin, kde_margin, stepwise_margin
from synth_audit.stats.resampling import outlying, rarest
from synth_audit.table.coarsening import spacing
from synth_audit.table.kind import Bounds, VectorPart
from synth_audit.table.resolution import Resolution, ValueGrid
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

MarginMethod: TypeAlias = Literal["kde", "empirical"]
"""How a distribution of numbers is learnt: a kernel density, or the sample's own distribution."""

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


def univariate(train: Table, column: Column, method: MarginMethod) -> Univariate:
    """Frequencies of labels; of numbers a margin, and a share of missing values."""
    if not number_kind(column):
        return Categories.of(train, column.name)
    values = train.numbers(column.name)
    gaps = np.isnan(values)
    return NumbersWithGaps(None if gaps.all() else column_margin(column, values, method), float(gaps.mean()))


def column_margin(column: Column, values: Floats, method: MarginMethod) -> Margin:
    """The distribution of numbers of a column; what is drawn from it fits declared bounds and storage.

    Of codes of labels their frequencies, and nothing between them.

    Args:
        values: shape (n,), NaN where missing.

    Raises:
        ValueError: no value is present.
    """
    if (kind := number_kind(column)) is None:
        return stepwise_margin(values)
    step, limits = kind.step(column.storage), kind.limits(column.storage)
    if method == "empirical":
        return empirical_margin(values, step=step, limits=limits)
    return kde_margin(values, step=step, bounds=kind.support(column.declared_bounds), limits=limits)


def outlying_rows(table: Table, column: Column, tail: float) -> Positions:
    """Rows with a number beyond the tails, a share ``tail``, or with one of the rarest labels; ascending.

    Of free text, which mostly occurs once, rows whose letters are the least like those of all: their vectors
    are farther from the mean vector than the quantile ``1 − tail``.
    """
    if number_kind(column):
        return outlying(table.numbers(column.name), tail)
    values = table.column(column.name)
    parts = column.kind.parts([values]) if column.kind.as_it_is else ()
    letters = next((part for part in parts if isinstance(part, VectorPart)), None)
    if letters is None:
        return rarest(codes([table], column)[0], tail)
    vectors = letters.read(values).astype(float)
    known = ~np.isnan(vectors[:, 0])
    if not known.any():
        return np.empty(0, dtype=np.intp)
    far = np.full(len(vectors), -np.inf)
    far[known] = np.linalg.norm(vectors[known] - vectors[known].mean(axis=0), axis=1)
    return np.flatnonzero(far > np.quantile(far[known], 1 - tail))


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
