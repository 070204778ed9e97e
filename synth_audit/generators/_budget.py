"""What a generator's budget buys: gradient steps, and tables of counts chosen and measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Positions
from synth_audit.plugins.generator import FitContext

_FEWEST = 64
"""Rows of a batch without protection, where there are as many."""

UNPAID_STEPS = "the plan declares no privacy budget, so it was trained without clipping and noise"

UNPAID_COUNTS = "the plan declares no privacy budget, so rows were counted without noise"


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
class Paid:
    """What counting and choosing was paid for; None for neither, where nothing was bought.

    Attributes:
        noise: of a table of counts, whose sensitivity is 1. choice: ε of one choice.
    """

    noise: float | None = None
    choice: float | None = None
