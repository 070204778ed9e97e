"""A share of zero-concentrated privacy that mechanisms chosen one after another divide among themselves."""

from __future__ import annotations

import math

from synth_audit.core.errors import BudgetSpent

_ROUNDED = 1e-9  # relative; what sums of floats may miss by


class ConcentratedFilter:
    """Lets mechanisms run until ρ is spent, though each is chosen by what earlier ones returned.

    The sum of what they cost is bounded whatever is chosen, and then all of them together have ρ
    (Feldman & Zrnic 2021; Whitehouse et al. 2023). To be bought from an accountant first.

    Args:
        rho: for one row added or removed.
    """

    def __init__(self, rho: float) -> None:
        self.rho = rho * (1 - _ROUNDED)
        self._costs: list[float] = []

    @property
    def left(self) -> float:
        """What can still be spent, 0 or more."""
        return max(0.0, self.rho - math.fsum(self._costs))

    @property
    def used(self) -> float:
        """The share of ρ that was spent, 0 to 1."""
        return min(1.0, math.fsum(self._costs) / self.rho)

    def gaussian(self, noise_multiplier: float) -> None:
        """Spend 1 / (2 σ²) before a Gaussian mechanism of this noise over its L2 sensitivity.

        Raises:
            BudgetSpent: it is more than what is left; the mechanism must not run.
        """
        self._spend(noise_multiplier**-2 / 2)

    def exponential(self, epsilon: float) -> None:
        """Spend ε² / 8 before an exponential mechanism (Cesar & Rogers 2021).

        Raises:
            BudgetSpent: it is more than what is left; the mechanism must not run.
        """
        self._spend(epsilon**2 / 8)

    def _spend(self, rho: float) -> None:
        if not rho <= self.left + _ROUNDED * self.rho:
            raise BudgetSpent(
                "a mechanism costs more than is left of the share it was to come from",
                where="zero-concentrated privacy",
                expected=f"at most {self.left:.3g} of {self.rho:.3g}",
            )
        self._costs.append(rho)
