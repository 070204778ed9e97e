"""One iteration of the attribute game: a reference sample, a fit, its sets, and what is learned from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits._targets import most_isolated
from synth_audit.audits.privacy._attribute_secrets import FEWEST_SCORED, FOLDS, STREAM, DesignMatrix, Secret
from synth_audit.dp.guarantee import PrivacyGuarantee
from synth_audit.encode.facets import facets
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.execution.seeds import as_int_seed
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.fitting import FitRecipe, draw, fit_shared
from synth_audit.stats.regression import Regression, Scaling, correlation, signed_r_squared
from synth_audit.stats.resampling import iteration_rng, reference_rows
from synth_audit.table.table import Table

TARGETS = 4
"""Targets of either kind in each iteration, as in the paper."""

_MOST_SCORED = 2_000
"""Rows that the guesses of one iteration are scored on."""


@dataclass(frozen=True)
class FittedAttack:
    """What regressions of a secret, and of shuffled copies of it, found in one set.

    Attributes:
        sizes: of the effect of each other column, on the secret first and then on each copy, shape (g, k).
        r_squared: adjusted, shape (k,). coefficients: for the secret itself, shape (q, c).
        singular: True when the other columns were collinear or constant.
    """

    sizes: Floats
    r_squared: Floats
    coefficients: Floats
    singular: bool

    @classmethod
    def of(cls, standardised: Floats, secret: Secret, answers: Sequence[Floats]) -> FittedAttack:
        """Regress each of ``answers``, shape (n, c), on the secret's predictors in this set, shape (n, p)."""
        known, n, c = standardised[:, secret.predictors], len(standardised), len(secret.responses)
        regression = Regression.on(correlation(known), secret.groups, n)
        with_answers = known.T @ np.hstack(answers) / max(n - 1, 1)
        beta = regression.coefficients(with_answers)
        sizes = regression.effects(beta).reshape(-1, len(answers), c) @ secret.weights
        # Fewer rows that hold the secret than predictors explain nothing that could be told from chance.
        r_squared = np.nan_to_num(regression.adjusted_r_squared(beta, with_answers), nan=0.0)
        explained = r_squared.reshape(-1, c) @ secret.weights
        return cls(sizes, explained, beta[:, :c], regression.singular)

    @classmethod
    def of_rows(
        cls, values: Floats, present: Bools, secret: Secret, rng: np.random.Generator | None = None
    ) -> FittedAttack:
        """Learn from the encoded rows, shape (n, p), that hold the secret; from a copy that ``rng`` shuffled
        too."""
        z = Scaling.of(values[present]).apply(values[present])
        answer = z[:, secret.responses]
        return cls.of(z, secret, [answer] if rng is None else [answer, rng.permutation(answer)])


@dataclass(frozen=True)
class GuessTest:
    """Real people whose secret is guessed, standardised by who holds them: shapes (n, q) and (n, c).

    Attributes:
        folds: of these people where they are the reference rows themselves, shape (n,); None where they are
            others.
        inside: known values and secrets of the reference rows, standardised as these people; None where they
            are the reference rows themselves.
    """

    known: Floats
    truth: Floats
    weights: Floats
    folds: Codes | None = None
    inside: tuple[Floats, Floats] | None = None

    @classmethod
    def on(cls, values: Floats, present: Bools, secret: Secret, folds: Codes | None = None) -> GuessTest:
        """Those of the encoded rows that hold the secret."""
        z = Scaling.of(values[present]).apply(values[present])
        own = None if folds is None else folds[present]
        return cls(z[:, secret.predictors], z[:, secret.responses], secret.weights, own)

    @classmethod
    def beside(
        cls, values: Floats, present: Bools, reference: Floats, held: Bools, secret: Secret
    ) -> GuessTest:
        """Those of the encoded rows outside the reference that hold the secret, and of the reference."""
        scaling = Scaling.of(values[present])
        test = cls.on(values, present, secret)
        z = scaling.apply(reference[held])
        return replace(test, inside=(z[:, secret.predictors], z[:, secret.responses]))

    def advantage(self, learnt: FittedAttack) -> float:
        """How much more often a guess comes nearer than the mean for reference rows than for others.

        NaN where the people are the reference rows themselves.
        """
        if self.inside is None:
            return math.nan
        inside, outside = (
            float(
                np.mean((known @ learnt.coefficients - truth) ** 2 @ self.weights < truth**2 @ self.weights)
            )
            for known, truth in (self.inside, (self.known, self.truth))
        )
        return inside - outside

    def skill(self, learnt: FittedAttack) -> float:
        """Signed squared correlation of guesses ``Σ β_k x_k`` with the secret, weighted over its labels."""
        return self._score(self.known @ learnt.coefficients)

    def taught(self, values: Floats, present: Bools, secret: Secret) -> float:
        """Skill of what the encoded reference rows teach.

        Where they are scored themselves, each fold is guessed by what the others teach: coefficients fitted
        to a row look too good there, and those of a release too harmless beside them.
        """
        if self.folds is None:
            return self.skill(FittedAttack.of_rows(values, present, secret))
        guesses = np.zeros_like(self.truth)
        for fold in np.unique(self.folds):
            own = self.folds == fold
            learnt = FittedAttack.of_rows(values[present], ~own, secret)
            guesses[own] = self.known[own] @ learnt.coefficients
        return self._score(guesses)

    def _score(self, guesses: Floats) -> float:
        return float(signed_r_squared(guesses, self.truth) @ self.weights)


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
        outlying, usual, isolated: guesses at targets; None without one.
        singular: sets in which the other columns were collinear or constant.
        whole: the reference rows are all of train, or leave too few to score guesses on.
        advantage: how much oftener guesses help with reference rows than with others; NaN where ``whole``.
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
    outlying: Guesses | None
    usual: Guesses | None
    isolated: Guesses | None
    singular: int
    whole: bool
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
    with single_threaded_algebra():  # here, since it holds for one process
        return _played(subject, context, design, secrets, sizes, *turn)


