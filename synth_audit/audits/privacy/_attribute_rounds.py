"""One iteration of the attribute game: a reference sample, a fit, its sets, and what is learnt from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.audits.privacy._attribute_design import Design, Secret
from synth_audit.core.fitting import fit_shared
from synth_audit.core.seeds import as_int_seed, child_rng
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels.encode import codes
from synth_audit.kernels.games import iteration_rng, outlying, rarest, reference_rows
from synth_audit.kernels.linear import Regression, Scaling, correlation

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]

NAME = "attribute_game"
TARGETS = 4
"""Targets of either kind in each iteration, as in the paper."""

_MOST_TESTED = 10_000
"""Training rows that are looked at to see whether a secret is associated with anything at all."""


@dataclass(frozen=True)
class Sizes:
    """How large the game is: rows of the reference sample, sets, rows of a set, share of outlying rows."""

    reference: int
    sets: int
    rows: int
    tail: float


@dataclass(frozen=True)
class Learnt:
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
    def of(cls, standardised: Floats, secret: Secret, answers: Sequence[Floats]) -> Learnt:
        """Regress each of ``answers``, shape (n, c), on the secret's predictors in this set, shape (n, p)."""
        known, n, c = standardised[:, secret.predictors], len(standardised), len(secret.responses)
        regression = Regression.on(correlation(known), secret.groups, n)
        with_answers = known.T @ np.hstack(answers) / max(n - 1, 1)
        beta = regression.coefficients(with_answers)
        sizes = regression.effects(beta).reshape(-1, len(answers), c) @ secret.weights
        explained = regression.adjusted_r_squared(beta, with_answers).reshape(-1, c) @ secret.weights
        return cls(sizes, explained, beta[:, :c], regression.singular)


@dataclass(frozen=True)
class Guesses:
    """Squared errors at some targets of one iteration, in standard deviations of the real secret.

    Attributes:
        error: mean over targets and sets. unaided: of an attacker who guesses the mean.
        rows: positions of the targets in train.
    """

    error: float
    unaided: float
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """One secret in one iteration; means over its sets.

    Attributes:
        mab: mean size of effects. chance: the same with the secret shuffled within each set.
        worst: the largest size in any set. r_squared: adjusted.
        real_mab, real_r_squared: in sets drawn from the reference rows with replacement.
        unrelated: the latter when the secret was shuffled among the reference rows first, so that no more
            than the chance associations of so few rows are left.
        outlying, usual: guesses at targets; None without one.
        singular: sets in which the other columns were collinear or constant.
    """

    mab: float
    chance: float
    worst: float
    r_squared: float
    real_mab: float
    real_r_squared: float
    unrelated: float
    outlying: Guesses | None
    usual: Guesses | None
    singular: int


def play(
    subject: Subject,
    design: Design,
    secrets: Sequence[Secret],
    sizes: Sizes,
    iteration: int,
    rng: np.random.Generator,
) -> list[Round]:
    """One round for each secret.

    What the attacker has, fit included, depends on the plan's seed and the iteration alone, so that the
    candidates of a sweep meet the same reference rows; only the sets are drawn from ``rng``.
    """
    assert subject.generator is not None
    shared = iteration_rng(subject.seed, NAME, iteration)
    rows = reference_rows(subject.train.n_rows, (), sizes.reference, shared)
    reference = subject.train.released_only().take(rows)
    model = fit_shared(subject.generator, reference, as_int_seed(shared), subject.cache)
    values = design.encode(reference)
    targets = [_targets(reference, secret, sizes.tail, shared) for secret in secrets]
    yardsticks = _yardsticks(values, secrets, sizes, shared)
    learnt: list[list[Learnt]] = [[] for _ in secrets]
    for _ in range(sizes.sets):
        made = design.encode(model.sample(sizes.rows, rng))
        made = Scaling.of(made).apply(made)
        for found, secret in zip(learnt, secrets, strict=True):
            answer = made[:, secret.responses]
            found.append(Learnt.of(made, secret, [answer, rng.permutation(answer)]))
    held = Scaling.of(values).apply(values)
    return [
        _round(found, yardstick, [_guessed(found, secret, held[t], rows[t]) for t in chosen])
        for found, secret, yardstick, chosen in zip(learnt, secrets, yardsticks, targets, strict=True)
    ]


