"""At which records a secret is guessed, by the release rows nearest to them or by a model of the release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits._targets import drawn, random_places
from synth_audit.audits.privacy._secrets import KnownRows
from synth_audit.encode.facets import facets
from synth_audit.encode.predictors import GuessRule, forest_features
from synth_audit.neighbours.gower import Mixed, nearest_without
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

_LEVELS = np.linspace(0, 1, 9)
"""Shares of the release rows, by how sure the forest is of them, that the margin may take over."""


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
class Question:
    """A secret as numbers, NaN where missing, and what is drawn for the attack on it.

    Attributes:
        real: of train and of control people. judge: which guesses are right.
        chosen: positions of the train and of the control rows guessed at, ascending; each holds the secret.
        place: of each release row among equally near ones, which are met in no order of the release.
        learnt: control rows that a model may learn the secret from. seed: of the model.
    """

    name: str
    real: tuple[Floats, ...]
    release: Floats
    judge: GuessRule
    chosen: tuple[Positions, ...]
    place: Positions
    learnt: Positions
    seed: int

    def truth(self, chosen: Sequence[Positions]) -> list[Floats]:
        """The secrets of train and of control people at these positions."""
        return [side[rows] for side, rows in zip(self.real, chosen, strict=True)]


def drawn_questions(
    known: KnownRows,
    subject: Subject,
    secrets: Sequence[Column],
    tolerance: float,
    most: int,
    rng: np.random.Generator,
) -> Iterator[Question]:
    """Draw at most so many records of either side for each secret, and what else chance decides.

    Over many known columns, or rows of the release, all secrets are guessed at the same records as far as
    these have them, and ties are broken alike.
    """
    at_once = many(known)
    orders = [rng.permutation(len(rows)) for rows in (known.train, known.control)] if at_once else []
    shared = random_places(len(known.release), rng) if at_once else None
    for column in secrets:
        tables = [*subject.real, subject.synthetic]
        (*real, release), judge = facets(column).secret(tables, column, tolerance)
        present = [np.flatnonzero(~np.isnan(side)) for side in real]
        if shared is None:
            chosen = [drawn(rows, most, rng) for rows in present]
            place, seed = random_places(len(known.release), rng), int(rng.integers(2**31))
            learnt = drawn(present[1], _MOST_LEARNT, rng)
        else:
            chosen = [_first(order, rows, most) for order, rows in zip(orders, present, strict=True)]
            place, seed = shared, int(rng.integers(2**31))
            learnt = _first(orders[1], present[1], MOST_LEARNT)
        yield Question(column.name, tuple(real), release, judge, tuple(chosen), place, learnt, seed)


def answered(known: KnownRows, asked: Sequence[Question]) -> Iterator[tuple[Question, list[Positions]]]:
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
            left_out = [known.places([q.name]) for q in batch]
            found = nearest_without(queries, release, left_out, place=[q.place for q in batch])
        else:
            queries, release = (known.without(batch[0].name, side) for side in (queries, release))
            found = nearest(queries, release, place=batch[0].place).index[None]
        for question, answer in zip(batch, found, strict=True):
            sides = zip(np.split(answer, [len(rows[0])]), rows, question.chosen, strict=True)
            yield question, [nearest_to[np.searchsorted(every, some)] for nearest_to, every, some in sides]


def _first(order: Positions, rows: Positions, most: int) -> Positions:
    """At most so many of these rows, those that come first in an order, ascending."""
    wanted = np.zeros(len(order), dtype=np.bool_)
    wanted[rows] = True
    return np.sort(order[wanted[order]][:most])


def reconstructed(
    judge: GuessRule, known: Mixed, secrets: Floats, asked: Mixed, n_trees: int, seed: int
) -> tuple[Floats, float]:
    """Guesses at secrets by a forest that learnt from release rows, or by the commonest value.

    Trees are grown to single rows, so that what a release repeats of a person is remembered. A guess is the
    class with most votes where its share of votes is at least t, else the commonest class; t is the quantile,
    of these shares out of bag, with which most release rows are guessed rightly out of bag.

    Args:
        known: n release rows without the secret, n ≥ 1. secrets: theirs, none missing, shape (n,).
        asked: m rows of the same preparation.

    Returns:
        Guesses, shape (m,), and the share of release rows of which the forest is sure enough.

    Source: after Annamalai, Gadotti & Rocher 2024, with trees in place of marginal queries.
    """
    classes, guess = judge.classes(secrets)
    common = int(np.bincount(classes).argmax())
    if len(guess) == 1 or len(known) < 2:
        return np.repeat(guess[common], len(asked)), 0.0
    from sklearn.ensemble import ExtraTreesClassifier  # here, so that looking around stays light

    forest = ExtraTreesClassifier(n_trees, bootstrap=True, oob_score=True, random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        # Rows that are in every bag are left out; a secret of many labels in few rows is what it is.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="sklearn")
        forest.fit(forest_features(known), classes)
    votes = forest.oob_decision_function_
    seen = ~np.isnan(votes).any(axis=1)
    sure, share = _threshold(votes[seen], classes[seen], common)
    votes = forest.predict_proba(forest_features(asked))
    best = np.where(votes.max(axis=1) >= sure, forest.classes_[votes.argmax(axis=1)], common)
    found: Floats = guess[best]
    return found, share


def _threshold(votes: Floats, classes: Codes, common: int) -> tuple[float, float]:
    """Share of votes from which the forest is asked, and of how many rows; (infinite, 0) for none of them.

    Args:
        votes: out of bag, shape (n, k). classes: positions of the columns of ``votes``, shape (n,).
    """
    if not len(votes):
        return np.inf, 0.0
    sureness = votes.max(axis=1)
    right, plain = votes.argmax(axis=1) == classes, classes == common
    limits = [*np.quantile(sureness, _LEVELS[:-1]), np.inf]
    taken: list[Bools] = [sureness >= limit for limit in limits]
    best = int(np.argmax([np.where(t, right, plain).mean() for t in taken]))
    return float(limits[best]), float(taken[best].mean())
