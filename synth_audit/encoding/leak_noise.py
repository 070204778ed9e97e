"""Disturbs records a little, as a leak may look after processing: the noise of the leaky evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats, Labels
from synth_audit.core.kind import Disturbance
from synth_audit.core.schema import Column
from synth_audit.core.table import Table, assemble


@dataclass(frozen=True)
class LeakNoise:
    """How strongly records are disturbed.

    Attributes:
        sigma: continuous and datetime columns get N(0, σ²) in units of their standard deviation.
        rate: integer columns get a Poisson(λ) added, in their own unit.
        flip: labels are redrawn with this probability, evenly from the other labels of the column.

    Source: contrastive privacy metrics, section 4.2, where each is 0 or 0.05. The unit of σ is ours, for a
    noise of 0.05 in a column's own unit would be everything to one column and nothing to another.
    """

    sigma: float = 0.0
    rate: float = 0.0
    flip: float = 0.0

    def __post_init__(self) -> None:
        if min(self.sigma, self.rate, self.flip) < 0 or self.flip > 1:
            raise ValueError("noise must not be negative, and flip at most 1")

    @property
    def none(self) -> bool:
        """True when records stay as they are."""
        return not (self.sigma or self.rate or self.flip)

    def disturb(self, table: Table, rng: np.random.Generator) -> Table:
        """The table with noise on every column; missing values stay missing."""
        if self.none:
            return table
        return assemble(table.schema, {c.name: self._disturbed(table, c, rng) for c in table.schema})

    def _disturbed(self, table: Table, column: Column, rng: np.random.Generator) -> Floats | Labels:
        values = column.kind.plain(table.column(column.name))
        how = Disturbance(self.sigma, self.rate, self.flip)
        return column.kind.disturbed(values, column.domain, how, rng)
