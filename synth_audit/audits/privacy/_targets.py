"""Whom an attack is tried on, and what it says of its success; shared by the attacks on single records."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from synth_audit.core.arrays import Positions
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Measurement, Quantity
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.kernels.attack_success import SuccessCount

FEWEST_GUESSES = 100
"""With fewer guesses on either side a success rate may be more than ten points off, which decides nothing."""


def drawn(candidates: Positions, most: int, rng: np.random.Generator) -> Positions:
    """At most ``most`` of these positions, drawn without replacement, ascending."""
    if len(candidates) <= most:
        return candidates
    return np.sort(rng.choice(candidates, most, replace=False))


def random_places(n: int, rng: np.random.Generator) -> Positions:
    """Places of the rows of a release in a random order, so that equal ones are met in none of its own."""
    places = np.empty(n, dtype=np.intp)
    places[rng.permutation(n)] = np.arange(n)
    return places


def named(subject: Subject, names: Iterable[str], setting: str) -> tuple[Column, ...]:
    """The columns that a setting names.

    Raises:
        NotApplicable: one of them is not in the table, or is an identifier, which no release holds.
    """
    for name in names:
        if name not in subject.schema.names:
            raise NotApplicable(f"{setting} names column {name!r}, which the table does not have")
        if not subject.schema[name].released:
            raise NotApplicable(f"{setting} names column {name!r}, an identifier that is not released")
    return tuple(subject.schema[name] for name in names)


def rate(
    quantity: Quantity, tally: SuccessCount, requested: int, level: float, *, column: str = ""
) -> Measurement:
    """A success rate with its interval."""
    return quantity.at(
        tally.share,
        column=column,
        interval=tally.interval(level),
        n_requested=max(requested, tally.guesses),
        n_achieved=tally.guesses,
    )
