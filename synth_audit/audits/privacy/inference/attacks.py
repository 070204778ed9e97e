"""Guesses at secrets: by known columns, by a model learned from the release, and what they came to."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits._targets import FEWEST_GUESSES, drawn, random_places, rate
from synth_audit.audits.privacy._known_sets import (
    FEW,
    AskedPeople,
    Known,
    KnownSets,
    PairsApart,
    SetTrials,
    different_people,
    drawn_sets,
    parts_of,
)
from synth_audit.audits.privacy.inference.targets import AttackedSecret, KnownColumns, NearestGuesses
from synth_audit.encode.facets import GuessRule
from synth_audit.encode.predictors import forest_features
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Direction, Exposure, Interval, Measurement, Quantity, Reference
from synth_audit.neighbours.gower import Mixed, nearest
from synth_audit.neighbours.search import most_queries
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import AttackRisk, SuccessCount, corrected_level, risk, worst_interval
from synth_audit.table.schema import Column

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier


_NULL = Reference(0.0, "as often as for people the generator never saw")

OVERALL_RISK = Quantity(
    "overall_risk",
    "Inference risk over all secrets",
    range=(float("-inf"), 1.0),
    help="Part of the secrets of people in the training data that only this release gives away; 0 is none.",
)
WORST_RISK = Quantity(
    "worst_risk",
    "Inference risk of the most exposed secret",
    range=(float("-inf"), 1.0),
    help="The largest of the risks below, with an interval that allows for their number.",
)
RISK = Quantity(
    "risk",
    "Inference risk",
    range=(float("-inf"), 1.0),
    help="Part of the people in the training data whose secret only this release gives away; 0 is none.",
)
TRAIN_RATE = Quantity(
    "train_rate",
    "Training records whose secret was guessed",
    direction=Direction.NEUTRAL,
    help="Share of right guesses from the nearest synthetic row.",
)
CONTROL_RATE = Quantity(
    "control_rate",
    "Control records whose secret was guessed",
    direction=Direction.NEUTRAL,
    help="The same for people the generator never saw: what the population gives away, not the release.",
)
NAIVE_RATE = Quantity(
    "naive_rate",
    "Training records guessed without looking",
    direction=Direction.NEUTRAL,
    help="Right guesses of one who always says the commonest value, or the median, of control.",
)
MODEL_RATE = Quantity(
    "model_rate",
    "Training records guessed by a model of control",
    direction=Direction.NEUTRAL,
    help="Right guesses of one who has real data of other people and no release. Inference that does no "
    "better is what the population gives away.",
)

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

_LEVELS = np.linspace(0, 1, 9)
"""Shares of the release rows, by how sure the forest is of them, that the margin may take over."""

RECONSTRUCTION_RISK = Quantity(
    "reconstruction_risk",
    "Inference risk by a model of the release",
    range=(float("-inf"), 1.0),
    direction=Direction.NEUTRAL,
    help="Part of the people in the training data whose secret is remembered by a model learnt from the "
    "release; 0 is none. A plain number: no gate reads it.",
)

RECONSTRUCTION_RATE = Quantity(
    "reconstruction_rate",
    "Training records guessed by a model of the release",
    direction=Direction.NEUTRAL,
    help="Right guesses of that model, from all known columns.",
)

_TREES, _MOST_LEARNT = 10, 5_000


@dataclass(frozen=True)
class SecretAttack:
    """What became of the guesses at one secret.

    Attributes:
        train, control: guesses from the release. without: those at train rows by attackers without it.
    """

    train: SuccessCount
    control: SuccessCount
    without: tuple[SuccessCount, ...]
    exposure: Exposure

    @classmethod
    def of(
        cls,
        secret: str,
        chosen: Sequence[Positions],
        hits: Sequence[Bools],
        without: Sequence[Bools],
    ) -> SecretAttack:
        """Count the guesses, and keep whose they were.

        Args:
            chosen: positions of the rows guessed at, in train and in control.
            hits: which guesses at these rows were right.
            without: the same of attackers who lack the release, at train rows.
        """
        exposure = Exposure(
            measurement=RISK.id(column=secret),
            columns=(secret,),
            train_tried=chosen[0],
            train_hit=chosen[0][hits[0]],
            control_tried=chosen[1],
            control_hit=chosen[1][hits[1]],
        )
        train, control, *others = (SuccessCount.of(h) for h in (*hits, *without))
        return cls(train, control, tuple(others), exposure)

    @property
    def guesses(self) -> int:
        """Guesses made on the side with fewer."""
        return min(self.train.guesses, self.control.guesses)

    def risk(self, level: float) -> AttackRisk:
        """How much better guesses at train rows are than those at control rows."""
        return risk(self.train, self.control, level)

    def measured(self, requested: int, level: float) -> Iterator[Measurement]:
        """The risk, and the rates it comes from; a rate without a guess is left out."""
        secret, left = self.exposure.measurement.column, self.risk(level)
        yield _risk_as(RISK, left.value, left.interval, requested, self.guesses, secret)
        quantities = (TRAIN_RATE, CONTROL_RATE, NAIVE_RATE, MODEL_RATE)
        for quantity, tally in zip(quantities, (self.train, self.control, *self.without), strict=False):
            if tally.guesses:
                yield rate(quantity, tally, requested, level, column=secret)


def overall(attacks: Sequence[SecretAttack], requested: int, level: float) -> Measurement:
    """The risk over the guesses at all secrets; those at one record succeed or fail together, as one."""
    train = _joint_count([(a.exposure.train_tried, a.exposure.train_hit) for a in attacks])
    control = _joint_count([(a.exposure.control_tried, a.exposure.control_hit) for a in attacks])
    found = risk(train, control, level)
    records = min(
        len(np.unique(np.concatenate(rows)))
        for rows in (
            [a.exposure.train_tried for a in attacks],
            [a.exposure.control_tried for a in attacks],
        )
    )
    return _risk_as(OVERALL_RISK, found.value, found.interval, max(requested, records), records)


def _joint_count(tried: Sequence[tuple[Positions, Positions]]) -> SuccessCount:
    """One tally of several attacks on the same table, given the positions tried and hit by each."""
    rows = np.concatenate([t for t, _ in tried])
    if not len(rows):
        return SuccessCount(0.0, 0)
    n = int(rows.max()) + 1
    tries = np.bincount(rows, minlength=n)
    hits = np.bincount(np.concatenate([h for _, h in tried]), minlength=n)
    return SuccessCount.of_clusters(hits[tries > 0], tries[tries > 0])


def worst(attacks: Sequence[SecretAttack], requested: int, level: float) -> Measurement:
    """The largest risk; a secret that could not be tried leaves it open."""
    together = [attack.risk(corrected_level(level, len(attacks))) for attack in attacks]
    tried = [attack.risk(level).value for attack in attacks if attack.guesses]
    value = max(tried, default=math.nan)
    interval = worst_interval([r.interval for r in together], level, f"{len(attacks)} secrets")
    return _risk_as(WORST_RISK, value, interval, requested, min(attack.guesses for attack in attacks))


def _risk_as(
    quantity: Quantity, value: float, interval: Interval, requested: int, achieved: int, secret: str = ""
) -> Measurement:
    return quantity.at(
        value,
        column=secret,
        interval=interval,
        n_requested=requested,
        n_achieved=achieved,
        n_minimum=FEWEST_GUESSES,
        reference=_NULL,
    )


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
        together = _joint_sets(known.varying, names, secrets, subject) if n_sets else []
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


def _joint_sets(
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
    forest = _grown(known, classes, n_trees, seed)
    votes = forest.oob_decision_function_
    seen = ~np.isnan(votes).any(axis=1)
    sure, share = _threshold(votes[seen], classes[seen], common)
    votes = forest.predict_proba(forest_features(asked))
    best = np.where(votes.max(axis=1) >= sure, forest.classes_[votes.argmax(axis=1)], common)
    found: Floats = guess[best]
    return found, share


def _grown(known: Mixed, classes: Codes, n_trees: int, seed: int) -> ExtraTreesClassifier:
    from sklearn.ensemble import ExtraTreesClassifier  # here, so that looking around stays light

    forest = ExtraTreesClassifier(n_trees, bootstrap=True, oob_score=True, random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        # Rows that are in every bag are left out; a secret of many labels in few rows is what it is.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="sklearn")
        forest.fit(forest_features(known), classes)
    return forest


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


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """An attacker who learns secrets from release rows.

    Attributes:
        secrets: names of those that are guessed.
    """

    known: KnownColumns
    secrets: frozenset[str]
    rng: np.random.Generator

    @classmethod
    def of(
        cls, known: KnownColumns, secrets: Sequence[Column], most: int, context: RunContext
    ) -> Reconstruction:
        """Choose at most so many of the secrets."""
        [rng] = context.rng.spawn(1)  # a stream of its own: the draws of the other attacks stay what they are
        chosen = drawn(np.arange(len(secrets)), most, rng) if most else ()
        return cls(known, frozenset(secrets[i].name for i in chosen), rng)

    def measured(
        self, target: AttackedSecret, guess: NearestGuesses, requested: int, level: float
    ) -> Iterator[Measurement]:
        """Guesses at the records that the nearest rows guess at; none where the release lacks the secret."""
        present = np.flatnonzero(~np.isnan(target.truth[2]))
        if target.secret.name not in self.secrets or not len(present):
            return
        train, control, release = self.known.rows
        learnt, seed = drawn(present, _MOST_LEARNT, self.rng), int(self.rng.integers(2**31))
        asked = train.take(guess.chosen[0]).followed_by(control.take(guess.chosen[1]))
        rows = (self.known.without(target.secret, r) for r in (release.take(learnt), asked))
        found, _ = reconstructed(target.judge, next(rows), target.truth[2][learnt], next(rows), _TREES, seed)
        secrets = [values[some] for values, some in zip(target.truth[:2], guess.chosen, strict=True)]
        guesses = np.split(found, [len(secrets[0])])
        sides = [SuccessCount.of(target.judge.right(g, s)) for g, s in zip(guesses, secrets, strict=True)]
        left = risk(sides[0], sides[1], level)
        yield RECONSTRUCTION_RISK.at(
            left.value,
            column=target.secret.name,
            interval=left.interval,
            n_requested=requested,
            n_achieved=min(side.guesses for side in sides),
            n_minimum=FEWEST_GUESSES,
            reference=Reference(0.0, "the model knows train people no better than strangers"),
        )
        if sides[0].guesses:
            yield rate(RECONSTRUCTION_RATE, sides[0], requested, level, column=target.secret.name)
