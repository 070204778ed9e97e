"""What regressions learn of a secret from one set, and what their guesses are worth for real people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.audits.privacy._attribute_design import Secret
from synth_audit.core.arrays import Bools, Codes, Floats
from synth_audit.kernels.linear import Regression, Scaling, correlation, signed_r_squared


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
