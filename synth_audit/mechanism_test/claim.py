"""What is claimed of a mechanism, and the contract of what is tested."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from synth_audit.arrays import Bools, Floats, Integers
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import PlanError


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


@dataclass(frozen=True, eq=False)
class Job:
    """Some runs in a row.

    Attributes:
        case: position of the pair of neighbours.
        having: for each run whether it is on the neighbour with the canary, shape (n,).
        seeds: for each run a fresh seed below 2³¹ for what takes one, shape (n,).
    """

    case: int
    having: Bools
    seeds: Integers


class RunnableMechanism(Protocol):
    """What is tested; it must survive the way to another process."""

    @property
    def cases(self) -> tuple[str, ...]:
        """The pairs of neighbours, by what sets them apart."""
        ...

    @property
    def at_once(self) -> int:
        """Runs that are worth asking for together."""
        ...

    def scores(self, case: int) -> tuple[str, ...]:
        """What is looked at in each result of a case."""
        ...

    def run(self, job: Job) -> Floats:
        """What is seen of each run, finite, shape (n, scores)."""
        ...

    def repeated(self) -> Integers | None:
        """Results of a few runs as codes, shape (m,), if the same runs again gave the same; else None."""
        ...


@dataclass(frozen=True)
class Runs:
    """A mechanism as work for :meth:`RunContext.map`."""

    mechanism: RunnableMechanism

    def __call__(self, job: Job) -> Floats:
        """What is seen of the job's runs."""
        return self.mechanism.run(job)
