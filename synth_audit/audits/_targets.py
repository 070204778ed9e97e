"""Whom an attack is tried on, and what it says of its success; shared by the attacks on single records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.encode.distances import EuclideanEncoder
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import Measurement, Quantity
from synth_audit.neighbours.euclidean import nearest_others
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import SuccessCount
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

FEWEST_GUESSES = 100
"""With fewer guesses on either side a success rate may be more than ten points off, which decides nothing."""


_ISOLATED_FROM = 5
"""Nearest other rows to which the mean distance says how isolated a row is."""


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


def isolation(table: Table, columns: Sequence[Column], rows: Positions) -> Floats:
    """Mean Euclidean distance of a table's rows to their five nearest other rows, shape (n,).

    The most isolated rows are Achilles' heels: whether they were learnt from is guessed best. A mean over
    five, since the nearest row alone may be a twin. Published, the distance is a cosine between rows, by
    which a row far out in the direction of others is near them; standardised columns without bounds let one
    wild value count too.
    Source: Meeus et al. 2023.
    """
    if table.n_rows < 2:
        return np.zeros(len(rows))
    [coded] = EuclideanEncoder.anchored_on(table, columns).encode([table])
    found: Floats = nearest_others(coded, rows, _ISOLATED_FROM).distance.mean(axis=1)
    return found


def most_isolated(
    table: Table, columns: Sequence[Column], rows: Positions, most: int, rng: np.random.Generator
) -> Positions:
    """The most isolated of these rows, ties at random, ascending; see :func:`isolation`."""
    asked = rng.permutation(rows)
    apart = isolation(table, columns, asked)
    return np.sort(asked[np.argsort(-apart, kind="stable")[:most]])


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
