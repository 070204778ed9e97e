"""What a guarantee promises against an attacker, to be drawn beside what the attacker reached."""

from __future__ import annotations

from dataclasses import dataclass

from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee
from synth_audit.stats.epsilon import most_advantage, most_found, of_replacing


@dataclass(frozen=True)
class AttackerLimit:
    """The guarantee that holds between the two tables an attacker has to tell apart.

    Attributes:
        label: names the line in a picture, by the guarantee as it was given.
        epsilon, delta: between these two tables.
    """

    label: str
    epsilon: float
    delta: float

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee | None, *, replaced: bool) -> AttackerLimit | None:
        """The promise of a fit; None where nothing is promised.

        Args:
            replaced: the tables have as many rows, one in the place of another; else one has a row more.
        """
        if guarantee is None:
            return None
        label = f"most that ε = {guarantee.epsilon:g} allows"
        epsilon, delta = guarantee.epsilon, guarantee.delta
        if replaced and guarantee.neighbouring is Neighbouring.ADD_OR_REMOVE:
            epsilon, delta = of_replacing(epsilon, delta)
        return cls(label, epsilon, delta)

    def most_found(self, false_alarms: float) -> float:
        """The largest rate of detection at a rate of false alarms."""
        return most_found(false_alarms, self.epsilon, self.delta)

    @property
    def most_advantage(self) -> float:
        """The largest difference between the two rates."""
        return most_advantage(self.epsilon, self.delta)
