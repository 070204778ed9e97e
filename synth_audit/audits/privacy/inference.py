"""Inference: does the release tell an unknown attribute of a person of whom other attributes are known?"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from synth_audit.arrays import Codes, Floats, Floats32, Positions
from synth_audit.audits import _shared as declare
from synth_audit.audits._shared import drawn, named, named_or_sensitive, random_places
from synth_audit.audits.privacy import _secrets as secrecy
from synth_audit.encode.codes import codes
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings import measurement
from synth_audit.neighbours.gower import NOWHERE, Mixed, nearest_without
from synth_audit.neighbours.search import most_queries, nearest
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.attack_success import risk, worst_estimate
from synth_audit.stats.proportions import Proportion
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_MOST_TOGETHER = 30
"""Sets of columns that the generator drew together, each of which takes a search."""

_TREES, _MOST_RECONSTRUCTED = 10, 5_000
"""Trees of the model of the release, and release rows that it learns from at most."""

OVERALL_RISK = declare.risk_over_control(
    "overall_risk",
    "Inference risk over all secrets",
    unit=measurement.SECRETS,
    help="Part of the secrets of people in the training data that only this release gives away; 0 is none.",
)
WORST_RISK = declare.risk_over_control(
    "worst_risk",
    "Inference risk of the most exposed secret",
    unit=measurement.PEOPLE,
    help="The largest of the risks below, with an interval that allows for their number.",
)
RISK = declare.risk_over_control(
    "risk",
    "Inference risk",
    unit=measurement.PEOPLE,
    help="Part of the people in the training data whose secret only this release gives away; 0 is none.",
)
TRAIN_RATE = declare.descriptive(
    "train_rate",
    "Training records whose secret was guessed",
    help="Share of right guesses from the nearest synthetic row.",
)
CONTROL_RATE = declare.descriptive(
    "control_rate",
    "Control records whose secret was guessed",
    help="The same for people the generator never saw: what the population gives away, not the release.",
)
NAIVE_RATE = declare.descriptive(
    "naive_rate",
    "Training records guessed without looking",
    help="Right guesses of one who always says the commonest value, or the median, of control.",
)
MODEL_RATE = declare.descriptive(
    "model_rate",
    "Training records guessed by a model of control",
    help="Right guesses of one who has real data of other people and no release. Inference that does no "
    "better is what the population gives away.",
)

EXCESS = declare.excess_over_control(
    "excess_people",
    "People given away by the worst of several sets of known columns",
    unit=measurement.PEOPLE,
    proportional=False,  # a guess that is right by luck is no excess, and luck differs by secret
    help="Share of people in the training data whose secret is guessed rightly beyond what guesses about "
    "control people come to, for the worst of several sets of known columns; 0 is none.",
)

RECONSTRUCTION_RISK = declare.descriptive(
    "reconstruction_risk",
    "Inference risk by a model of the release",
    range=(float("-inf"), 1.0),
    help="Part of the people in the training data whose secret is remembered by a model learnt from the "
    "release; 0 is none. A plain number: no gate reads it.",
)

RECONSTRUCTION_RATE = declare.descriptive(
    "reconstruction_rate",
    "Training records guessed by a model of the release",
    help="Right guesses of that model, from all known columns.",
)

_GUESSED = (RISK, TRAIN_RATE, CONTROL_RATE)
_RECONSTRUCTED = (RECONSTRUCTION_RISK, RECONSTRUCTION_RATE)

MOST_SEARCHED, MOST_CELLS = 50, 10**6
"""Known columns, and release rows times these, up to which every secret has records and a search of its own:
with 2,000 records on either side these are 4·10⁹ pairs of rows."""

MOST_LEARNT = 5_000
"""Control rows that a model learns from where many columns are known."""

_MOST_LEARNT = 50_000
"""Control rows from which a model learns at most where the known columns are no more than that."""

_BEYOND = 1e6
"""Numbers further than this from train's range are alike to the model."""

_SHARED = 3
"""Secrets that a record is guessed at for, on average, from which on one search that allows for all of them
takes less than one for each: a query of it takes two to three times as long."""

_NOBODY = np.empty(0, dtype=np.intp)

_LEVELS = np.linspace(0, 1, 9)
"""Shares of the release rows, by how sure the forest is of them, that the margin may take over."""


