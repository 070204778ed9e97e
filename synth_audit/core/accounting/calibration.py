"""The least noise that keeps within a budget, rounded up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from synth_audit.core.accounting.composition import COARSE, by_basic, by_gaussian_curve, by_pld, by_rdp
from synth_audit.core.accounting.guarantee import Budget, Mechanism, MechanismRecord, Neighbouring
from synth_audit.core.errors import BudgetSpent

_STEP = 2e-3  # relative; the coarse grid of losses costs a little more
_LEAST, _MOST = 0.01, 1e5


def least_noise(
    budget: Budget,
    *,
    sampling_rate: float = 1.0,
    steps: int = 1,
    rows: int = 1,
    before: Sequence[MechanismRecord] = (),
    neighbouring: Neighbouring = Neighbouring.ADD_OR_REMOVE,
    mechanism: Mechanism = Mechanism.GAUSSIAN,
) -> float:
    """The smallest noise multiplier, to a percent, with which ``steps`` Gaussian steps fit the budget.

    Epsilon falls with noise, so a bisection over geometric means finds it; what it returns has been checked
    to fit.

    Args:
        sampling_rate: of Poisson sampling; 1 for none.
        rows: the most rows one unit contributes.
        before: what was spent from the same budget already.
        mechanism: gaussian, of which Poisson sampling makes the sampled one; laplace, over all rows, which
            needs no delta; or zero-concentrated.

    Returns:
        Standard deviation over the largest L2 norm of one row's contribution, or scale over the largest L1
        norm; at least 0.01.

    Raises:
        BudgetSpent: no noise is enough, because nothing is left or delta is 0.
    """
    kind = Mechanism.POISSON_SUBSAMPLED_GAUSSIAN if sampling_rate < 1 else mechanism
    laplace = kind is Mechanism.LAPLACE
    noise = _least_noise(budget, kind, sampling_rate, steps, rows, tuple(before), neighbouring)
    if noise is None:
        law = "Laplace" if laplace else "Gaussian"
        raise BudgetSpent(
            f"no amount of {law} noise fits what is left of the privacy budget",
            where=f"epsilon {budget.epsilon:g}, delta {budget.delta:g}, {steps:,} steps",
            expected=f"a budget{'' if laplace else ' with delta above 0'} of which something is left",
            fix="declare a larger budget, or take fewer steps",
        )
    return noise


@cache  # seconds each, and a sweep asks the same for every seed
def _least_noise(
    budget: Budget,
    kind: Mechanism,
    rate: float,
    steps: int,
    rows: int,
    before: tuple[MechanismRecord, ...],
    neighbouring: Neighbouring,
) -> float | None:
    """None where no noise is enough."""
    sampled = rate if kind is Mechanism.POISSON_SUBSAMPLED_GAUSSIAN else None
    refused = 0.0  # by the Rényi sum, which then refuses all that is less: it need not be asked

    def enough(noise: float) -> bool:
        nonlocal refused
        step = MechanismRecord(
            what="-", mechanism=kind, noise_multiplier=noise, sampling_rate=sampled, count=steps, rows=rows
        )
        records = (*before, step)
        if by_basic(records, budget.delta, neighbouring).epsilon <= budget.epsilon:
            return True
        if budget.delta == 0:
            return False
        if (exact := by_gaussian_curve(records, budget.delta, neighbouring)) is not None:
            return exact.epsilon <= budget.epsilon
        if noise > refused:
            if by_rdp(records, budget.delta, neighbouring).epsilon <= budget.epsilon:
                return True
            refused = noise
        # The finest grid would at best find a percent less.
        return by_pld(records, budget.delta, neighbouring, grid=COARSE).epsilon <= budget.epsilon

    low, high = _LEAST, 1.0
    while not enough(high):
        low, high = high, 4 * high
        if high > _MOST:
            return None
    while high / low > 1 + _STEP:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
