"""Fits generators for games that need many fits, sharing each among truncation levels and audits."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np

from synth_audit.core.context import RunContext
from synth_audit.core.errors import PluginError
from synth_audit.core.generator import Generator, Model, Truncatable, TruncatableModel
from synth_audit.core.registry import config_of

if TYPE_CHECKING:
    from synth_audit.core.schema import Schema
    from synth_audit.core.table import Table


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