def _played(
    subject: Subject,
    context: RunContext,
    design: DesignMatrix,
    secrets: Sequence[Secret],
    sizes: GameSizes,
    iteration: int,
    rng: np.random.Generator,
) -> list[IterationResult]:
    assert subject.generator is not None
    shared = iteration_rng(context.seed, STREAM, iteration)
    rows = reference_rows(subject.train.n_rows, (), sizes.reference, shared)
    reference = subject.train.released_only().take(rows)
    fitted = fit_shared(FitRecipe.of(subject), reference, as_int_seed(shared), context)
    values = design.encode(reference)
    present = [design.present(reference, secret.name) for secret in secrets]
    targets = [_targets(reference, secret, sizes, shared) for secret in secrets]
    real = _taught_by_real(values, present, secrets, sizes, shared)
    tests = _guess_tests(subject.train, design, secrets, rows, (values, present), shared)
    learnt: list[list[FittedAttack]] = [[] for _ in secrets]
    for _ in range(sizes.sets):
        drawn = draw(fitted.model, sizes.rows, reference.schema, rng)
        made = design.encode(drawn)
        for found, secret in zip(learnt, secrets, strict=True):
            found.append(FittedAttack.of_rows(made, design.present(drawn, secret.name), secret, rng))
    held = Scaling.of(values).apply(values)
    return [
        _result(
            learnt[j],
            real[j],
            [_guessed(learnt[j], real[j], secret, held[t], rows[t]) for t in targets[j]],
            tests[j],
            tests[j].taught(values, present[j], secret),
            fitted.guarantee,
        )
        for j, secret in enumerate(secrets)
    ]


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
    present = [design.present(table, secret.name) for secret in secrets]
    if outside:
        known = zip(present, reference[1], secrets, strict=True)
        return [GuessTest.beside(values, there, reference[0], held, secret) for there, held, secret in known]
    folds = rng.permutation(len(rows)) % FOLDS
    return [GuessTest.on(values, there, s, folds) for there, s in zip(present, secrets, strict=True)]


def _taught_by_real(
    values: Floats,
    present: Sequence[Bools],
    secrets: Sequence[Secret],
    sizes: GameSizes,
    rng: np.random.Generator,
) -> list[list[FittedAttack]]:
    """For each secret what is learnt from as many real sets, drawn from the reference with replacement."""
    learnt: list[list[FittedAttack]] = [[] for _ in secrets]
    for _ in range(sizes.sets):
        drawn = rng.integers(len(values), size=sizes.rows)
        for found, there, secret in zip(learnt, present, secrets, strict=True):
            found.append(FittedAttack.of_rows(values[drawn], there[drawn], secret))
    return learnt


def _targets(reference: Table, secret: Secret, sizes: GameSizes, rng: np.random.Generator) -> list[Positions]:
    """Positions in the reference of outlying, of random and of isolated targets; none lacks its secret."""
    column = reference.schema[secret.name]
    known = ~reference.missing(secret.name)
    extreme = facets(column).outlying(reference, column, sizes.tail)
    present = np.flatnonzero(known)
    drawn = [np.sort(rng.choice(rows, min(TARGETS, len(rows)), replace=False)) for rows in (extreme, present)]
    if not sizes.achilles:
        return [*drawn, np.empty(0, dtype=np.intp)]
    features = reference.schema.features
    return [*drawn, most_isolated(reference, features, present, TARGETS, rng)]


def _guessed(
    learnt: Sequence[FittedAttack],
    real: Sequence[FittedAttack],
    secret: Secret,
    targets: Floats,
    rows: Positions,
) -> Guesses | None:
    """Guess the secret of targets, standardised by the data holder, shape (t, p), from each set."""
    if not len(targets):
        return None
    truth = targets[:, secret.responses]

    def error(attacks: Sequence[FittedAttack]) -> float:
        guesses = (targets[:, secret.predictors] @ found.coefficients for found in attacks)
        return float(np.mean([np.mean((guess - truth) ** 2 @ secret.weights) for guess in guesses]))

    unaided = float(np.mean(truth**2 @ secret.weights))
    return Guesses(error(learnt), unaided, error(real), tuple(rows.tolist()))


def _result(
    learnt: Sequence[FittedAttack],
    real: Sequence[FittedAttack],
    guesses: Sequence[Guesses | None],
    test: GuessTest,
    real_skill: float,
    guarantee: PrivacyGuarantee | None,
) -> IterationResult:
    mab, chance = np.mean([found.sizes.mean(axis=0) for found in learnt], axis=0)
    return IterationResult(
        mab=float(mab),
        chance=float(chance),
        worst=max(float(found.sizes[:, 0].max()) for found in learnt),
        r_squared=float(np.mean([found.r_squared[0] for found in learnt])),
        real_mab=float(np.mean([found.sizes[:, 0].mean() for found in real])),
        real_r_squared=float(np.mean([found.r_squared[0] for found in real])),
        skill=float(np.mean([test.skill(found) for found in learnt])),
        real_skill=real_skill,
        outlying=guesses[0],
        usual=guesses[1],
        isolated=guesses[2],
        singular=sum(found.singular for found in learnt),
        whole=test.folds is not None,
        advantage=float(np.mean([test.advantage(found) for found in learnt])),
        guarantee=guarantee,
    )
