"""At which records a secret is guessed, and the release rows that are nearest to them without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.audits._targets import drawn, random_places
from synth_audit.audits.privacy._guesses import KnownRows
from synth_audit.audits.privacy._predictors import GuessRule, column_secret
from synth_audit.neighbours.gower import nearest_without
from synth_audit.neighbours.search import nearest
from synth_audit.plugins.audit import Subject
from synth_audit.table.schema import Column

MOST_SEARCHED, MOST_CELLS = 50, 10**6
"""Known columns, and release rows times these, up to which every secret has records and a search of its own:
with 2,000 records on either side these are 4·10⁹ pairs of rows."""

MOST_LEARNT = 5_000
"""Control rows that a model learns from where many columns are known."""

_MOST_LEARNT = 50_000
"""Control rows from which a model learns at most where the known columns are no more than that."""

_SHARED = 3
"""Secrets that a record is guessed at for, on average, from which on one search that allows for all of them
takes less than one for each: a query of it takes two to three times as long."""


def many(known: KnownRows) -> bool:
    """Whether known columns, or the rows of the release, are too many for a search for each secret."""
    n_columns = len(known.varying)
    return n_columns > MOST_SEARCHED or n_columns * len(known.release) > MOST_CELLS


def bounds(subject: Subject, most: int) -> list[str]:
    """What the work over many known columns, or rows, is held to, where the tables have more rows."""
    notes = []
    if max(t.n_rows for t in subject.real) > most:
        notes.append(
            f"over more than {MOST_SEARCHED} known columns, or {MOST_CELLS:,} cells of the release, all "
            f"secrets are guessed at the same {most} records of either side, so that overall_risk rests "
            "on these alone"
        )
    if subject.real[1].n_rows > MOST_LEARNT:
        notes.append(f"models of control learn from {MOST_LEARNT} of its rows, drawn at random")
    return notes


@dataclass(frozen=True, eq=False)
class HiddenColumn:
    """A secret in the three tables, as numbers, NaN where missing.

    Attributes:
        judge: which guesses are right.
    """

    column: Column
    train: Floats
    control: Floats
    release: Floats
    judge: GuessRule

    @classmethod
    def of(cls, subject: Subject, column: Column, tolerance: float) -> HiddenColumn:
        """Read it."""
        tables = [*subject.real, subject.synthetic]
        (train, control, release), judge = column_secret(tables, column, tolerance)
        return cls(column, train, control, release, judge)

    @property
    def name(self) -> str:
        """Of the column."""
        return self.column.name

    def asked(self, chosen: Sequence[Positions]) -> list[Floats]:
        """The secrets of train and of control people at these positions."""
        return [side[rows] for side, rows in zip((self.train, self.control), chosen, strict=True)]


@dataclass(frozen=True, eq=False)
class SecretQuestion:
    """A secret, and what is drawn for the attack on it.

    Attributes:
        chosen: positions of the train and of the control rows guessed at, ascending; each holds the secret.
        place: of each release row among equally near ones, which are met in no order of the release.
        learnt: control rows that a model may learn the secret from. seed: of the model.
    """

    secret: HiddenColumn
    chosen: tuple[Positions, ...]
    place: Positions
    learnt: Positions
    seed: int


def drawn_questions(
    known: KnownRows, secrets: Sequence[HiddenColumn], most: int, rng: np.random.Generator
) -> Iterator[SecretQuestion]:
    """Draw at most so many records of either side for each secret, and what else chance decides.

    Over many known columns, or rows of the release, all secrets are guessed at the same records as far as
    these have them, and ties are broken alike.
    """
    at_once = many(known)
    orders = [rng.permutation(len(rows)) for rows in (known.train, known.control)] if at_once else []
    shared = random_places(len(known.release), rng) if at_once else None
    for secret in secrets:
        present = [np.flatnonzero(~np.isnan(side)) for side in (secret.train, secret.control)]
        if shared is None:
            chosen = tuple(drawn(rows, most, rng) for rows in present)
            place, seed = random_places(len(known.release), rng), int(rng.integers(2**31))
            yield SecretQuestion(secret, chosen, place, drawn(present[1], _MOST_LEARNT, rng), seed)
        else:
            chosen = tuple(_first(order, rows, most) for order, rows in zip(orders, present, strict=True))
            learnt, seed = _first(orders[1], present[1], MOST_LEARNT), int(rng.integers(2**31))
            yield SecretQuestion(secret, chosen, shared, learnt, seed)


def answered(
    known: KnownRows, asked: Sequence[SecretQuestion]
) -> Iterator[tuple[SecretQuestion, list[Positions]]]:
    """Each question with the release rows nearest to its train and to its control rows.

    One search answers all where they are many, or ask most records for several secrets; its answers are those
    of a search for each.
    """
    records = sum(len(side) for question in asked for side in question.chosen)
    together = many(known) or records >= _SHARED * (len(known.train) + len(known.control))
    for batch in [asked] if together else [[question] for question in asked]:
        rows = [np.unique(np.concatenate(side)) for side in zip(*(q.chosen for q in batch), strict=True)]
        queries, release = known.asked(*rows), known.release
        if len(batch) > 1:
            left_out = [known.places([q.secret.name]) for q in batch]
            found = nearest_without(queries, release, left_out, place=[q.place for q in batch])
        else:
            queries, release = (known.without(batch[0].secret.name, side) for side in (queries, release))
            found = nearest(queries, release, place=batch[0].place).index[None]
        for question, answer in zip(batch, found, strict=True):
            sides = zip(np.split(answer, [len(rows[0])]), rows, question.chosen, strict=True)
            yield question, [nearest_to[np.searchsorted(every, some)] for nearest_to, every, some in sides]


def _first(order: Positions, rows: Positions, most: int) -> Positions:
    """At most so many of these rows, those that come first in an order, ascending."""
    wanted = np.zeros(len(order), dtype=np.bool_)
    wanted[rows] = True
    return np.sort(order[wanted[order]][:most])
