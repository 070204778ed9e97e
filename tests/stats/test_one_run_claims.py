"""Claims are chosen on one half of the people and measured on the other."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.stats.epsilon import ClaimRule, ClaimThreshold, Coins, choose_rule, epsilon_at_least

ALPHA = 0.05


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