def associated(subject: Subject, design: Design, secret: Secret) -> bool:
    """True when the other columns tell more of the secret in train than chance would, by a permutation test.

    ``p = (1 + #{R² of the shuffled secret ≥ R²}) / (1 + #shuffles) ≤ 1 − level``.
    """
    rng = child_rng(subject.seed, NAME, "association", secret.name)
    rows = reference_rows(subject.train.n_rows, (), _MOST_TESTED, rng)
    values = design.encode(subject.train.take(rows))
    z = Scaling.of(values).apply(values)
    answer = z[:, secret.responses]
    shuffles = round(10 / (1 - subject.level)) - 1
    regression = Regression.on(correlation(z[:, secret.predictors]), secret.groups, len(z))
    known = z[:, secret.predictors] / max(len(z) - 1, 1)
    found = [
        float((regression.coefficients(r) * r).sum(axis=0) @ secret.weights)
        for y in (answer, *(rng.permutation(answer) for _ in range(shuffles)))
        for r in (known.T @ y,)
    ]
    observed, *others = np.round(found, 12)
    return bool((1 + np.sum(np.array(others) >= observed)) / (1 + shuffles) <= 1 - subject.level + 1e-12)


def _yardsticks(
    values: Floats, secrets: Sequence[Secret], sizes: Sizes, rng: np.random.Generator
) -> list[tuple[float, float, float]]:
    """For each secret in real sets: the mean size of effects, R², and R² when it was shuffled before."""
    found = np.empty((sizes.sets, len(secrets), 3))
    for i in range(sizes.sets):
        drawn = rng.integers(len(values), size=sizes.rows)
        z = Scaling.of(values[drawn]).apply(values[drawn])
        for j, secret in enumerate(secrets):
            before = values[rng.permutation(len(values))[drawn]][:, secret.responses]
            answers = [z[:, secret.responses], Scaling.of(before).apply(before)]
            learnt = Learnt.of(z, secret, answers)
            found[i, j] = learnt.sizes[:, 0].mean(), *learnt.r_squared
    return [(float(a), float(b), float(c)) for a, b, c in found.mean(axis=0)]


def _targets(reference: Table, secret: Secret, tail: float, rng: np.random.Generator) -> list[Positions]:
    """Positions in the reference of outlying and of random targets; none lacks its secret."""
    column = reference.schema[secret.name]
    if column.kind.numeric:
        values = reference.numbers(secret.name)
        known, extreme = ~np.isnan(values), outlying(values, tail)
    else:
        [labels] = codes([reference], column)
        known, extreme = labels >= 0, rarest(labels, tail)
    return [
        np.sort(rng.choice(rows, min(TARGETS, len(rows)), replace=False))
        for rows in (extreme, np.flatnonzero(known))
    ]


def _guessed(learnt: Sequence[Learnt], secret: Secret, targets: Floats, rows: Positions) -> Guesses | None:
    """Guess the secret of targets, standardised by the data holder, shape (t, p), from each set."""
    if not len(targets):
        return None
    truth = targets[:, secret.responses]
    guesses = [targets[:, secret.predictors] @ found.coefficients for found in learnt]
    errors = [float(np.mean((guess - truth) ** 2 @ secret.weights)) for guess in guesses]
    return Guesses(float(np.mean(errors)), float(np.mean(truth**2 @ secret.weights)), tuple(rows.tolist()))


def _round(
    learnt: Sequence[Learnt], yardstick: tuple[float, float, float], guesses: Sequence[Guesses | None]
) -> Round:
    mab, chance = np.mean([found.sizes.mean(axis=0) for found in learnt], axis=0)
    return Round(
        mab=float(mab),
        chance=float(chance),
        worst=max(float(found.sizes[:, 0].max()) for found in learnt),
        r_squared=float(np.mean([found.r_squared[0] for found in learnt])),
        real_mab=yardstick[0],
        real_r_squared=yardstick[1],
        unrelated=yardstick[2],
        outlying=guesses[0],
        usual=guesses[1],
        singular=sum(found.singular for found in learnt),
    )
