"""How a generator that chooses tables of counts and measures them divides its budget."""

from __future__ import annotations

from dataclasses import dataclass

from synth_audit.core.accounting.accountant import Accountant
from synth_audit.core.accounting.guarantee import Neighbouring
from synth_audit.core.errors import BudgetSpent

UNPAID = "the plan declares no privacy budget, so rows were counted without noise"

_ROUNDED = 1 - 1e-9  # sums of floats must not exceed the budget
_MOST_EPSILON, _LEAST_SCALE = 999.0, 1.001e-3
"""Beyond them nothing can be accounted for, and noise is nothing beside a count of 1."""


@dataclass(frozen=True)
class PureShares:
    """What one mechanism of either kind may cost, for one row added or removed.

    Attributes:
        choice: ε of one choice.
        scale: of the Laplace noise of one table of counts, whose L1 sensitivity is 1.
    """

    choice: float
    scale: float


def rows_that_differ(accountant: Accountant) -> int:
    """How many additions or removals of a row there are between neighbours."""
    return accountant.rows * (2 if accountant.neighbouring is Neighbouring.REPLACE else 1)


def pure_shares(accountant: Accountant, *, choices: int, tables: int, share: float) -> PureShares:
    """Divide what is left of ε: ``share`` for all choices, the rest for all tables, by basic composition.

    Raises:
        BudgetSpent: nothing is left.
    """
    assert accountant.budget is not None
    left = (accountant.budget.epsilon - accountant.spent().epsilon) * _ROUNDED / rows_that_differ(accountant)
    if left <= 0:
        raise BudgetSpent(
            "nothing is left of the privacy budget", where="epsilon", expected="epsilon above 0"
        )
    for_choices = left * share if choices else 0.0
    choice = min(for_choices / max(choices, 1), _MOST_EPSILON)
    return PureShares(choice, max(tables / (left - for_choices), _LEAST_SCALE))
