"""What is claimed of a mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass

from synth_audit.core.accounting import Neighbouring
from synth_audit.core.errors import PlanError


@dataclass(frozen=True)
class Claim:
    """(ε, δ)-differential privacy.

    Attributes:
        epsilon: above 0, finite. delta: in [0, 1).
        neighbouring: how two tables differ that must look alike.
        rows: the most rows of whoever is protected.

    Raises:
        PlanError: a number is out of range.
    """

    epsilon: float
    delta: float = 0.0
    neighbouring: Neighbouring = Neighbouring.ADD_OR_REMOVE
    rows: int = 1

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1 and self.rows >= 1):
            raise PlanError(
                "the claim is out of range",
                where="epsilon, delta, rows",
                expected="0 < epsilon < ∞, 0 ≤ delta < 1 and at least one row",
                fix="give the claim as its author states it",
            )

    @property
    def sentence(self) -> str:
        """As a reader has it."""
        return f"ε = {self.epsilon:.4g}, δ = {self.delta:g}, {self.neighbouring}"
