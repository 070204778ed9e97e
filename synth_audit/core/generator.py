"""The contract of a generator and its model, and what either may implement beyond it.

A generator is one file in its room, or a folder of that name, holding one frozen dataclass with a class
variable ``info``. What is optional is a ``Protocol`` here, with what holds for a generator without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from synth_audit.core.accounting import Accountant
    from synth_audit.core.schema import Schema
    from synth_audit.core.table import Table


@dataclass(frozen=True, kw_only=True)
class GeneratorInfo:
    """What the catalogue says of a generator."""

    title: str
    summary: str
    cost: Literal["instant", "seconds", "minutes", "hours"] = "seconds"
    source: str = ""


@dataclass(frozen=True)
class PrivacyCertificate:
    """What a fitted generator may claim formally, and why.

    Attributes:
        claim: ``"none"`` or ``"differential privacy"``.
        epsilon, delta: the guarantee, for the whole release; None without one.
        reason: what the claim rests on, or why there is none.
    """

    claim: Literal["none", "differential privacy"]
    reason: str
    epsilon: float | None = None
    delta: float | None = None


class Model(Protocol):
    """A fitted generator; immutable."""

    @property
    def certificate(self) -> PrivacyCertificate:
        """The formal claim of everything drawn from this model."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` synthetic rows with the columns and types of the features of train."""
        ...


@runtime_checkable
class Generator(Protocol):
    """Learns a table; the dataclass is configuration only, what is learnt lives in the model."""

    info: ClassVar[GeneratorInfo]

    def fit(self, train: Table, rng: np.random.Generator) -> Model:
        """Fit on ``train``, whose identifier columns have been removed."""
        ...


# What follows a generator or a model may implement or leave out.


@runtime_checkable
class Spending(Protocol):
    """A generator that buys differential privacy; one without ``fit_within`` is handed no accountant."""

    def fit_within(self, train: Table, rng: np.random.Generator, accountant: Accountant) -> Model:
        """Fit as :meth:`Generator.fit` does, spending on every mechanism *before* it runs.

        Noise comes from :mod:`synth_audit.core.noise`, never from ``rng``. What the model claims itself is
        not asked: the guarantee is read off the accountant.
        """
        ...


@runtime_checkable
class Refitting(Protocol):
    """A generator that may be unable to learn other rows; one without ``refits`` always can."""

    @property
    def refits(self) -> bool:
        """False for a finished table, which cannot be made again from other rows."""
        ...


def refits(generator: Generator) -> bool:
    """Whether the generator can be fitted to other rows."""
    return generator.refits if isinstance(generator, Refitting) else True


@runtime_checkable
class Repeating(Protocol):
    """A generator that may give other rows from the same seeds; one without ``repeats`` never does."""

    @property
    def repeats(self) -> bool:
        """False for a finished table, which others may replace, and for what takes no seed."""
        ...


def repeats(generator: Generator) -> bool:
    """Whether the same rows and seeds give the same candidate, as far as the generator knows."""
    return generator.repeats if isinstance(generator, Repeating) else True


@runtime_checkable
class Finished(Protocol):
    """A generator whose table may lie ready somewhere; one without ``finished`` draws its own."""

    def finished(self, schema: Schema) -> Table | None:
        """The table as it lies there now, under the schema of train's features; None when it is drawn."""
        ...


def finished(generator: Generator, schema: Schema) -> Table | None:
    """The table that lies ready, read without a fit or a draw; None when the generator draws its own."""
    return generator.finished(schema) if isinstance(generator, Finished) else None


@runtime_checkable
class Located(Protocol):
    """A generator whose settings hold paths; one without ``located`` reads no file of the plan's."""

    def located(self, base: Path) -> Generator:
        """The same configuration with relative paths starting at ``base``, which is not part of it."""
        ...


def located(generator: Generator, base: Path) -> Generator:
    """The generator, told where the plan's relative paths start if it wants to know."""
    return generator.located(base) if isinstance(generator, Located) else generator


@runtime_checkable
class Truncatable(Protocol):
    """A generator of which one fit holds all its truncations; without it each setting is a fit of its own."""

    @property
    def truncation(self) -> int | None:
        """The level it keeps; None for all."""
        ...

    def untruncated(self) -> Generator:
        """The same configuration that keeps all levels."""
        ...


class TruncatableModel(Model, Protocol):
    """A fitted model that can give up its higher levels: what a truncatable generator fits."""

    def truncated(self, level: int) -> Model:
        """The same model with only its first ``level`` levels; unchanged when it has no more than these."""
        ...
