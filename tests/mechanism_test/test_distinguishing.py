"""Bounds on ε from claims: never too large for a true claim, and near the truth with many runs."""

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
from synth_audit.mechanism_test.table_mechanisms import label_scores, number_scores, row_scores
from synth_audit.mechanism_test.white_box import largest_by_chance, recurrence_distance, sizes_distance

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


def test_poisson_batches_are_within_what_chance_allows():
    rng = np.random.default_rng(0)
    far = [
        sizes_distance(rng.binomial(50, 0.2, 400), 50, 0.2) > largest_by_chance(400, 0.05) for _ in range(300)
    ]
    assert np.mean(far) <= 0.05  # conservative, since sizes are whole
    drawn = rng.random(4000) < 0.2
    assert recurrence_distance(drawn, 0.2) < largest_by_chance(800, 1e-4)


def test_distances_are_exact_for_a_small_case():
    assert sizes_distance(np.array([1, 1]), 2, 0.5) == pytest.approx(0.25)
    assert recurrence_distance(np.array([True, False] * 10), 0.5) == pytest.approx(0.25)


def test_batches_of_one_size_and_shuffled_ones_are_seen():
    shuffled = np.zeros((200, 5), dtype=bool)
    shuffled[np.arange(200), np.random.default_rng(0).integers(0, 5, 200)] = True
    assert recurrence_distance(shuffled.ravel(), 0.2) > largest_by_chance(200, 1e-4)
    assert sizes_distance(np.full(200, 10), 50, 0.2) > largest_by_chance(200, 1e-4)


def test_numbers_are_told_by_range_moments_and_nearness():
    values = np.array([0.0, 4.0, np.nan, 9.9, 10.0])
    found, near = number_scores("x", values, 10.0, 0.0, 10.0)
    assert found["largest of x"] == 10
    assert found["missing values of x"] == 1
    assert found["x equal"] == 1
    assert found["x near"] == 2
    assert near.tolist() == [False, False, False, True, True]


def test_a_column_without_numbers_is_told_from_one_at_its_lower_end():
    found, agreeing = number_scores("x", np.array([np.nan, np.nan]), np.nan, 0.0, 10.0)
    assert found["least of x"] == found["largest of x"] == -10
    assert found["x equal"] == 2
    assert agreeing.all()


def test_labels_and_missing_ones():
    values = np.array(["a", None, "b", "a"], dtype=object)
    found, agreeing = label_scores("g", values, "a")
    assert found == {"distinct labels of g": 2, "missing values of g": 1, "g equal": 2}
    assert label_scores("g", values, None)[1].tolist() == [False, True, False, False]
    assert agreeing.tolist() == [True, False, False, True]


def test_rows_are_told_by_agreement_in_pairs_and_in_all():
    agreeing = {
        "a": np.array([1, 1, 0], bool),
        "b": np.array([1, 0, 0], bool),
        "c": np.array([0, 1, 0], bool),
    }
    found = row_scores(agreeing, 3)
    assert found["rows"] == 3
    assert found["most columns in which a row is like the canary"] == 2
    assert found["rows like the canary"] == 0
    assert found["rows like the canary in a and b"] == 1
    assert found["rows like the canary in b and c"] == 0
