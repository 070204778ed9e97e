"""Whose secrets are guessed at, and the synthetic rows that the guesses are taken from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.audits._targets import drawn, random_places
from synth_audit.encode.codes import codes
from synth_audit.encode.distances import GowerEncoder
from synth_audit.encode.facets import GuessRule, facets
from synth_audit.neighbours.gower import Mixed, nearest, nearest_without
from synth_audit.plugins.audit import Subject
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

MOST_SEARCHED, MOST_CELLS = 50, 10**6
"""Known columns, and release rows times these, up to which every secret has records and a search of its own:
with 2,000 records on either side these are 4·10⁹ pairs of rows."""

_SHARED = 3
"""Secrets that a record is guessed at for, on average, from which on one search that allows for all of them
takes less than one for each: a query of it takes two to three times as long."""

_MOST_LEARNT = 50_000
"""Control rows from which a model learns at most where the known columns are no more than that."""


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """The tables on the known columns, encoded once for all secrets.

    Attributes:
        tables: train, control and release. rows: the same, encoded.
        order: name of the column of each number, then of each label, of the rows.
    """

    tables: tuple[Table, ...]
    order: tuple[str, ...]
    rows: tuple[Mixed, ...]

    @classmethod
    def of(cls, subject: Subject, known: Sequence[Column]) -> KnownColumns:
        """Encode the three tables."""
        assert subject.control is not None
        encoder = GowerEncoder.anchored_on(subject.train, known, beside=[subject.control])
        tables = (subject.train, subject.control, subject.synthetic)
        return cls(tables, encoder.order, tuple(encoder.encode(tables)))

    @property
    def many(self) -> bool:
        """Whether they, or the rows of the release, are too many for a search for each secret."""
        n_columns = len(set(self.order))
        return n_columns > MOST_SEARCHED or n_columns * len(self.rows[2]) > MOST_CELLS

    def hindrance(self, secret: Column) -> str:
        """Why a column cannot be guessed; empty when it can."""
        [values] = codes([self.tables[0]], secret)
        if len(np.unique(values[values >= 0])) < 2:
            return "its values in train do not differ"
        if not set(self.order) - {secret.name}:
            return "no known column varies in train"
        return ""

    def places(self, secret: Column) -> Positions:
        """Where the secret stands among the columns of the rows."""
        return np.array([i for i, name in enumerate(self.order) if name == secret.name], dtype=np.intp)

    def without(self, secret: Column, rows: Mixed) -> Mixed:
        """Encoded rows without the secret."""
        for place in self.places(secret)[::-1]:
            rows = rows.without(int(place))
        return rows

    @property
    def varying(self) -> tuple[str, ...]:
        """Names of those that vary in train, each once."""
        return tuple(dict.fromkeys(self.order))

    def only(self, names: Collection[str], rows: Mixed) -> Mixed:
        """Encoded rows with these columns alone."""
        return rows.only(np.array([i for i, name in enumerate(self.order) if name in names], dtype=np.intp))


@dataclass(frozen=True, eq=False)
class AttackedSecret:
    """A secret and its values.

    Attributes:
        truth: values in train, control and release, NaN where missing.
        judge: which guesses are right.
        present: positions of the train and of the control rows that have one.
    """

    secret: Column
    truth: tuple[Floats, ...]
    judge: GuessRule
    present: tuple[Positions, ...]

    @classmethod
    def of(cls, known: KnownColumns, secret: Column, tolerance: float) -> AttackedSecret:
        """Read the values of a secret."""
        truth, judge = facets(secret).secret(known.tables, secret, tolerance)
        present = tuple(np.flatnonzero(~np.isnan(values)) for values in truth[:2])
        return cls(secret, tuple(truth), judge, present)


@dataclass(frozen=True, eq=False)
class NearestGuesses:
    """What an attack on one secret guesses.

    Attributes:
        chosen: positions of the train and of the control rows attacked, ascending.
        found: position of the synthetic row that is nearest to each of them, of train and of control.
        learnt: control rows that a model may learn the secret from. seed: of the model.
    """

    chosen: tuple[Positions, ...]
    found: tuple[Positions, ...]
    learnt: Positions
    seed: int


@dataclass(frozen=True, eq=False)
class _Question:
    """What is drawn for the attack on one secret.

    Attributes:
        place: of each release row among equally near ones. others: see :class:`NearestGuesses`.
    """

    target: AttackedSecret
    chosen: tuple[Positions, ...]
    place: Positions
    learnt: Positions
    seed: int

    @classmethod
    def of(
        cls, known: KnownColumns, secret: Column, tolerance: float, most: int, rng: np.random.Generator
    ) -> _Question:
        """Draw the records that are guessed at, and what else chance decides."""
        target = AttackedSecret.of(known, secret, tolerance)
        chosen = tuple(drawn(rows, most, rng) for rows in target.present)
        place = random_places(len(known.rows[2]), rng)
        seed = int(rng.integers(2**31))
        return cls(target, chosen, place, drawn(target.present[1], _MOST_LEARNT, rng), seed)

    def answered(self, found: Sequence[Positions]) -> tuple[AttackedSecret, NearestGuesses]:
        """The guesses, taken from these release rows for train and for control."""
        return self.target, NearestGuesses(self.chosen, tuple(found), self.learnt, self.seed)


def guesses(
    known: KnownColumns,
    secrets: Sequence[Column],
    tolerance: float,
    most: int,
    most_learnt: int,
    rng: np.random.Generator,
) -> Iterator[tuple[AttackedSecret, NearestGuesses]]:
    """Each secret with the guesses at it, of the nearest rows without it, at most so many on either side.

    Over many known columns, or rows of the release, one search answers for all secrets, which are then
    guessed at the same records as far as these have them, and no model learns from more than ``most_learnt``
    rows. Equal rows are met in no order of the release.
    """
    if known.many:
        yield from _at_once(known, secrets, tolerance, most, most_learnt, rng)
        return
    questions = (_Question.of(known, secret, tolerance, most, rng) for secret in secrets)
    if _overlapping(known, len(secrets), most):
        yield from _together(known, list(questions))
        return
    train, control, synthetic = known.rows
    for question in questions:
        # One search for both sides, since a search of half as many rows takes more than half as long.
        asked = train.take(question.chosen[0]).followed_by(control.take(question.chosen[1]))
        secret = question.target.secret
        release = known.without(secret, synthetic)
        found = nearest(known.without(secret, asked), release, place=question.place).index
        yield question.answered(_halves(found, len(question.chosen[0])))


def _overlapping(known: KnownColumns, n_secrets: int, most: int) -> bool:
    """Whether most records are guessed at for so many secrets that one search for all takes less."""
    sizes = [len(rows) for rows in known.rows[:2]]
    return n_secrets * sum(min(most, n) for n in sizes) >= _SHARED * sum(sizes)


def _together(
    known: KnownColumns, questions: Sequence[_Question]
) -> Iterator[tuple[AttackedSecret, NearestGuesses]]:
    """The same answers as of a search for each secret, by one search of all records that are asked for."""
    train, control, synthetic = known.rows
    asked = [np.unique(np.concatenate(side)) for side in zip(*(q.chosen for q in questions), strict=True)]
    found = nearest_without(
        train.take(asked[0]).followed_by(control.take(asked[1])),
        synthetic,
        [known.places(q.target.secret) for q in questions],
        place=[q.place for q in questions],
    )
    for question, answer in zip(questions, found, strict=True):
        sides = zip(_halves(answer, len(asked[0])), asked, question.chosen, strict=True)
        yield question.answered([one[np.searchsorted(every, some)] for one, every, some in sides])


def _at_once(
    known: KnownColumns,
    secrets: Sequence[Column],
    tolerance: float,
    most: int,
    most_learnt: int,
    rng: np.random.Generator,
) -> Iterator[tuple[AttackedSecret, NearestGuesses]]:
    train, control, synthetic = known.rows
    orders = [rng.permutation(len(table)) for table in (train, control)]
    place = random_places(len(synthetic), rng)
    chosen = []
    for secret in secrets:  # their values are read twice: of millions of rows, those of all have no room
        present = AttackedSecret.of(known, secret, tolerance).present
        chosen.append(tuple(_first(order, rows, most) for order, rows in zip(orders, present, strict=True)))
    asked = [np.unique(np.concatenate(side)) for side in zip(*chosen, strict=True)]
    queries = train.take(asked[0]).followed_by(control.take(asked[1]))
    found = nearest_without(queries, synthetic, [known.places(secret) for secret in secrets], place=place)
    for secret, rows, answer in zip(secrets, chosen, found, strict=True):
        target = AttackedSecret.of(known, secret, tolerance)
        places = zip(_halves(answer, len(asked[0])), asked, rows, strict=True)
        own = tuple(of_side[np.searchsorted(every, some)] for of_side, every, some in places)
        learnt = _first(orders[1], target.present[1], most_learnt)
        yield target, NearestGuesses(rows, own, learnt, int(rng.integers(2**31)))


def _first(order: Positions, rows: Positions, most: int) -> Positions:
    """At most so many of these rows, those that come first in an order, ascending."""
    wanted = np.zeros(len(order), dtype=np.bool_)
    wanted[rows] = True
    return np.sort(order[wanted[order]][:most])


def _halves(values: Positions, n: int) -> tuple[Positions, Positions]:
    return values[:n], values[n:]
