"""A lower bound on ε from claims about secret sides: against slow twins, closed forms, and by redrawing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from synth_audit.stats.epsilon import (
    LARGEST,
    Claims,
    Coins,
    FixedSizes,
    epsilon_at_least,
    epsilon_usual,
    refuted_by,
    wallenius_tail,
)

ALPHA = 0.05
REDRAWS = 1_000
MOST_FALSE = 0.065
"""False bounds of 1,000 redraws at α = 5 %: with more, the level would be refuted at z = 2.2."""


def rate(p, epsilon):
    return p * math.exp(epsilon) / (1 - p + p * math.exp(epsilon))


@pytest.mark.parametrize(
    ("right", "made", "members", "others"), [(30, 40, 60, 50), (7, 9, 5, 30), (3, 3, 3, 4)]
)
def test_the_tail_of_wallenius_is_that_of_scipy(right, made, members, others):
    epsilon = np.array([0.0, 1.0, 3.0])
    told = [
        stats.nchypergeom_wallenius.sf(right - 1, members + others, members, made, math.exp(e))
        for e in epsilon
    ]
    assert wallenius_tail(right, made, members, others, epsilon) == pytest.approx(told, abs=1e-9)


@pytest.mark.parametrize("claims", [Claims(20, 7, 19), Claims(3, 30, 25), Claims(12, 0, 12), Claims(0, 9, 8)])
@pytest.mark.parametrize("p", [0.5, 0.8])
def test_the_tail_of_two_kinds_of_claims_is_that_of_all_pairs(claims, p):
    for epsilon in (0.0, 1.5):
        inside = stats.binom.pmf(np.arange(claims.members + 1), claims.members, rate(p, epsilon))
        outside = stats.binom.pmf(np.arange(claims.others + 1), claims.others, rate(1 - p, epsilon))
        slow = np.convolve(inside, outside)[claims.right :].sum()
        assert Coins(p).tail(claims, np.array([epsilon]))[0] == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("chances", [Coins(0.8), Coins(0.8, 1e-6, 2_000), FixedSizes(400, 100)])
@pytest.mark.parametrize("claims", [Claims(60, 0, 58), Claims(0, 40, 30)])
def test_what_is_refuted_is_refuted_and_no_more(chances, claims):
    found = epsilon_at_least(chances, claims, ALPHA)
    ends = np.array([found, found + 1e-4])
    within, beyond = chances.tail(claims, ends) + chances.slack(claims, ends)
    assert found > 0
    assert within <= ALPHA < beyond


def test_many_bounds_at_once_are_those_of_one_at_a_time():
    made, right = np.array([50.0, 50, 200, 31]), np.array([50.0, 47, 150, 0])
    fast = np.maximum(refuted_by(0.8, made, right, ALPHA), 0)
    slow = [
        epsilon_at_least(Coins(0.8), Claims(int(m), 0, int(r)), ALPHA)
        for m, r in zip(made, right, strict=True)
    ]
    assert fast == pytest.approx(slow, abs=1e-4)


def test_fifty_right_of_fifty():
    """By hand: q⁵⁰ = 0.05, and the odds of q are four times e^ε."""
    q = 0.05 ** (1 / 50)
    assert epsilon_at_least(Coins(0.8), Claims(50, 0, 50), ALPHA) == pytest.approx(
        math.log(q / (1 - q) / 4), abs=1e-5
    )


def test_no_success_refutes_nothing_and_no_failure_refutes_something_finite():
    assert epsilon_at_least(Coins(0.8), Claims(500, 0, 400), ALPHA) == 0
    assert epsilon_at_least(Coins(0.8), Claims(500, 0, 0), ALPHA) == 0
    assert epsilon_at_least(Coins(0.8), Claims(0, 0, 0), ALPHA) == 0
    assert 0 < epsilon_at_least(Coins(0.8), Claims(500, 100, 0).perfect, ALPHA) < LARGEST


def test_what_explains_the_claims_lies_between_what_is_refuted_and_what_explains_more():
    claims = Claims(100, 0, 92)
    low, middle, high = (
        epsilon_at_least(Coins(0.8), claims, ALPHA),
        epsilon_usual(Coins(0.8), claims, 0.5),
        epsilon_usual(Coins(0.8), claims, 1 - ALPHA),
    )
    assert low < middle < high
    assert middle == pytest.approx(math.log(0.92 / 0.08 / 4), abs=0.1)


@pytest.mark.parametrize("p", [0.5, 0.8])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_randomised_response_is_seldom_told_to_cost_more_than_it_does(epsilon, p):
    """Every side is published, turned round with probability 1 / (1 + e^ε), and claimed as published."""
    rng = np.random.default_rng(0)
    sides = rng.random((REDRAWS, 300)) < p
    told = sides ^ (rng.random(sides.shape) < 1 / (1 + math.exp(epsilon)))
    claims = told[:, :200]
    found = refuted_by(p, claims.sum(1) * 1.0, (claims & sides[:, :200]).sum(1) * 1.0, ALPHA)
    assert np.mean(found > epsilon) <= MOST_FALSE
    assert np.median(found) > epsilon - 1.3
    both = [
        Claims(int(a.sum()), int((~a).sum()), int((a == b).sum()))
        for a, b in zip(told[:, 200:], sides[:, 200:], strict=True)
    ]
    false = [Coins(p).tail(c, np.array([epsilon]))[0] <= ALPHA for c in both]
    assert 0 < np.mean(false) <= MOST_FALSE


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_a_split_of_fixed_sizes_is_seldom_told_to_cost_more_than_it_does(epsilon):
    """Randomised response at ε / 2: who replaces another turns two of its answers."""
    rng = np.random.default_rng(1)
    sides = rng.permuted(np.tile(np.arange(90) < 60, (REDRAWS, 1)), axis=1)
    told = sides ^ (rng.random(sides.shape) < 1 / (1 + math.exp(epsilon / 2)))
    found = [Claims(int(a.sum()), 0, int((a & b).sum())) for a, b in zip(told, sides, strict=True)]
    kinds = {c: FixedSizes(60, 30).tail(c, np.array([epsilon]))[0] <= ALPHA for c in set(found)}
    assert np.mean([kinds[c] for c in found]) <= MOST_FALSE


def test_name_and_shame_needs_delta_for_every_entity():
    """Each member is named with probability δ. Whoever names one is right; the bound is nearly attained."""
    pool, delta, zero = 1_000, 5e-5, np.zeros(1)
    named = 1 - (1 - delta / 2) ** pool
    exact = named + (1 - named) / 2
    coins, once = Coins(0.5, delta, pool), Claims(1, 0, 1)
    assert exact == pytest.approx(0.51235, abs=1e-5)
    assert (coins.tail(once, zero) + coins.slack(once, zero))[0] == pytest.approx(0.5125, abs=1e-9)
    sizes, named = FixedSizes(500, 500, delta), 1 - (1 - delta) ** 500
    bound = (sizes.tail(once, zero) + sizes.slack(once, zero))[0]
    assert named + (1 - named) / 2 <= bound == pytest.approx(0.5125, abs=1e-9)


def test_name_and_shame_is_covered_however_many_are_claimed():
    pool, delta, made = 200, 2e-3, 10
    coins, zero = Coins(0.8, delta, pool), np.zeros(1)
    named = stats.binom.pmf(np.arange(made), pool, 0.8 * delta)
    for right in range(made + 1):
        guessed = [stats.binom.sf(right - n - 1, made - n, 0.8) for n in range(made)]
        exact = named @ guessed + 1 - named.sum()
        claims = Claims(made, 0, right)
        assert exact <= (coins.tail(claims, zero) + coins.slack(claims, zero))[0] + 1e-12


def test_delta_only_takes_away():
    claims = Claims(80, 20, 92)
    plain, small, large = (epsilon_at_least(Coins(0.8, d, 2_000), claims, ALPHA) for d in (0.0, 1e-5, 1e-4))
    assert plain > small > large
    assert epsilon_at_least(Coins(0.8, 1e-2, 2_000), claims, ALPHA) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Claims(3, 0, 4),
        lambda: Claims(-1, 2, 0),
        lambda: Coins(1.0),
        lambda: Coins(0.5, 1.0),
        lambda: FixedSizes(-1, 4),
        lambda: FixedSizes(5, 4).tail(Claims(2, 2, 1), np.zeros(1)),
        lambda: FixedSizes(5, 4).tail(Claims(10, 0, 5), np.zeros(1)),
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=r"claims|coins|sizes"):
        wrong()
