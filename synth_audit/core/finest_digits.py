"""The digits that some numbers of a column have and most have not: libraries round all to these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.resolution import Resolution, ValueGrid, decimal_grids
from synth_audit.core.storage_types import MOST_EXACT

_FINER = 100
"""Two digits, 6.6 bits: no cell spells a record (one of Adult takes about 40 bits)."""

_ARITHMETIC = 1e-9
"""Quotients of powers of ten miss a whole number by less."""


@dataclass(frozen=True)
class FinestDigits:
    """Digits finer than a column's resolution that a release may have: those that some training numbers have.

    Attributes:
        resolution: of most training numbers.
        finest: the grid of all of them.
    """

    resolution: Resolution
    finest: ValueGrid

    @classmethod
    def of(cls, train: Floats, resolution: Resolution, *, single: bool = False) -> FinestDigits | None:
        """The coarsest power of ten, or the resolution's own whole step, that all numbers are multiples of.

        Args:
            train: shape (n,), NaN where missing. single: stored as float32.

        Returns:
            None where none is at most 100 times finer than the resolution, which then counts alone.
        """
        largest, own = np.nanmax(np.abs(train), initial=0.0), resolution.grid
        least = own.step / _FINER * (1 - _ARITHMETIC)
        decimal = (grid for grid in decimal_grids() if least <= grid.step <= own.step)
        for grid in (*([own] if own.denominator == 1 else []), *decimal):
            told_apart = largest < MOST_EXACT / grid.denominator
            if told_apart and Resolution(grid).holds(train, single=single).all():
                return cls(resolution, grid)
        return None

    def holds(self, values: Floats, *, single: bool = False) -> Bools:
        """True for numbers on the finest grid where it is at most 100 times finer than the resolution."""
        near = self._steps(values) <= _FINER * self.finest.step * (1 + _ARITHMETIC)
        held: Bools = near & Resolution(self.finest).holds(values, single=single)
        return held

    def _steps(self, values: Floats) -> Floats:
        """The resolution's step at each number; large where digits are counted and the number is large."""
        step, digits = self.resolution.grid.step, self.resolution.digits
        if digits is None:
            return np.full(len(values), step)
        with np.errstate(divide="ignore"):
            size = np.floor(np.log10(np.abs(values)))
        return np.fmax(step, 10.0 ** (size + 1 - digits))
