"""Sums of weights as counts that are as uncertain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Floats


class WeightedCount(NamedTuple):
    """A sum of weights between 0 and 1 as a count among trials, for intervals of shares.

    Of k rows with weights w that were met by chance the sum has the variance ``Σ w²``, as a count times the
    unit u = Σ w² / Σ w has. Here ``u = (Σ w² + 1) / (Σ w + 1)``: the next row that is met may weigh 1. With
    weights of 1 it is the count itself.

    Attributes:
        met: ``Σ w / u``. trials: what all rows weigh together, over u.

    Source: Fay & Feuer 1997.
    """

    met: float
    trials: float

    @classmethod
    def of(cls, weights: Floats, everything: float) -> WeightedCount:
        """Given the weights of the rows that were met, shape (k,), and what all rows weigh together."""
        total, squares = float(weights.sum()), float(np.square(weights).sum())
        unit = (squares + 1) / (total + 1)
        return cls(min(total, everything) / unit, everything / unit)

    @property
    def share(self) -> float:
        """The weight met over the whole."""
        return self.met / self.trials
