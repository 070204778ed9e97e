"""Bounds on epsilon from claims about a split, and what a guarantee leaves an attacker."""

import math

import numpy as np
import pytest
from scipy import stats

from synth_audit.audits.privacy.one_run.claims import (
    LARGEST,
    ClaimRule,
    Claims,
    ClaimThreshold,
    Coins,
    FixedSizes,
    choose_rule,
    epsilon_at_least,
    epsilon_usual,
    refuted_by,
    wallenius_tail,
)
from synth_audit.dp.guarantee import most_advantage, most_found, of_replacing

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


def epsilon(scores, sides, p, rng):
    """ε̂ by a rule that is chosen on one half."""
    chosen = rng.random(len(sides)) < 0.5
    rule = choose_rule(scores[:, chosen], sides[chosen], p, ALPHA, 10)
    return epsilon_at_least(Coins(p), rule.counted(scores[:, ~chosen], sides[~chosen]), ALPHA)


def test_a_release_that_knows_nobody_is_seldom_told_to_cost_anything():
    """The release, and so all scores, stays; the coins are tossed a thousand times."""
    rng = np.random.default_rng(0)
    scores = np.stack([rng.normal(size=100), rng.integers(0, 4, 100)])
    found = [epsilon(scores, rng.random(100) < 0.8, 0.8, rng) for _ in range(1_000)]
    assert 0 < np.mean(np.array(found) > 0) <= 0.065


def test_a_hundred_and_a_hundred_null_scores_prove_nothing():
    """A shortcut by two normal distributions, published elsewhere, finds a median of 9.3 here."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found.append(epsilon(rng.normal(size=(1, 200)), np.arange(200) < 100, 0.5, rng))
    assert np.mean(np.array(found) == 0) >= 0.95


def test_copies_are_found_by_the_one_score_that_sees_them():
    rng = np.random.default_rng(0)
    sides = rng.random(4_000) < 0.8
    scores = rng.normal(size=(5, 4_000))
    scores[3, rng.choice(np.flatnonzero(sides), 200, replace=False)] = 9
    rule = choose_rule(scores, sides, 0.8, ALPHA, 10)
    assert rule.members.score == 3
    assert 190 < np.sum(rule.claims(scores)[0]) < 215
    assert epsilon(scores, sides, 0.8, rng) > 1.5


def test_low_scores_are_claimed_too_where_that_helps():
    rng = np.random.default_rng(0)
    sides = rng.random(4_000) < 0.8
    score = (sides ^ (rng.random(4_000) < 0.1)).astype(float)[None]
    rule = choose_rule(score, sides, 0.8, ALPHA, 10)
    inside, outside = rule.claims(score)
    assert (inside | outside).all()
    assert not (inside & outside).any()
    alone = choose_rule(score, sides, 0.8, ALPHA, 10, both=False)
    assert (alone.members is None) != (alone.others is None)


def test_a_score_that_is_turned_round_still_finds_who_is_not_there():
    rng = np.random.default_rng(0)
    sides = rng.random(2_000) < 0.5
    score = np.where(sides, 0.0, rng.random(2_000) < 0.2)[None]
    assert choose_rule(-score, sides, 0.5, ALPHA, 10).others == ClaimThreshold(0, -1.0)


def test_ties_are_claimed_together():
    score = np.repeat([2.0, 1.0, 0.0], [4, 30, 30])[None]
    sides = np.repeat([True, False], [34, 30])
    rule = choose_rule(score, sides, 0.5, ALPHA, 10)
    assert rule.members == ClaimThreshold(0, 1.0)
    assert rule.counted(score, sides).members == 34


def test_the_order_of_people_decides_nothing():
    rng = np.random.default_rng(0)
    scores, sides = rng.integers(0, 9, (3, 500)) * 1.0, rng.random(500) < 0.8
    order = rng.permutation(500)
    assert choose_rule(scores, sides, 0.8, ALPHA, 10) == choose_rule(
        scores[:, order], sides[order], 0.8, ALPHA, 10
    )


@pytest.mark.parametrize("n", [0, 1, 7])
def test_few_people_are_all_claimed_and_nobody_is_no_fault(n):
    rule = choose_rule(np.zeros((2, n)), np.ones(n, dtype=bool), 0.8, ALPHA, 10)
    assert rule.counted(np.zeros((2, n)), np.ones(n, dtype=bool)).made == n
    assert (rule == ClaimRule()) == (n == 0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_reaches_the_bound(epsilon):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert most_found(1 - truth, epsilon, 0) == pytest.approx(truth)
    assert most_advantage(epsilon, 0) == pytest.approx(2 * truth - 1)


def test_a_mechanism_that_tells_with_probability_delta_reaches_it():
    assert most_found(0, 0, 0.2) == pytest.approx(0.2)
    assert most_found(0.5, 0, 0.2) == pytest.approx(0.7)
    assert most_advantage(0, 0.2) == pytest.approx(0.2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (0.3, 0.01), (2, 1e-5), (1000, 0)])
def test_the_advantage_is_the_largest_difference_and_rates_stay_rates(epsilon, delta):
    grid = np.linspace(0, 1, 20001)
    found = np.array([most_found(x, epsilon, delta) for x in grid])
    assert (found >= grid - 1e-12).all()
    assert (found <= 1).all()
    assert (np.diff(found, 2) <= 1e-9).all()
    assert np.max(found - grid) == pytest.approx(most_advantage(epsilon, delta), abs=1e-3)


def test_one_row_in_the_place_of_another_is_two_steps():
    assert of_replacing(1.0, 1e-5) == (2.0, pytest.approx((1 + math.e) * 1e-5))
    assert of_replacing(900.0, 0.5) == (1800.0, 1.0)
