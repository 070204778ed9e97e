"""The distribution of one column, missing values included: learned, drawn from, saved as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.arrays import Floats, Labels
from synth_audit.stats.margins import Margin
from synth_audit.table.kind import DistributionFunction, Univariate
from synth_audit.table.schema import range_to_plain
from synth_audit.table.table import Table


def margin_to_plain(margin: DistributionFunction) -> dict[str, Any]:
    """Knots, levels, step and limits."""
    return {
        "knots": margin.knots.tolist(),
        "levels": margin.levels.tolist(),
        "step": margin.step,
        "limits": range_to_plain(margin.limits),
    }


def margin_from_plain(plain: Mapping[str, Any]) -> Margin:
    """The margin that :func:`margin_to_plain` wrote."""
    low, high = plain["limits"]
    return Margin(
        np.array(plain["knots"], dtype=np.float64),
        np.array(plain["levels"], dtype=np.float64),
        plain["step"],
        (float(low), float(high)),
    )


@dataclass(frozen=True, eq=False)
class Categories:
    """Labels, None for missing, with their frequencies, each of shape (k,)."""

    labels: Labels
    shares: Floats

    @classmethod
    def of(cls, train: Table, name: str) -> Categories:
        """As often as train holds them."""
        labels = train.labels(name)
        missing = np.array([label is None for label in labels])
        known, counts = np.unique(labels[~missing].astype(str), return_counts=True)
        values = np.array([*known.tolist(), None], dtype=object)
        return cls(values, np.append(counts, missing.sum()) / len(labels))

    def sample(self, n: int, rng: np.random.Generator) -> Labels:
        """Labels, shape (n,)."""
        return self.labels[rng.choice(len(self.labels), size=n, p=self.shares)]

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"labels": self.labels.tolist(), "shares": self.shares.tolist()}


@dataclass(frozen=True, eq=False)
class NumbersWithGaps:
    """A margin, None when every value is missing, and the share of missing values."""

    margin: DistributionFunction | None
    missing: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Numbers, NaN where missing, shape (n,)."""
        levels, gaps = rng.random(n), rng.random(n) < self.missing
        values = np.full(n, np.nan) if self.margin is None else self.margin.quantile(levels)
        return np.where(gaps, np.nan, values)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        margin = None if self.margin is None else margin_to_plain(self.margin)
        return {"margin": margin, "missing": self.missing}


def from_plain(plain: Mapping[str, Any]) -> Univariate:
    """The distribution that wrote these JSON values."""
    if "labels" in plain:
        return Categories(np.array(plain["labels"], dtype=object), np.array(plain["shares"]))
    margin = None if plain["margin"] is None else margin_from_plain(plain["margin"])
    return NumbersWithGaps(margin, plain["missing"])
