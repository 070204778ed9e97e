"""A share of zero-concentrated privacy is never overdrawn, and costs what dp-accounting says."""

from __future__ import annotations

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting import rdp

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.composition import ConcentratedFilter
from synth_audit.dp.guarantee import Budget, Neighbouring, Unit
from synth_audit.errors import BudgetSpent


def accountant(epsilon=1.0, **terms):
    return Accountant(Budget(epsilon, 1e-5), **{"unit": Unit.ROW} | terms)


def test_what_is_refused_is_not_counted():
    share = ConcentratedFilter(0.5)
    share.gaussian(2.0)
    share.exponential(1.0)
    with pytest.raises(BudgetSpent):
        share.gaussian(1.0)
    assert share.left == pytest.approx(0.25)
    assert share.used == pytest.approx(0.5)
    share.gaussian((2 * share.left) ** -0.5)
    assert share.left == pytest.approx(0, abs=1e-8)
    with pytest.raises(BudgetSpent):
        share.exponential(0.01)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_mechanisms_that_fill_a_share_stay_within_the_budget_by_dp_accounting(epsilon):
    handed = accountant(epsilon)
    rho = handed.most_concentrated()
    handed.concentrated(rho, what="rounds")
    rng, share, events = np.random.default_rng(0), ConcentratedFilter(rho), []
    while share.left > 1e-3 * rho:
        cost = min(share.left, rho * rng.uniform(0.01, 0.1))
        share.gaussian((2 * cost) ** -0.5)
        events.append(dp.GaussianDpEvent((2 * cost) ** -0.5))
    found = rdp.RdpAccountant().compose(dp.ComposedDpEvent(events)).get_epsilon(1e-5)
    assert 0.97 * epsilon < found <= epsilon
    assert found <= handed.spent().epsilon <= epsilon


def test_several_rows_cost_the_square_of_their_number():
    one = accountant().most_concentrated()
    three = accountant(unit=Unit.ENTITY, rows=3).most_concentrated()
    replaced = accountant(neighbouring=Neighbouring.REPLACE).most_concentrated()
    assert one / three == pytest.approx(9, rel=0.02)
    assert one / replaced == pytest.approx(4, rel=0.02)


def test_a_budget_without_delta_bears_none_and_the_guarantee_says_how_it_was_shared():
    with pytest.raises(BudgetSpent):
        Accountant(Budget(1.0), unit=Unit.ROW).most_concentrated()
    handed = accountant()
    handed.concentrated(handed.most_concentrated(), what="rounds")
    handed.draws(5)
    handed.domain("declared")
    assert any("Feldman" in text for text in handed.guarantee().assumptions)
