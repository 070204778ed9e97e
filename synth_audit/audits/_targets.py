"""Whom an attack is tried on, what its success says, and what a guarantee leaves an attacker."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Positions
from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.neighbours.search import nearest_others
from synth_audit.plugins.audit import Subject
from synth_audit.table.people import key_columns, persons
from synth_audit.table.schema import Column, Role
from synth_audit.table.table import Table

FEWEST_GUESSES = 100
"""With fewer guesses on either side a success rate may be more than ten points off, which decides nothing."""

LARGEST_EPSILON = 700.0
"""Of a larger one the exponential overflows, and nothing is promised anyway."""

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


@dataclass(frozen=True)
class AttackerLimit:
    """The guarantee that holds between the two tables an attacker has to tell apart.

    Attributes:
        label: names the line in a picture, by the guarantee as it was given.
        epsilon, delta: between these two tables.
    """

    label: str
    epsilon: float
    delta: float

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee | None, *, replaced: bool) -> "AttackerLimit | None":
        """The promise of a fit; None where nothing is promised.

        Args:
            replaced: the tables have as many rows, one in the place of another; else one has a row more.
        """
        if guarantee is None:
            return None
        label = f"most that ε = {guarantee.epsilon:g} allows"
        epsilon, delta = guarantee.epsilon, guarantee.delta
        if replaced and guarantee.neighbouring is Neighbouring.ADD_OR_REMOVE:
            epsilon, delta = of_replacing(epsilon, delta)
        return cls(label, epsilon, delta)


def most_found(false_alarms: float, epsilon: float, delta: float) -> float:
    """The largest true-positive rate at a rate of false alarms, ``min(1, e^ε f + δ, 1 − e^−ε (1 − δ − f))``.

    The two tables differ by what the guarantee hides. Concave in ``f``: it holds for a mean over several
    games too.

    Args:
        false_alarms: f, in [0, 1]. epsilon: at least 0. delta: in [0, 1).

    Returns:
        In [f, 1].

    Source: Wasserman & Zhou 2010; Kairouz, Oh & Viswanath 2015.
    """
    factor = math.exp(min(epsilon, LARGEST_EPSILON))
    rising = factor * false_alarms + delta
    falling = 1 - (1 - delta - false_alarms) / factor
    return min(1.0, rising, falling)


def most_advantage(epsilon: float, delta: float) -> float:
    """The largest difference of both rates, ``(e^ε − 1 + 2δ) / (e^ε + 1)``, where the two lines above meet.

    Source: Kairouz, Oh & Viswanath 2015; Humphries et al. 2023.
    """
    factor = math.exp(min(epsilon, LARGEST_EPSILON))
    return (factor - 1 + 2 * delta) / (factor + 1)


def of_replacing(epsilon: float, delta: float) -> tuple[float, float]:
    """The guarantee against one row in another's place, where that of adding or removing one is given.

    Two steps between neighbours: ``(2 ε, (1 + e^ε) δ)``. Source: Dwork & Roth 2014, group privacy.
    """
    return 2 * epsilon, min(1.0, (1 + math.exp(min(epsilon, LARGEST_EPSILON))) * delta)
