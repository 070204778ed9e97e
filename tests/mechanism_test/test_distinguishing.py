"""Bounds on ε from claims: never too large for a true claim, and near the truth with many runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from synth_audit.mechanism_test.distinguishing import (
    LinearScore,
    RuleCounts,
    ThresholdRule,
    choose,
    epsilon_at_least,
    largest_epsilon,
    repeats_by_chance,
    runs_to_refute,
    trade_off,
)

ALPHA = 9e-4


def test_the_bound_is_that_of_the_region_at_the_ends_of_the_intervals():
    counts = RuleCounts(runs=10_000, claimed=3000, right=2400, sides=1)
    q = beta.ppf(0.9 * ALPHA, 2400, 601)
    claimed = beta.ppf(0.1 * ALPHA, 3000, 7001)
    delta = 1e-3
    tpr, fpr = 2 * claimed * q, 2 * claimed * (1 - q)  # each side is half of the runs
    assert epsilon_at_least(counts, delta, ALPHA) == pytest.approx(math.log((tpr - delta) / fpr))


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        (RuleCounts(100, 0, 0, 1), 0.0),
        (RuleCounts(100, 40, 20, 2), 0.0),
        (RuleCounts(10_000, 6, 6, 2), 0.01),
    ],
)
def test_no_claim_and_no_more_than_chance_or_delta_prove_nothing(counts, delta):
    assert epsilon_at_least(counts, delta, ALPHA) == 0


def test_a_true_claim_is_exceeded_as_rarely_as_is_said():
    """Every outcome of randomised response at ε = 1 with its probability: no simulation."""
    n, truth = 400, 1.0
    right = np.arange(n + 1)
    wrong = [epsilon_at_least(RuleCounts(n, n, int(r), 2), 0.0, 0.05) > truth for r in right]
    chance = binom.pmf(right, n, math.e / (1 + math.e))[wrong].sum()
    assert 0.02 < chance <= 0.05


def test_the_fewest_runs_refute_and_one_less_does_not():
    for epsilon in (0.5, 1.0, 3.0):
        n = runs_to_refute(epsilon, ALPHA)
        assert largest_epsilon(n, 0.0, ALPHA) > epsilon >= largest_epsilon(n - 1, 0.0, ALPHA)
    assert largest_epsilon(0, 0.0, ALPHA) == 0


def test_a_rule_claims_one_side_at_most_of_each_run():
    scores, having = np.array([-2.0, 0.0, 0.5, 3.0]), np.array([False, True, True, True])
    both = ThresholdRule(0.5, 0.5).counts(scores, having)
    assert (both.claimed, both.right, both.sides) == (4, 3, 2)
    turned = ThresholdRule(0.0, None, -1).counts(scores, having)
    assert (turned.claimed, turned.right, turned.sides) == (2, 1, 1)


def test_repeats_are_weighed_against_all_orders_of_the_same_values():
    assert repeats_by_chance(np.arange(6)) == pytest.approx(1 / 10_395)
    assert repeats_by_chance(np.zeros(50, dtype=int)) == 1  # a constant repeats itself and proves nothing
    assert repeats_by_chance(np.array([0, 0, 1])) == pytest.approx(3 / 15)


def test_the_curve_covers_the_truth_and_orders_its_ends():
    rng = np.random.default_rng(0)
    having = rng.random(4000) < 0.5
    points = trade_off(having + rng.standard_normal(4000), having, np.array([0.0, 1.0]), 0.95)
    truths = [(0.5, 0.841), (0.159, 0.5)]
    for point, (fpr, tpr) in zip(points, truths, strict=True):
        assert point.fpr_low < fpr < point.fpr_high
        assert point.tpr_low < tpr < point.tpr_high
        assert point.fpr_low <= point.fpr <= point.fpr_high
    one_sided = trade_off(np.ones(5), np.ones(5, dtype=bool), np.array([0.5]), 0.95)[0]
    assert (one_sided.fpr_low, one_sided.fpr_high) == (0, 1)


def test_the_learnt_score_finds_a_shift_and_a_spread():
    rng = np.random.default_rng(0)
    having = rng.random(2000) < 0.5
    shifted = rng.standard_normal((2000, 5)) + 0.4 * having[:, None]
    wider = rng.standard_normal((2000, 12)) * np.where(having, 1.5, 1.0)[:, None]
    for features in (shifted, wider):
        score = LinearScore.learnt(features[:1000], having[:1000]).of(features[1000:])
        told = having[1000:]
        assert (score[told][:, None] > score[~told]).mean() > 0.68
        chosen = choose(features[:1000], having[:1000], tested=1000, delta=0.0)
        counts = chosen.rule.counts(chosen.scorer.of(features[1000:]), told)
        assert epsilon_at_least(counts, 0.0, 0.05) > 0.4


def test_a_rare_event_is_found():
    """One run in a hundred shows the canary, and none without it."""
    rng = np.random.default_rng(1)
    having = rng.random(4000) < 0.5
    features = np.column_stack([rng.standard_normal(4000), having & (rng.random(4000) < 0.02)])
    chosen = choose(features, having, tested=4000, delta=0.0)
    counts = chosen.rule.counts(chosen.scorer.of(features), having)
    assert chosen.scorer.feature == 1
    assert counts.right == counts.claimed > 20
