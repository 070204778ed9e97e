"""The contract of what is tested: runs on either of two neighbours, and what is seen of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from synth_audit.core.arrays import Bools, Floats, Integers


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
