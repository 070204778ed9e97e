"""Guesses at every secret by one who knows a few columns, or half of them, whichever these are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits._targets import random_places
from synth_audit.audits.privacy._asked_people import AskedPeople, different_people
from synth_audit.audits.privacy._known_sets import (
    FEW,
    Known,
    KnownSets,
    PairsApart,
    SetTrials,
    drawn_sets,
    parts_of,
)
from synth_audit.audits.privacy.inference.targets import AttackedSecret, KnownColumns
from synth_audit.core.arrays import Bools, Positions
from synth_audit.core.context import RunContext
from synth_audit.core.measurement import Measurement, Quantity
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.kernels.gower import nearest
from synth_audit.kernels.neighbours import most_queries

EXCESS = Quantity(
    "excess_people",
    "People given away to one who knows a few columns or half of them",
    range=(-1.0, 1.0),
    proportional=False,  # a guess that is right by luck is no excess, and luck differs by secret
    help="Share of people in the training data whose secret is guessed rightly beyond what guesses about "
    "strangers come to, for the worst of several sets of known columns; 0 is none.",
)


_MOST_TOGETHER = 30
"""Sets of columns that the generator drew together, each of which takes a search."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Guesses at a secret of all people by one set of known columns.

    Attributes:
        known: position of the set. made, right: shape (people,).
    """

    secret: str
    known: int
    made: Bools
    right: Bools


@dataclass(frozen=True, eq=False)
class SeveralSets:
    """People and the release row that is nearest to each of them on each set of columns.

    Attributes:
        found: by set, shape (people,).
    """

    sets: KnownSets
    people: AskedPeople
    found: tuple[Positions, ...]

    @classmethod
    def of(
        cls,
        known: KnownColumns,
        subject: Subject,
        secrets: Sequence[Column],
        n_sets: int,
        most: int,
        context: RunContext,
    ) -> SeveralSets:
        """Draw people and sets, and search by each set.

        Where some columns are no secrets, and two of them vary, sets are of these. Where a generator drew
        groups of columns apart, all that is known of a secret's group is a set too.

        Args:
            n_sets: about how many sets, half of them drawn. most: people of either side; of a large release
                fewer, since each set takes a search.
        """
        train, control, synthetic = known.rows
        most = most_queries(most, len(synthetic) * n_sets // 4)
        [rng] = context.rng.spawn(1)  # a stream of its own: the draws of the other attacks stay what they are
        chosen = [different_people(table, most, rng) for table in known.tables[:2]]
        people = AskedPeople.halved(chosen[0], chosen[1], rng)
        names = _guessable_from(known.varying, secrets)
        together = _together(known.varying, names, secrets, subject) if n_sets else []
        if len(together) > _MOST_TOGETHER:
            draws = context.child("inference", "drawn together").rng
            together = [together[i] for i in np.sort(draws.permutation(len(together))[:_MOST_TOGETHER])]
        sets = _sets(names, subject, people, n_sets, together, context.child("inference", "known sets").rng)
        asked = train.take(people.train).followed_by(control.take(people.control))
        found = []
        for (names,) in sets.sets:
            place = random_places(len(synthetic), rng)
            found.append(nearest(known.only(names, asked), known.only(names, synthetic), place=place).index)
        return cls(sets, people, tuple(found))

    def guessed(self, target: AttackedSecret) -> Iterator[Trial]:
        """The guesses at one secret of all sets without it; nobody is asked whose secret is missing."""
        train, control, release = target.truth
        secrets = np.concatenate([train[self.people.train], control[self.people.control]])
        made = ~np.isnan(secrets)
        for i, ((names,), rows) in enumerate(zip(self.sets.sets, self.found, strict=True)):
            if target.secret.name not in names:
                yield Trial(target.secret.name, i, made, target.judge.right(release[rows], secrets) & made)

    def measured(
        self, trials: Sequence[Trial], requested: int, level: float
    ) -> tuple[list[Measurement], list[str]]:
        """What the worst set gives away, and what it is; nothing where no set was tried."""
        if not trials:
            return [], []
        counted = SetTrials.of(self.sets, self.people, [(t.known, t.made, t.right) for t in trials])
        excess, chosen = counted.worst(EXCESS, requested, level)
        names = [f"{', '.join(self.sets.sets[trials[i].known][0])} tell {trials[i].secret}" for i in chosen]
        notes = [f"beside all other columns, sets of known columns tried: {self.sets.told}"]
        if names:
            notes.append("of these most is given away where " + " and ".join(dict.fromkeys(names)))
        return [excess], notes


def _guessable_from(varying: tuple[str, ...], secrets: Sequence[Column]) -> tuple[str, ...]:
    """Columns that are known in sets: those that are no secrets, unless fewer than two."""
    hidden = {secret.name for secret in secrets}
    others = tuple(name for name in varying if name not in hidden)
    return others if len(others) > 1 else varying


def _sets(
    names: tuple[str, ...],
    subject: Subject,
    people: AskedPeople,
    n_sets: int,
    together: Sequence[Known],
    rng: np.random.Generator,
) -> KnownSets:
    """Sets of these columns, drawn by a stream that is the same for the planted leaks."""
    n_drawn, n_guided = parts_of(n_sets)
    drawn = drawn_sets(names, n_drawn, rng)
    if not n_guided or min(len(people.train), len(people.control)) < 2:
        return KnownSets.of(drawn, (), together)
    apart = PairsApart.of(subject, [subject.schema[name] for name in names], people, rng)
    sizes = [min(FEW[i % len(FEW)], len(names) - 1) for i in range(n_guided)]
    guided = [[(found,) for found in apart.grown(half, sizes)] for half in (0, 1)]
    return KnownSets.of(drawn, guided, together)


def _together(
    varying: Sequence[str], names: Sequence[str], secrets: Sequence[Column], subject: Subject
) -> list[Known]:
    """All that is known of a group of columns that the generator drew together, less each secret in it.

    Args:
        varying: columns that are known. names: those of them that sets are of.
    """
    found: dict[Known, None] = {}
    for group in subject.column_groups:
        for secret in secrets:
            if secret.name in group:
                own = [n for n in group if n in names and n != secret.name]
                own = own or [n for n in group if n in varying and n != secret.name]
                found |= {(tuple(sorted(own)),): None} if own else {}
    return list(found)
