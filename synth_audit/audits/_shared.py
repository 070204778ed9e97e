"""What audits share: sorts of quantities, checks of settings, and the draw of people and rows."""

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from synth_audit.arrays import Positions
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import Direction, Quantity
from synth_audit.neighbours.search import nearest_others
from synth_audit.plugins.audit import Subject
from synth_audit.table.people import key_columns, persons
from synth_audit.table.schema import Column, Role
from synth_audit.table.table import Table

descriptive = partial(Quantity, direction=Direction.NEUTRAL)
"""Describes an attack or a release; no gate rests on it."""

risk_over_control = partial(Quantity, range=(-math.inf, 1.0))
"""Part of the targets that only the release puts at risk; unclipped, so that chance shows below 0."""

excess_over_control = partial(Quantity, range=(-1.0, 1.0))
"""A share less the same share of control."""

distance = partial(Quantity, unit="distance")
"""0 for what is the same."""

merit = partial(Quantity, unit="score", direction=Direction.HIGHER)
"""The more, the better."""

score_loss = partial(Quantity, unit="score", range=(-math.inf, math.inf))
"""A score learnt from real rows, less that learnt from the release."""


def at_least(audit: object, **least: float) -> None:
    """Check settings against the smallest values that they may have.

    Raises:
        ValueError: one is smaller.
    """
    for name, minimum in least.items():
        if (value := getattr(audit, name)) < minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")


def different(audit: object, *names: str) -> None:
    """Check that settings, together, do not list anything twice.

    Raises:
        ValueError: one of them repeats something, or two of them share it.
    """
    listed = [x for name in names for x in getattr(audit, name)]
    if len(set(listed)) < len(listed):
        raise ValueError(f"{' and '.join(names)} must not repeat anything")


def some_of(audit: object, name: str, known: Sequence[str]) -> None:
    """Check that a setting lists some of the known names, each once.

    Raises:
        ValueError: it is empty, repeats a name or holds another.
    """
    found = getattr(audit, name)
    if not found or not set(found) <= set(known) or len(set(found)) < len(found):
        raise ValueError(f"{name} must be some of {', '.join(known)}, each once")


def share(audit: object, name: str, most: float = 1.0) -> None:
    """Check that a setting lies above 0, and below 1 or at a smaller bound at most.

    Raises:
        ValueError: it does not.
    """
    value = getattr(audit, name)
    if not 0 < value <= most or value >= 1:
        end = ")" if most >= 1 else "]"
        raise ValueError(f"{name} must be in (0, {most:g}{end}, got {value}")


FEWEST_GUESSES = 100
"""With fewer guesses on either side a success rate may be more than ten points off, which decides nothing."""

ISOLATED_FROM = 5
"""Nearest other rows to which the mean distance says how isolated a row is."""


def drawn(candidates: Positions, most: int, rng: np.random.Generator) -> Positions:
    """At most ``most`` of these positions, drawn without replacement, ascending."""
    if len(candidates) <= most:
        return candidates
    return np.sort(rng.choice(candidates, most, replace=False))


def different_people(table: Table, most: int, rng: np.random.Generator) -> Positions:
    """At most so many rows of a table, drawn at random, of different people, one each, ascending.

    Which of somebody's rows it is, is drawn as well: a release may give away later rows than the first.
    """
    rows = drawn(np.arange(table.n_rows), most, rng)
    if not key_columns(table.schema):
        return rows
    shuffled = rng.permutation(rows)
    return np.sort(shuffled[np.unique(persons(table.take(shuffled)), return_index=True)[1]])


def random_places(n: int, rng: np.random.Generator) -> Positions:
    """Places of the rows of a release in a random order, so that equal ones are met in none of its own."""
    places = np.empty(n, dtype=np.intp)
    places[rng.permutation(n)] = np.arange(n)
    return places


def most_isolated(
    table: Table,
    columns: Sequence[Column],
    rows: Positions,
    most: int,
    rng: np.random.Generator,
    *,
    others: int = ISOLATED_FROM,
) -> Positions:
    """The rows of a table with the largest mean Euclidean distance to their nearest other rows.

    Such rows are Achilles' heels: whether they were learnt from is guessed best. A mean over five, since the
    nearest row alone may be a twin. Published, the distance is a cosine between rows, by which a row far out
    in the direction of others is near them; standardised columns without bounds let one wild value count too.

    Args:
        rows: among which they are looked for. others: how many nearest rows.

    Returns:
        Ties at random, ascending.

    Source: Meeus et al. 2023.
    """
    asked, apart = rng.permutation(rows), np.zeros(len(rows))
    if table.n_rows > 1:
        [coded] = Encoded([table], columns).coordinates()
        apart = nearest_others(coded, asked, others).mean(axis=1)
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


def named_or_sensitive(subject: Subject, names: Iterable[str], setting: str) -> tuple[Column, ...]:
    """The columns that a setting names, else the released ones of role sensitive; see :func:`named`."""
    sensitive = tuple(c for c in subject.schema.with_role(Role.SENSITIVE) if c.released)
    return named(subject, names, setting) or sensitive
