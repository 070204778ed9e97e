"""What was proved of a release's cost from the release itself, in words beside what is claimed of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.core import registry
from synth_audit.core.measurement import Measurement
from synth_audit.core.outcome import AuditOutcome, Status

EMPIRICAL_EPSILON = "empirical_epsilon"
"""The quantity by which an audit tells the largest ε that one release refutes."""

EPSILON_CEILING = "epsilon_ceiling"
"""The largest that it could have told of this table."""


@dataclass(frozen=True)
class ProvenCost:
    """A lower bound on ε from one release.

    Attributes:
        epsilon: no smaller ε allows what was found; 0 where nothing was proved.
        ceiling: the most that could have been proved here; None where it is not known.
        level: with what confidence.
    """

    epsilon: float
    ceiling: float | None
    level: float

    @property
    def sentence(self) -> str:
        """For a reader, who must not take 0 for safety."""
        most = "" if self.ceiling is None else f" No epsilon above {self.ceiling:.2f} could be shown here."
        if self.epsilon > 0:
            sure = f"{100 * self.level:.4g} %"
            return (
                f"This release costs an epsilon of at least {self.epsilon:.2f} ({sure} confidence): claims "
                "of who was in its training data, made from the release, are right more often than any "
                f"smaller epsilon allows.{most}"
            )
        return (
            "From the release itself no cost could be proved, which is no proof that it has none: better "
            f"claims of who was in its training data may prove one.{most}"
        )


def proven_cost(outcomes: Sequence[AuditOutcome]) -> ProvenCost | None:
    """The largest lower bound of any privacy audit; None where none was measured with enough claims."""
    found = [m for m in _measured(outcomes, EMPIRICAL_EPSILON) if m.interval and m.finite and not m.short]
    if not found:
        return None
    largest = max(found, key=lambda m: m.value)
    ceilings = [
        m.value for m in _measured(outcomes, EPSILON_CEILING) if m.id.audit == largest.id.audit and m.finite
    ]
    assert largest.interval is not None
    return ProvenCost(largest.value, max(ceilings, default=None), largest.interval.level)


def _measured(outcomes: Sequence[AuditOutcome], quantity: str) -> list[Measurement]:
    return [
        m
        for o in outcomes
        if o.family == registry.PRIVACY and o.status is Status.MEASURED
        for m in o.measurements
        if m.id.quantity == quantity
    ]