@dataclass(frozen=True, kw_only=True)
class Inference:
    """Guesses a secret from the synthetic row that is nearest on the known columns, for every secret.

    Nearest by Gower's distance, ties broken at random. A label is guessed right when equal, a number or date
    within ``tolerance`` of train's usual range or, for outlying values, of the secret; see
    :class:`~synth_audit.audits.privacy._secrets.GuessTolerance`. Records whose secret is missing are not
    attacked: there is nothing to learn. A missing guess is wrong.
    ``risk = (r_train − r_control) / (1 − r_control)`` on the middles of their intervals, its interval that
    of :func:`~synth_audit.stats.attack_success.risk_interval`; ``worst_risk`` is the largest, its interval
    at ``1 − (1 − level) / secrets``. ``overall_risk`` takes the guesses at all secrets together, those at one
    record as one: it is the number to gate where no column is declared sensitive, for the worst of many
    secrets is that of a column which nearly everybody shares, and hardly certain.

    Beside all of ``known``, smaller sets of it are tried: two to five columns, and halves. Half of the sets
    are drawn at random; the others are pairs that stand out on one half of the people (single release rows
    are near in both columns more often to train people than to strangers), and what these grow to. Where a
    generator draws groups of columns apart, all that is known of a secret's group is tried as well.
    ``excess_people = asked_t / people_t · (r_train − r_control)`` for the worst set and secret, chosen on one
    half of the people and measured on the other, both ways, so that trying many raises no false alarm.

    ``reconstruction_risk`` is the same risk by another attacker: a forest that learns the secret from all
    known columns of at most 5,000 release rows, and leaves to the commonest value what it is unsure of; how
    unsure is told by its guesses out of bag, so by the release alone. Trees are grown to single rows, and
    train people are compared with control people, so that memory counts and not usefulness. Plain numbers.

    Where more than 50 columns are known, or a million cells of the release, the work is bounded: one search
    answers for all secrets, which are guessed at the same records (others in place of those whose secret is
    missing), and models of control learn from at most 5,000 rows, by randomised trees. Every guess is the
    same as of a search of its own. In more than 2,000,000 rows of the release, or 670,000 by sets of
    known columns, fewer records are looked up, 1,000 on either side at least, and the intervals are wider.
    On planted leaks nothing is guessed without the release: these rates have no direction to check.

    Fields:
        secrets: columns to guess; left out, those of role sensitive, and every released column in turn
            where the plan declares none.
        known: columns the adversary knows, less the secret; left out, all other released columns.
        n_attacks: at most this many training records, and as many control records, per secret.
        tolerance: relative error at which a guessed number is right, in [0, 1).
        n_trees: trees of the model fitted on control, on 50,000 rows of it at most; 0 for no such model.
        max_secrets: of more columns, where none is named nor declared sensitive, so many are drawn at random.
        known_sets: about how many smaller sets of known columns are tried; 0 for none.
        max_reconstructed: at most so many secrets, drawn at random of more, are guessed by a model of the
            release too; 0 for none.

    Raises:
        ValueError: a field is out of range, or a column is named twice.

    Source: Giomi et al. 2022; contrastive privacy metrics, section 3.4.
    """

    secrets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    n_attacks: int = 2000
    tolerance: float = 0.05
    n_trees: int = 10
    max_secrets: int = 50
    known_sets: int = 12
    max_reconstructed: int = 20

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Inference",
        question="Does the release give away an attribute of a person of whom other attributes are known?",
        threat_model=(
            "An adversary knows some attributes of a person, looks for the most similar synthetic row and "
            "takes its value of the unknown attribute for the person's."
        ),
        not_covered=(
            "What the population as a whole gives away, which is subtracted; sets of known columns "
            "that were not tried."
        ),
        quantities=(OVERALL_RISK, WORST_RISK, EXCESS, *_GUESSED, NAIVE_RATE, MODEL_RATE, *_RECONSTRUCTED),
        risk="inference",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Giomi et al. 2022",
    )

    def __post_init__(self) -> None:
        declare.different(self, "secrets")
        declare.different(self, "known")
        declare.at_least(self, n_attacks=1, max_secrets=1, n_trees=0, known_sets=0, max_reconstructed=0)
        if not 0 <= self.tolerance < 1:
            raise ValueError("tolerance must be in [0, 1)")

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Attack at most ``n_attacks`` rows of train and of control for every secret."""
        columns = secrecy.known_columns(subject, named(subject, self.known, "known") or subject.features)
        level, n_release = subject.level, subject.synthetic.n_rows
        attacked, notes = self._secrets(columns.order, subject, context)
        most, at_once = most_queries(self.n_attacks, n_release), many(columns.order, n_release)
        if at_once:
            notes += bounds(subject, most)
        # Streams of their own: the draws of the other attacks stay what they are.
        sets_rng, models_rng = context.rng.spawn(2)
        # Of a large release fewer people are asked, since each set takes a search.
        of_sets = most_queries(self.n_attacks, n_release * self.known_sets // 4)
        people = secrecy.AskedPeople.drawn(subject, of_sets, sets_rng)
        asked = list(drawn_questions(subject, attacked, self.tolerance, most, context.rng, at_once=at_once))
        train = [people.train, *(q.chosen[0] for q in asked)]
        control = [people.control, *(rows for q in asked for rows in (q.chosen[1], q.learnt))]
        known = secrecy.KnownRows.of(
            columns, np.unique(np.concatenate(train)), np.unique(np.concatenate(control))
        )
        attacks, sets, told = self._sets(known, subject, attacked, people, context, sets_rng)
        modelled = drawn(np.arange(len(attacked)), self.max_reconstructed, models_rng)
        exposures = list[measurement.Exposure]()
        of_secrets, of_models = list[measurement.Measurement](), list[measurement.Measurement]()
        for i, (question, found) in enumerate(answered(known, asked, at_once=at_once)):
            name, secret = question.name, question.secret()
            hits = [
                secret.judge.right(secret.release[rows], truth)
                for rows, truth in zip(found, secret.truth(question.chosen), strict=True)
            ]
            exposures.append(secrecy.exposure(RISK.id(column=name), [name], question.chosen, hits))
            sides = secrecy.successes(exposures[-1])
            of_secrets += secrecy.risk_and_rates(_GUESSED, sides, self.n_attacks, level, name)
            if not subject.planted:
                of_secrets += self._without_release(known, question, secret, level)
                if i in modelled:
                    of_models += self._by_model(known, question, secret, level, models_rng)
            _guess_by_sets(name, secret, i, attacks, sets)
        by_sets = []
        if attacks.tried:
            excess, worst = attacks.worst(level)
            by_sets.append(attacks.excess(EXCESS, excess, self.n_attacks))
            notes.append(f"sets of known columns tried, in addition to all other columns: {told}")
            tells = dict.fromkeys(f"{', '.join(k.known[0])} predict {attacked[i].name}" for k, i in worst)
            notes += [f"their excess over control is largest where {' and '.join(tells)}"] if worst else []
        both = (self._overall(exposures, level), self._worst(exposures, level))
        return measurement.Findings(
            (*both, *by_sets, *of_secrets, *of_models), (), tuple(notes), tuple(exposures)
        )

    def _secrets(
        self, known: secrecy.Names, subject: Subject, context: RunContext
    ) -> tuple[list[Column], list[str]]:
        """The columns to guess, and notes where some are left out.

        The draw is the same in every examination with one seed: the planted leaks are of the same columns.
        """
        declared = named_or_sensitive(subject, self.secrets, "secrets")
        secrets = declared or subject.features
        attacked, notes, n = list[Column](), list[str](), len(secrets)
        if not declared and n > self.max_secrets:
            chosen = drawn(np.arange(n), self.max_secrets, context.child("inference", "secrets").rng)
            secrets = tuple(secrets[i] for i in chosen)
            notes = [f"{self.max_secrets} of {n} columns were drawn to be guessed; name others as secrets"]
        for column in secrets:
            [cells] = codes([subject.train], column)
            present = cells[cells >= 0]
            if not len(present) or present.min() == present.max():
                notes.append(f"{column.name} is not attacked: its values in train do not differ")
            elif not set(known) - {column.name}:
                notes.append(f"{column.name} is not attacked: no known column varies in train")
            else:
                attacked.append(column)
        if not attacked:
            raise NotApplicable("; ".join(notes))
        return attacked, notes

    def _sets(
        self,
        known: secrecy.KnownRows,
        subject: Subject,
        secrets: Sequence[Column],
        people: secrecy.AskedPeople,
        context: RunContext,
        rng: np.random.Generator,
    ) -> tuple[secrecy.Attacks, list[tuple[secrecy.Knowledge, Positions]], str]:
        """Attacks to come, sets of known columns with the release row nearest to each of the people, and how
        many sets of each sort.

        Where some columns are no secrets, and two of them vary, sets are of these. Where a generator drew
        groups of columns apart, all that is known of a secret's group is a set too. The sets are the same
        for the planted leaks.
        """
        hidden = {secret.name for secret in secrets}
        others = tuple(name for name in known.varying if name not in hidden)
        names = others if len(others) > 1 else known.varying
        together = _joint_sets(known.varying, names, secrets, subject) if self.known_sets else []
        if len(together) > _MOST_TOGETHER:
            draws = context.child("inference", "drawn together").rng
            together = [together[i] for i in np.sort(draws.permutation(len(together))[:_MOST_TOGETHER])]
        sets, told = secrecy.known_sets(
            subject,
            names,
            people,
            self.known_sets,
            context.child("inference", "known sets").rng,
            sources=1,
            sizes=[min(size, len(names) - 1) for size in secrecy.FEW],
            together=together,
        )
        asked = known.asked(people.train, people.control)
        nearest = (known.nearest(knowledge.known[0], asked, 1, rng)[:, 0] for knowledge in sets)
        return secrecy.Attacks(people), list(zip(sets, nearest, strict=True)), told

    def _without_release(
        self, known: secrecy.KnownRows, question: "SecretQuestion", secret: "SecretValues", level: float
    ) -> Iterator[measurement.Measurement]:
        """What attackers guess at the train rows who have control rows and no release."""
        judge, control, learnt = secret.judge, secret.real[1], question.learnt
        truth = secret.real[0][question.chosen[0]]
        if not len(learnt) or not len(truth):
            return
        found = {NAIVE_RATE: np.full(len(truth), judge.typical(control))}
        if self.n_trees:
            found[MODEL_RATE] = predicted(
                judge,
                known.without(question.name, known.asked(_NOBODY, learnt)),
                control[learnt],
                known.without(question.name, known.asked(question.chosen[0], _NOBODY)),
                self.n_trees,
                question.seed,
                randomised=many(known.order, len(known.release)),
            )
        for quantity, answers in found.items():
            tally = Proportion.of(judge.right(answers, truth))
            yield secrecy.success_rate(quantity, tally, self.n_attacks, level, column=question.name)

    def _by_model(
        self,
        known: secrecy.KnownRows,
        question: "SecretQuestion",
        secret: "SecretValues",
        level: float,
        rng: np.random.Generator,
    ) -> Iterator[measurement.Measurement]:
        """Guesses of a model of the release at the same records; none where the release lacks the secret."""
        truth = secret.truth(question.chosen)
        present = np.flatnonzero(~np.isnan(secret.release))
        if not len(present):
            return
        learnt, seed = drawn(present, _MOST_RECONSTRUCTED, rng), int(rng.integers(2**31))
        rows = known.without(question.name, known.release.take(learnt))
        asked = known.without(question.name, known.asked(*question.chosen))
        found = reconstructed(secret.judge, rows, secret.release[learnt], asked, _TREES, seed)
        train, control = map(secret.judge.right, np.split(found, [len(truth[0])]), truth)
        sides = Proportion.of(train), Proportion.of(control)
        null = measurement.Reference(0.0, "the model knows train people no better than control people")
        yield from secrecy.risk_and_rates(_RECONSTRUCTED, sides, self.n_attacks, level, question.name, null)

    def _overall(self, exposed: Sequence[measurement.Exposure], level: float) -> measurement.Measurement:
        """The risk over the guesses at all secrets; those at one record succeed or fail together, as one."""

        def joint(tried: list[Positions], hit: list[Positions]) -> tuple[Proportion, int]:
            rows, tries = np.unique(np.concatenate(tried), return_counts=True)
            hits = np.bincount(np.searchsorted(rows, np.concatenate(hit)), minlength=len(rows))
            return Proportion.of_clusters(hits, tries) if len(rows) else Proportion(0.0, 0), len(rows)

        train, of_train = joint([e.train_tried for e in exposed], [e.train_hit for e in exposed])
        control, of_control = joint([e.control_tried for e in exposed], [e.control_hit for e in exposed])
        found, n = risk(train, control, level), min(of_train, of_control)
        return secrecy.risk_at(OVERALL_RISK, found, max(self.n_attacks, n), n)

    def _worst(self, exposed: Sequence[measurement.Exposure], level: float) -> measurement.Measurement:
        """The largest risk; a secret that could not be tried leaves it open."""
        sides = [secrecy.successes(e) for e in exposed]
        found = worst_estimate([partial(risk, *side) for side in sides], level, f"{len(sides)} secrets")
        return secrecy.risk_at(
            WORST_RISK, found, self.n_attacks, min(x.trials for side in sides for x in side)
        )


def _joint_sets(
    varying: Sequence[str], names: Sequence[str], secrets: Sequence[Column], subject: Subject
) -> list[tuple[secrecy.Names, ...]]:
    """All that is known of a group of columns that the generator drew together, less each secret in it.

    Args:
        varying: columns that are known. names: those of them that sets are of.
    """
    found: dict[tuple[secrecy.Names, ...], None] = {}
    for group in subject.column_groups:
        for secret in secrets:
            if secret.name in group:
                own = [n for n in group if n in names and n != secret.name]
                own = own or [n for n in group if n in varying and n != secret.name]
                found |= {(tuple(sorted(own)),): None} if own else {}
    return list(found)


def _guess_by_sets(
    name: str,
    secret: "SecretValues",
    number: int,
    attacks: secrecy.Attacks,
    sets: Sequence[tuple[secrecy.Knowledge, Positions]],
) -> None:
    """Add the guesses at one secret by all sets without it; nobody is asked whose secret is missing."""
    truth = np.concatenate(secret.truth((attacks.people.train, attacks.people.control)))
    made = ~np.isnan(truth)
    for knowledge, rows in sets:
        if name not in knowledge.known[0]:
            right = secret.judge.right(secret.release[rows], truth) & made
            attacks.add(knowledge, [number], made[:, None], right[:, None])


def many(known: secrecy.Names, n_release: int) -> bool:
    """Whether known columns, or the rows of the release, are too many for a search for each secret."""
    n_columns = len(set(known))
    return n_columns > MOST_SEARCHED or n_columns * n_release > MOST_CELLS


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
class SecretValues:
    """A column as numbers, NaN where missing.

    Attributes:
        real: of train and of control people. judge: which guesses are right.
    """

    real: tuple[Floats, ...]
    release: Floats
    judge: secrecy.GuessRule

    def truth(self, chosen: Sequence[Positions]) -> list[Floats]:
        """The secrets of train and of control people at these positions."""
        return [side[rows] for side, rows in zip(self.real, chosen, strict=True)]


@dataclass(frozen=True, eq=False)
class SecretQuestion:
    """What is drawn for the attack on a secret.

    Attributes:
        secret: reads the column, which is not kept: the columns of a large table together take gigabytes.
        chosen: positions of the train and of the control rows guessed at, ascending; each holds the secret.
        place: of each release row among equally near ones, which are met in no order of the release.
        learnt: control rows that a model may learn the secret from. seed: of the model.
    """

    name: str
    secret: Callable[[], SecretValues]
    chosen: tuple[Positions, ...]
    place: Positions
    learnt: Positions
    seed: int


def _read(tables: Sequence[Table], column: Column, tolerance: float) -> SecretValues:
    (*real, release), judge = secrecy.column_secret(tables, column, tolerance)
    return SecretValues(tuple(real), release, judge)


def drawn_questions(
    subject: Subject,
    secrets: Sequence[Column],
    tolerance: float,
    most: int,
    rng: np.random.Generator,
    *,
    at_once: bool,
) -> Iterator[SecretQuestion]:
    """Draw at most so many records of either side for each secret, and what else chance decides.

    Args:
        at_once: all secrets are guessed at the same records as far as these have them, and ties are broken
            alike; see :func:`many`.
    """
    n_release = subject.synthetic.n_rows
    orders = [rng.permutation(t.n_rows) for t in subject.real] if at_once else []
    shared = random_places(n_release, rng) if at_once else None
    for column in secrets:
        secret = partial(_read, [*subject.real, subject.synthetic], column, tolerance)
        real = secret().real
        if shared is None:
            present = [np.flatnonzero(~np.isnan(side)) for side in real]
            chosen = [drawn(rows, most, rng) for rows in present]
            place, seed = random_places(n_release, rng), int(rng.integers(2**31))
            learnt = drawn(present[1], _MOST_LEARNT, rng)
        else:
            # Those that come first in an order which is the same for all secrets.
            first = [order[~np.isnan(side[order])] for order, side in zip(orders, real, strict=True)]
            chosen = [np.sort(rows[:most]) for rows in first]
            place, seed = shared, int(rng.integers(2**31))
            learnt = np.sort(first[1][:MOST_LEARNT])
        yield SecretQuestion(column.name, secret, tuple(chosen), place, learnt, seed)


def answered(
    known: secrecy.KnownRows, asked: Sequence[SecretQuestion], *, at_once: bool
) -> Iterator[tuple[SecretQuestion, list[Positions]]]:
    """Each question with the release rows nearest to its train and to its control rows.

    One search answers all where they are many, or ask most records for several secrets; its answers are those
    of a search for each.
    """
    n_records = sum(len(side) for question in asked for side in question.chosen)
    together = at_once or n_records >= _SHARED * sum(map(len, known.people))
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


def predicted(
    judge: secrecy.GuessRule,
    known: Mixed,
    secrets: Floats,
    unknown: Mixed,
    n_trees: int,
    seed: int,
    *,
    randomised: bool = False,
) -> Floats:
    """Guesses of a forest that learnt the secret from people whom the generator never saw.

    A number is predicted as the median of the most probable of its parts, so that a value which many
    share can be hit exactly. One thread, so that votes add up in one order.

    Args:
        known: n rows without the secret; secrets: theirs, none missing, shape (n,).
        unknown: m rows of the same preparation.
        randomised: whether trees try one random split of each column that they look at (Geurts et al. 2006)
            instead of all, which takes a third of the time.

    Returns:
        shape (m,).
    """
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    classes, guess = judge.classes(secrets)
    if len(guess) == 1:
        return np.repeat(guess, len(unknown))
    forest_of = ExtraTreesClassifier if randomised else RandomForestClassifier
    forest = forest_of(n_trees, min_samples_leaf=5, max_depth=12, random_state=seed, n_jobs=1)
    guesses: Floats = guess[_fitted(forest, known, classes).predict(forest_features(unknown))]
    return guesses


def forest_features(rows: Mixed) -> Floats32:
    """One column per column, for trees; they ask for order only, so missing numbers stand at one end."""
    numbers = np.where(rows.numbers == NOWHERE, -2 * _BEYOND, np.clip(rows.numbers, -_BEYOND, _BEYOND))
    return np.hstack([numbers, rows.labels]).astype(np.float32)


def reconstructed(
    judge: secrecy.GuessRule, known: Mixed, secrets: Floats, asked: Mixed, n_trees: int, seed: int
) -> Floats:
    """Guesses at secrets by a forest that learnt from release rows, or by the commonest value.

    Trees are grown to single rows, so that what a release repeats of a person is remembered. A guess is the
    class with most votes where its share of votes is at least t, else the commonest class; t is the quantile,
    of these shares out of bag, with which most release rows are guessed rightly out of bag.

    Args:
        known: n release rows without the secret, n ≥ 1. secrets: theirs, none missing, shape (n,).
        asked: m rows of the same preparation.

    Returns:
        shape (m,).

    Source: after Annamalai, Gadotti & Rocher 2024, with trees in place of marginal queries.
    """
    classes, guess = judge.classes(secrets)
    common = int(np.bincount(classes).argmax())
    if len(guess) == 1 or len(known) < 2:
        return np.repeat(guess[common], len(asked))
    from sklearn.ensemble import ExtraTreesClassifier  # here, so that looking around stays light

    forest = ExtraTreesClassifier(n_trees, bootstrap=True, oob_score=True, random_state=seed, n_jobs=1)
    votes = _fitted(forest, known, classes).oob_decision_function_
    seen = ~np.isnan(votes).any(axis=1)
    sure = _threshold(votes[seen], classes[seen], common)
    votes = forest.predict_proba(forest_features(asked))
    best = np.where(votes.max(axis=1) >= sure, forest.classes_[votes.argmax(axis=1)], common)
    found: Floats = guess[best]
    return found


def _fitted(forest: Any, known: Mixed, classes: Codes) -> Any:
    with warnings.catch_warnings():
        # Rows that are in every bag are left out; a secret of many labels in few rows is what it is.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="sklearn")
        return forest.fit(forest_features(known), classes)


def _threshold(votes: Floats, classes: Codes, common: int) -> float:
    """Share of votes from which the forest is asked; infinite for never.

    Args:
        votes: out of bag, shape (n, k). classes: positions of the columns of ``votes``, shape (n,).
    """
    if not len(votes):
        return np.inf
    sureness = votes.max(axis=1)
    right, plain = votes.argmax(axis=1) == classes, classes == common
    limits = [*np.quantile(sureness, _LEVELS[:-1]), np.inf]
    rightly = [np.where(sureness >= limit, right, plain).mean() for limit in limits]
    return float(limits[int(np.argmax(rightly))])
