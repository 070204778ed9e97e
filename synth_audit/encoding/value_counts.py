"""Noisy counts of the values of single columns: what a share of the budget buys before anything is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from synth_audit.core.arrays import Floats
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext
from synth_audit.core.private_steps import part_of_budget
from synth_audit.kernels.private_margins import Noisy

_WHAT = "counts of the values of each column"

_ABOVE = 3.0
"""Standard deviations of the noise from which a count is told from none."""

_SOME, _SHARE = 10.0, 0.005
"""Rows, and share of them, from which on cells are divided where nothing is noised."""


@dataclass(frozen=True)
class Counting:
    """How counts are noised, and how many rows are told from noise."""

    noisy: Noisy
    least: float


def check_part(share: float) -> None:
    """Refuse a share that leaves nothing.

    Raises:
        PlanError: it is below 0, or 1 or more.
    """
    if not 0 <= share < 1:
        raise PlanError(
            "the share is no part of the budget", where="generator.margins", expected="0 to below 1"
        )


def bought_counts(
    context: FitContext, n_rows: int, queries: int, share: float, *, pure: bool = False
) -> Counting:
    """So many queries of sensitivity 1, all bought before the first is made; without a budget no noise.

    Under a budget they are Gaussian mechanisms, or Laplace's where δ is 0.

    Args:
        share: of ε, for all queries together.
        pure: Laplace's whatever δ is.

    Raises:
        BudgetSpent: the budget does not bear it.
    """
    accountant = context.accountant
    if accountant.budget is None:
        return Counting(_as_it_is, max(_SOME, _SHARE * n_rows))
    reach = part_of_budget(share, context)
    if pure or accountant.budget.delta == 0:
        scale = accountant.least_laplace_noise(queries, epsilon=reach)
        accountant.laplace(scale, what=_WHAT, count=queries)
        return Counting(_noised(context.noise.laplace, scale), _ABOVE * 2**0.5 * scale)
    scale = accountant.least_noise(steps=queries, epsilon=reach)
    accountant.gaussian(scale, what=_WHAT, count=queries)
    return Counting(_noised(context.noise.gaussian, scale), _ABOVE * scale)


def _as_it_is(counts: Floats) -> Floats:
    return counts


def _noised(noise: Callable[[float, tuple[int, ...]], Floats], scale: float) -> Noisy:
    return lambda counts: counts + noise(scale, counts.shape)
