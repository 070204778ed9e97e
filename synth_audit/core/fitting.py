"""Fits generators for games that need many fits, sharing each among truncation levels and audits."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from synth_audit.core.context import RunContext
from synth_audit.core.errors import PluginError
from synth_audit.core.generator import (
    Generator,
    GeneratorInfo,
    Model,
    PrivacyCertificate,
    Spending,
    Truncatable,
    TruncatableModel,
)
from synth_audit.core.registry import config_of

if TYPE_CHECKING:
    from synth_audit.core.accounting import Accountant, FitTerms
    from synth_audit.core.schema import Schema
    from synth_audit.core.table import Table


def fit(generator: Generator, train: Table, rng: np.random.Generator, accountant: Accountant) -> Model:
    """Fit a generator, handing one that spends the accountant; its model then claims what was bought.

    Raises:
        BudgetSpent: the budget does not bear it; nothing ran that was not paid for.
    """
    if not isinstance(generator, Spending):
        return generator.fit(train, rng)
    return AccountedModel(generator.fit_within(train, rng, accountant), certified(accountant))


@dataclass(frozen=True)
class AccountedModel:
    """A model that claims what its accountant says, whatever it says itself."""

    model: Model
    certificate: PrivacyCertificate

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw from the model."""
        return self.model.sample(n, rng)


@dataclass(frozen=True)
class DetachedGenerator:
    """A spending generator as games fit it: nothing is debited from the table's budget.

    See :meth:`synth_audit.core.accounting.FitTerms.detached` for why that is right.
    """

    generator: Generator
    terms: FitTerms
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Detached", summary="A generator whose spending is not debited."
    )

    def fit(self, train: Table, rng: np.random.Generator) -> Model:
        """Fit within a budget of the same size that is nobody's."""
        return fit(self.generator, train, rng, self.terms.detached())


def detached(generator: Generator, terms: FitTerms) -> Generator:
    """The generator for games; one that does not spend is what it was."""
    return DetachedGenerator(generator, terms) if isinstance(generator, Spending) else generator


def certified(accountant: Accountant) -> PrivacyCertificate:
    """What may be claimed of all that is drawn from the fit, in the words of a certificate."""
    guarantee = accountant.guarantee()
    if guarantee is None:
        return PrivacyCertificate("none", accountant.why_none)
    return PrivacyCertificate(
        "differential privacy",
        f"{guarantee.accountant}; unit {guarantee.unit}, {guarantee.neighbouring}",
        guarantee.epsilon,
        guarantee.delta,
    )


@contextmanager
def untrusted() -> Iterator[None]:
    """Any failure of a generator inside as one of the plug-in's.

    Its text may hold a cell value, and its kind may mean something else to whoever runs the audit: a
    generator that says "not applicable" must not make an audit of it so.

    Raises:
        PluginError: the code inside failed; says the kind of error alone.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        raise PluginError("the generator failed", where=type(error).__name__) from None


def draw(model: Model, n: int, schema: Schema, rng: np.random.Generator) -> Table:
    """Draw ``n`` rows that hold the columns of ``schema`` and finite numbers.

    Raises:
        PluginError: the model failed or returned something else.
    """
    with untrusted():
        made = model.sample(n, rng)
        fits = set(made.names) == set(schema.names) and made.n_rows == n
        finite = fits and not any(np.isinf(made.numbers(c.name)).any() for c in schema if c.kind.numeric)
    if not finite:
        what = (
            "infinite numbers" if fits else "other columns, or another number of rows, than it was asked for"
        )
        raise PluginError(f"the generator drew {what}", expected="the columns it was fitted to, finite")
    return made


def fit_shared(generator: Generator, train: Table, seed: int, context: RunContext) -> Model:
    """Fit ``generator`` to ``train``, or take the fit from the run's cache if truncation levels can share it.

    A fit is known by the untruncated configuration, the rows and the seed: a sweep over levels costs one
    fit, and the levels differ by what is cut off alone.

    Raises:
        PluginError: the generator failed.
    """
    if not isinstance(generator, Truncatable):
        with untrusted():
            return generator.fit(train, np.random.default_rng(seed))
    whole, level = generator.untruncated(), generator.truncation
    kind = type(generator)
    inputs = (
        "fit",
        f"{kind.__module__}.{kind.__qualname__}",
        json.dumps(config_of(whole), sort_keys=True),
        train.fingerprint,
        repr(train.schema),
        str(seed),
    )

    def make() -> bytes:
        with untrusted():
            return pickle.dumps(whole.fit(train, np.random.default_rng(seed)))

    made = context.cache.get(*inputs, make=make)
    model = cast("TruncatableModel", pickle.loads(made))  # noqa: S301  (the cache is the run's own folder)
    with untrusted():
        return model if level is None else model.truncated(level)
