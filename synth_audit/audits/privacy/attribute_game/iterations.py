"""One iteration of the attribute game: a reference sample, a fit, its sets, and what is learned from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits._targets import most_isolated
from synth_audit.audits.privacy._attribute_secrets import (
    FEWEST_SCORED,
    FOLDS,
    STREAM,
    DesignMatrix,
    Secret,
    SecretRows,
)
from synth_audit.dp.guarantee import PrivacyGuarantee
from synth_audit.encode.univariate import outlying_rows
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.execution.seeds import as_int_seed, child_rng
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.fitting import FitRecipe, draw, fit_shared
from synth_audit.stats.regression import Regression, Scaling, correlation
from synth_audit.stats.resampling import reference_rows
from synth_audit.table.table import Table

TARGETS = 4
"""Targets of either kind in each iteration, as in the paper."""

_MOST_SCORED = 2_000
"""Rows that the guesses of one iteration are scored on."""


@dataclass(frozen=True)
class FittedAttack:
    """What regressions of a secret, and of a shuffled copy of it, found in one set.

    Attributes:
        sizes: of the effect of each other column, on the secret first and then on the copy, shape (g, k).
        r_squared: adjusted, of the secret. coefficients: for it, shape (q, c).
        singular: True when the other columns were collinear or constant.
    """

    sizes: Floats
    r_squared: float
    coefficients: Floats
    singular: bool

    @classmethod
    def learnt(cls, rows: SecretRows, secret: Secret, rng: np.random.Generator | None = None) -> FittedAttack:
        """Regress the secret in rows standardised by one another, and a copy that ``rng`` shuffled, on its
        predictors."""
        known, answers = rows.known, [rows.answers]
        if rng is not None:
            answers.append(rng.permutation(rows.answers))
        c = rows.answers.shape[1]
        regression = Regression.on(correlation(known), secret.groups, len(known))
        with_answers = known.T @ np.hstack(answers) / max(len(known) - 1, 1)
        beta = regression.coefficients(with_answers)
        sizes = regression.effects(beta).reshape(-1, len(answers), c) @ rows.weights
        # Fewer rows that hold the secret than predictors explain nothing that could be told from chance.
        r_squared = np.nan_to_num(regression.adjusted_r_squared(beta, with_answers), nan=0.0)
        return cls(sizes, float(r_squared[:c] @ rows.weights), beta[:, :c], regression.singular)

    def guess(self, rows: SecretRows) -> Floats:
        """``Σ β_k x_k``, shape (n, c)."""
        guesses: Floats = rows.known @ self.coefficients
        return guesses

    def errors(self, rows: SecretRows) -> Floats:
        """Squared errors of the guesses, weighted over the answers, shape (n,)."""
        errors: Floats = (self.guess(rows) - rows.answers) ** 2 @ rows.weights
        return errors


@dataclass(frozen=True)
class GuessTest:
    """Real people whose secret is guessed, standardised by who holds them.

    Attributes:
        folds: of these people where they are the reference rows themselves, shape (n,); None where they are
            others.
        inside: the reference rows, standardised as these people; None where they are the reference rows.
    """

    people: SecretRows
    folds: Codes | None = None
    inside: SecretRows | None = None

    def advantage(self, learnt: FittedAttack) -> float:
        """How much more often a guess comes nearer than the mean for reference rows than for others.

        NaN where the people are the reference rows themselves.
        """
        if self.inside is None:
            return math.nan
        inside, outside = (
            float(np.mean(learnt.errors(rows) < rows.answers**2 @ rows.weights))
            for rows in (self.inside, self.people)
        )
        return inside - outside

    def skill(self, learnt: FittedAttack) -> float:
        """Signed squared correlation of guesses with the secret, weighted over its labels."""
        return self.people.skill(learnt.guess(self.people))

    def taught(self, values: Floats, present: Bools, secret: Secret) -> float:
        """Skill of what the encoded reference rows teach; where they are scored themselves, across folds."""
        held = values[present]  # a missing value is read as the mean of those who teach
        guesses = self.people.cross_fitted(
            lambda some: FittedAttack.learnt(SecretRows.of(held, some, secret), secret).guess, self.folds
        )
        return self.people.skill(guesses)


@dataclass(frozen=True)
class GameSizes:
    """How large the game is: rows of the reference sample, sets, rows of a set, share of outlying rows, and
    whether the most isolated rows are targets too."""

    reference: int
    sets: int
    rows: int
    tail: float
    achilles: bool = False


@dataclass(frozen=True)
class Guesses:
    """Squared errors at some targets of one iteration, in standard deviations of the real secret.

    Attributes:
        error: mean over targets and sets. unaided: of an attacker who guesses the mean. real: of one who
            learns from the reference rows themselves, drawn with replacement.
        rows: positions of the targets in train.
    """

    error: float
    unaided: float
    real: float
    rows: tuple[int, ...]


@dataclass(frozen=True)
class IterationResult:
    """One secret in one iteration; means over its sets.

    Attributes:
        mab: mean size of effects. chance: the same with the secret shuffled within each set.
        worst: the largest size in any set. r_squared: adjusted.
        real_mab, real_r_squared: in sets drawn from the reference rows with replacement.
        skill: of guesses at real rows. real_skill: the same, learnt from the reference rows themselves.
        guesses: at targets, by their kind; of kinds that have some.
        singular: sets in which the other columns were collinear or constant.
        advantage: how much oftener guesses help with reference rows than with others; NaN where the reference
            rows are all of train, or leave too few to score guesses on.
        guarantee: what the accountant says of the fit; None for nothing.
    """

    mab: float
    chance: float
    worst: float
    r_squared: float
    real_mab: float
    real_r_squared: float
    skill: float
    real_skill: float
    guesses: Mapping[str, Guesses]
    singular: int
    advantage: float
    guarantee: PrivacyGuarantee | None


def play(
    subject: Subject,
    context: RunContext,
    design: DesignMatrix,
    secrets: Sequence[Secret],
    sizes: GameSizes,
    turn: tuple[int, np.random.Generator],
) -> list[IterationResult]:
    """One result for each secret, in the iteration of that number with that generator.

    What the attacker has, fit included, depends on the plan's seed and the iteration alone, so that the
    candidates of a sweep meet the same reference rows; only the sets are drawn from the generator.
    """
    iteration, rng = turn
    shared = child_rng(context.seed, STREAM, str(iteration))
    rows = reference_rows(subject.train.n_rows, (), sizes.reference, shared)
    reference = subject.train.released_only().take(rows)
    with single_threaded_algebra():  # here, since it holds for one process
        fitted = fit_shared(FitRecipe.of(subject), reference, as_int_seed(shared), context)
        values = design.encode(reference)
        present = [secret.coding.present(reference) for secret in secrets]
        targets = [_targets(reference, secret, sizes, shared) for secret in secrets]
        # As many real sets, drawn from the reference with replacement.
        again = [shared.integers(len(values), size=sizes.rows) for _ in range(sizes.sets)]
        real = [
            [FittedAttack.learnt(SecretRows.of(values[some], held[some], secret), secret) for some in again]
            for held, secret in zip(present, secrets, strict=True)
        ]
        tests = _guess_tests(subject.train, design, secrets, rows, (values, present), shared)
        made: list[list[FittedAttack]] = [[] for _ in secrets]
        for _ in range(sizes.sets):
            table = draw(fitted.model, sizes.rows, reference.schema, rng)
            encoded = design.encode(table)
            for found, secret in zip(made, secrets, strict=True):
                people = SecretRows.of(encoded, secret.coding.present(table), secret)
                found.append(FittedAttack.learnt(people, secret, rng))
        of_holder = Scaling.of(values)
        results = []
        for i, secret in enumerate(secrets):
            guesses = {}
            for kind, chosen in targets[i].items():
                if len(chosen):
                    asked = SecretRows.of(values[chosen], present[i][chosen], secret, of_holder)
                    error, of_real = (
                        float(np.mean([np.mean(attack.errors(asked)) for attack in attacks[i]]))
                        for attacks in (made, real)
                    )
                    unaided = float(np.mean(asked.answers**2 @ asked.weights))
                    guesses[kind] = Guesses(error, unaided, of_real, tuple(rows[chosen].tolist()))
            taught = tests[i].taught(values, present[i], secret)
            results.append(_result(made[i], real[i], guesses, tests[i], taught, fitted.guarantee))
    return results


def _guess_tests(
    train: Table,
    design: DesignMatrix,
    secrets: Sequence[Secret],
    rows: Positions,
    reference: tuple[Floats, Sequence[Bools]],
    rng: np.random.Generator,
) -> list[GuessTest]:
    """Real rows outside the reference sample, or that sample itself where train leaves too few."""
    chosen = reference_rows(train.n_rows, rows, _MOST_SCORED, rng) if len(rows) < train.n_rows else rows[:0]
    outside = len(chosen) >= FEWEST_SCORED
    table = train.take(chosen if outside else rows)
    values = design.encode(table)
    folds = None if outside else rng.permutation(len(rows)) % FOLDS
    tests = []
    for secret, held in zip(secrets, reference[1], strict=True):
        present = secret.coding.present(table)
        people = SecretRows.of(values, present, secret)
        if folds is None:
            inside = SecretRows.of(reference[0], held, secret, Scaling.of(values[present]))
            tests.append(GuessTest(people, inside=inside))
        else:
            tests.append(GuessTest(people, folds[present]))
    return tests


def _targets(
    reference: Table, secret: Secret, sizes: GameSizes, rng: np.random.Generator
) -> dict[str, Positions]:
    """Positions of targets in the reference, by their kind; none lacks its secret."""
    column = reference.schema[secret.name]
    present = np.flatnonzero(~reference.missing(secret.name))
    outlying = outlying_rows(reference, column, sizes.tail)
    found = {
        kind: np.sort(rng.choice(rows, min(TARGETS, len(rows)), replace=False))
        for kind, rows in (("outlying targets", outlying), ("random targets", present))
    }
    if sizes.achilles:
        features = reference.schema.features
        found["achilles targets"] = most_isolated(reference, features, present, TARGETS, rng)
    return found


def _result(
    learnt: Sequence[FittedAttack],
    real: Sequence[FittedAttack],
    guesses: Mapping[str, Guesses],
    test: GuessTest,
    real_skill: float,
    guarantee: PrivacyGuarantee | None,
) -> IterationResult:
    mab, chance = np.mean([found.sizes.mean(axis=0) for found in learnt], axis=0)
    return IterationResult(
        mab=float(mab),
        chance=float(chance),
        worst=max(float(found.sizes[:, 0].max()) for found in learnt),
        r_squared=float(np.mean([found.r_squared for found in learnt])),
        real_mab=float(np.mean([found.sizes[:, 0].mean() for found in real])),
        real_r_squared=float(np.mean([found.r_squared for found in real])),
        skill=float(np.mean([test.skill(found) for found in learnt])),
        real_skill=real_skill,
        guesses=guesses,
        singular=sum(found.singular for found in learnt),
        advantage=float(np.mean([test.advantage(found) for found in learnt])),
        guarantee=guarantee,
    )
