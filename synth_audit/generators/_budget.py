"""What a generator's budget buys: gradient steps, and tables of counts chosen and measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Positions
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import BudgetSpent
from synth_audit.plugins.generator import FitContext

_FEWEST = 64
"""Rows of a batch without protection, where there are as many."""

UNPAID_STEPS = "the plan declares no privacy budget, so it was trained without clipping and noise"

UNPAID_COUNTS = "the plan declares no privacy budget, so rows were counted without noise"

_ROUNDED = 1 - 1e-9  # sums of floats must not exceed the budget

_MOST_EPSILON, _LEAST_SCALE = 999.0, 1.001e-3
"""Beyond them nothing can be accounted for, and noise is nothing beside a count of 1."""


@dataclass(frozen=True)
class Steps:
    """Steps over random batches of ``n_rows`` rows.

    Attributes:
        count: how many. rate: the chance of each row to be in a batch.
        noise_multiplier: of every step, over the clipping norm; None where nothing was bought.
    """

    n_rows: int
    count: int
    rate: float
    noise_multiplier: float | None
    context: FitContext

    def batch(self) -> Positions:
        """Rows of the next batch: by a secret coin for each row, or without protection a seeded share."""
        if self.noise_multiplier is not None:
            return self.context.noise.poisson_sample(self.n_rows, self.rate)
        size = min(self.n_rows, max(_FEWEST, round(self.rate * self.n_rows)))
        return np.sort(self.context.rng.choice(self.n_rows, size, replace=False))


def bought(
    context: FitContext, n_rows: int, *, count: int, rate: float, what: str, epsilon: float | None = None
) -> Steps:
    """Buy ``count`` steps over Poisson samples, with the least noise that the budget bears.

    Number, rate and noise are fixed before the first step, so that what is spent is what was debited. Without
    a declared budget nothing is bought, and the accountant is told that nothing can be claimed.

    Args:
        what: what the steps train, for a reader.
        epsilon: how much all spendings up to and with these may reach; the whole budget if left out.

    Raises:
        BudgetSpent: no noise is enough.
    """
    accountant = context.accountant
    if accountant.budget is None:
        accountant.void(UNPAID_STEPS)
        return Steps(n_rows, count, rate, None, context)
    noise = accountant.least_noise(sampling_rate=rate, steps=count, epsilon=epsilon)
    accountant.poisson_subsampled_gaussian(rate, noise, count, what=what)
    return Steps(n_rows, count, rate, noise, context)


def part_of_budget(share: float, context: FitContext) -> float | None:
    """The ε that all spendings may reach with ``share`` of what is left; None without a budget."""
    accountant = context.accountant
    if accountant.budget is None:
        return None
    before = accountant.spent().epsilon if accountant.mechanisms else 0.0
    return before + share * (accountant.budget.epsilon - before)


@dataclass(frozen=True)
class PureShares:
    """What one mechanism of either kind may cost, for one row added or removed.

    Attributes:
        choice: ε of one choice.
        scale: of the Laplace noise of one table of counts, whose L1 sensitivity is 1.
    """

    choice: float
    scale: float


def pure_shares(accountant: Accountant, *, choices: int, tables: int, share: float) -> PureShares:
    """Divide what is left of ε: ``share`` for all choices, the rest for all tables, by basic composition.

    Raises:
        BudgetSpent: nothing is left.
    """
    assert accountant.budget is not None
    # Additions and removals of a row between neighbours.
    changes = accountant.rows * (2 if accountant.neighbouring is Neighbouring.REPLACE else 1)
    left = (accountant.budget.epsilon - accountant.spent().epsilon) * _ROUNDED / changes
    if left <= 0:
        raise BudgetSpent(
            "nothing is left of the privacy budget", where="epsilon", expected="epsilon above 0"
        )
    for_choices = left * share if choices else 0.0
    choice = min(for_choices / max(choices, 1), _MOST_EPSILON)
    return PureShares(choice, max(tables / (left - for_choices), _LEAST_SCALE))
