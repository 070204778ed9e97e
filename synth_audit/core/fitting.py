"""Fits generators for games that need many fits, sharing each among truncation levels and audits."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from synth_audit.core.cache import Cache
from synth_audit.core.registry import config_of

if TYPE_CHECKING:
    from synth_audit.core.plugin import Generator, Model, PrivacyCertificate
    from synth_audit.core.table import Table


@runtime_checkable
class Truncatable(Protocol):
    """A generator of which one fit holds all its truncations."""

    @property
    def truncation(self) -> int | None:
        """The level it keeps; None for all."""
        ...

    def untruncated(self) -> Generator:
        """The same configuration that keeps all levels."""
        ...


class TruncatableModel(Protocol):
    """A fitted model that can give up its higher levels."""

    @property
    def certificate(self) -> PrivacyCertificate:
        """The formal claim of everything drawn from this model."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` synthetic rows."""
        ...

    def truncated(self, level: int) -> Model:
        """The same model with only its first ``level`` levels; unchanged when it has no more than these."""
        ...


def fit_shared(generator: Generator, train: Table, seed: int, cache: Cache) -> Model:
    """Fit ``generator`` to ``train``, or take the fit from the cache if truncation levels can share it.

    A fit is known by the untruncated configuration, the rows and the seed: a sweep over levels costs one
    fit, and the levels differ by what is cut off alone.
    """
    if not isinstance(generator, Truncatable):
        return generator.fit(train, np.random.default_rng(seed))
    whole, level = generator.untruncated(), generator.truncation
    kind = type(generator)
    inputs = (
        "fit",
        f"{kind.__module__}.{kind.__qualname__}",
        json.dumps(config_of(whole), sort_keys=True),
        train.fingerprint,
        str(seed),
    )
    made = cache.get(*inputs, make=lambda: pickle.dumps(whole.fit(train, np.random.default_rng(seed))))
    model = cast("TruncatableModel", pickle.loads(made))  # noqa: S301  (the cache is the run's own folder)
    return model if level is None else model.truncated(level)
