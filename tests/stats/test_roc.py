"""Areas under ROC curves, and true positive rates at few false positives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from synth_audit.audits.utility._prediction_task import resampled_counts, scored
from synth_audit.stats import roc

SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=25).map(np.array)
SEVERAL = SCORES.filter(lambda s: len(s) > 1)


def pairs(members, others):
    """1 where the member is above the other, ½ where they are equal."""
    return (members[:, None] > others) + 0.5 * (members[:, None] == others)


@given(members=SCORES, others=SCORES)
def test_areas_count_pairs(members, others):
    wins = pairs(members, others)
    assert roc.placement_values(members, others) == pytest.approx(wins.mean(axis=1))
    assert roc.auroc(members, others) == pytest.approx(wins.mean())
    labels = np.repeat([1, 0], [len(members), len(others)])
    assert roc.auroc(members, others) == pytest.approx(
        roc_auc_score(labels, np.concatenate([members, others]))
    )
    assert roc.auroc(others, members) == pytest.approx(1 - roc.auroc(members, others))


@given(members=SEVERAL, others=SEVERAL)
def test_placement_values_and_their_variance_agree_with_their_twin(members, others):
    wins, found = pairs(members, others), roc.PlacementValues.of(members, others)
    assert found.members == pytest.approx(wins.mean(axis=1))
    assert found.others == pytest.approx(wins.mean(axis=0))
    assert found.auroc == pytest.approx(wins.mean())
    twin = sum(np.var(wins.mean(axis=i), ddof=1) / wins.shape[1 - i] for i in (0, 1))
    assert found.variance == pytest.approx(twin)


def test_a_group_of_one_adds_no_variance():
    lone, many = np.array([0.5]), np.array([0.0, 1.0, 2.0])
    assert roc.PlacementValues.of(lone, lone).variance == 0
    assert roc.PlacementValues.of(lone, many).variance == pytest.approx(np.var([0, 1, 1], ddof=1) / 3)


def test_delong_is_right_about_fixed_scores():
    rng = np.random.default_rng(0)
    found = [roc.PlacementValues.of(rng.normal(1, 1, 40), rng.normal(size=60)) for _ in range(600)]
    spread = np.std([f.auroc for f in found])
    assert spread == pytest.approx(np.sqrt(np.mean([f.variance for f in found])), rel=0.1)


def test_the_difference_of_two_areas_has_its_own_variance():
    rng = np.random.default_rng(0)
    members, others = rng.normal(size=30), rng.normal(size=50)
    one = roc.PlacementValues.of(members, others)
    assert (one.less(one).auroc, one.less(one).variance) == (0, 0)
    other = roc.PlacementValues.of(members, rng.normal(size=50))
    assert one.less(other).auroc == pytest.approx(one.auroc - other.auroc)


@given(members=SCORES, others=SCORES)
def test_the_interval_stands_around_its_value(members, others):
    value, interval = roc.auroc(members, others), roc.auroc_interval(members, others, 0.95)
    assert 0 <= interval.low <= value + 1e-12
    assert value - 1e-12 <= interval.high <= 1


def test_constant_scores_are_guessing():
    members, others = np.zeros(300), np.zeros(200)
    assert roc.auroc(members, others) == 0.5
    assert (
        roc.auroc_interval(members, others, 0.95).low < 0.5 < roc.auroc_interval(members, others, 0.95).high
    )


def test_separate_scores_leave_the_interval_a_width():
    members, others = np.arange(1000.0) + 5000, np.arange(2000.0)
    assert roc.auroc(members, others) == 1
    interval = roc.auroc_interval(members, others, 0.95)
    assert 0.99 < interval.low < 1 == interval.high


def test_newcombes_interval_at_the_middle_has_the_width_of_the_rank_test():
    rng = np.random.default_rng(0)
    members, others = rng.normal(size=400), rng.normal(size=300)
    interval = roc.auroc_interval(members, others, 0.95)
    expected = 1.96 * math.sqrt((400 + 300 + 1) / (12 * 400 * 300))
    assert (interval.high - interval.low) / 2 == pytest.approx(expected, rel=0.05)


def test_folds_share_their_rows():
    rng = np.random.default_rng(0)
    folds = [roc.PlacementValues.of(rng.normal(0.5, 1, 30), rng.normal(size=40)) for _ in range(4)]
    found = roc.cross_fitted_interval(folds, 0.95)
    assert roc.mean_auroc(folds) == pytest.approx(np.mean([f.auroc for f in folds]))
    half = 1.959964 * math.sqrt(2 * sum(f.variance for f in folds)) / 4
    assert (found.low, found.high) == pytest.approx(
        (roc.mean_auroc(folds) - half, roc.mean_auroc(folds) + half)
    )
    apart = [roc.PlacementValues.of(np.arange(20.0) + 50, np.arange(40.0)) for _ in range(5)]
    around = roc.cross_fitted_interval(apart, 0.95)
    assert around.low == pytest.approx(1 - 1.96**2 / (100 + 1.96**2), abs=1e-3)


@given(seed=st.integers(0, 10**6), digits=st.integers(0, 3))
def test_areas_of_resamples_are_those_of_repeated_rows(seed, digits):
    rng = np.random.default_rng(seed)
    member = np.arange(20) < rng.integers(1, 20)
    scores = np.round(rng.random(20), digits)
    weights = rng.integers(0, 3, (4, 20))
    found = roc.resampled_auroc(scores, member, weights.astype(np.float64))
    for area, times in zip(found, weights, strict=True):
        inside, outside = (np.repeat(scores[side], times[side]) for side in (member, ~member))
        if len(inside) and len(outside):
            assert area == pytest.approx(roc.auroc(inside, outside))
        else:
            assert math.isnan(area)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), digits=st.integers(0, 3))
def test_influences_are_the_placements_of_all_pairs(seed, digits):
    rng = np.random.default_rng(seed)
    member = np.arange(40) < rng.integers(2, 38)
    scores = np.round(rng.random(40) + 0.3 * member, digits)
    higher = pairs(scores[member], scores[~member])
    area, influence = roc.auroc_influence(scores, member)
    assert area == pytest.approx(higher.mean())
    a, b = higher.shape
    assert influence[member] == pytest.approx((higher.mean(axis=1) - area) / np.sqrt(a * (a - 1)))
    assert influence[~member] == pytest.approx((higher.mean(axis=0) - area) / np.sqrt(b * (b - 1)))


def test_influences_give_the_error_of_a_difference_as_the_bootstrap_does():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 400)
    good = y + rng.normal(size=400)
    poor = good + rng.normal(size=400)
    (high, of_high), (low, of_low) = (roc.auroc_influence(s, y == 1) for s in (good, poor))
    counts = resampled_counts(400, 2000, rng)
    draws = [scored(roc.resampled_auroc, s, y == 1, counts) for s in (good, poor)]
    lost = draws[0] - draws[1]
    assert lost[0] == pytest.approx(high - low)
    assert np.sqrt(np.sum((of_high - of_low) ** 2)) == pytest.approx(lost[1:].std(), rel=0.1)


RATE = st.sampled_from([0.01, 0.1, 0.3, 0.77])


@given(members=SCORES, others=SCORES, rate=RATE)
def test_alarm_agrees_with_random_tie_breaking(members, others, rate):
    """The chance that at most (n + 1) · rate of the strangers and the record itself are above its place."""
    found = roc.alarm(members, others, rate)
    for score, sure in zip(members, found, strict=True):
        above, level = np.sum(others > score), np.sum(others == score)
        places = np.linspace(0, 1, 20_001)[:-1] + 0.5 / 20_000
        expected = np.mean((above + places * (1 + level)) / (len(others) + 1) <= rate)
        assert sure == pytest.approx(expected, abs=1e-4)


@given(members=SCORES, others=SCORES, rate=RATE)
def test_one_more_stranger_alarms_at_the_rate_itself(members, others, rate):
    """The mean over everybody, each against the rest."""
    every = np.concatenate([members, others])
    found = [roc.alarm(every[[i]], np.delete(every, i), rate)[0] for i in range(len(every))]
    assert np.mean(found) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("hits", "alarms", "value"), [(80, 10, 80 / 90), (0, 10, 0), (50, 0, 1), (30, 15, 0.5)]
)
def test_precision_is_that_of_equal_numbers(hits, alarms, value):
    n_others = 50 if (hits, alarms) == (30, 15) else 100
    found = roc.precision(hits, 100, alarms, n_others, 0.95)
    assert found.value == pytest.approx(value)
    assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1
    assert found.interval.high - found.interval.low > 0.005


def test_precision_of_nobody_is_not_a_number():
    assert math.isnan(roc.precision(0, 10, 0, 10, 0.95).value)


SITUATIONS = {
    "nothing": lambda n, rng: rng.normal(size=n),
    "shifted": lambda n, rng: rng.normal(1.5, size=n),
    "a tenth copied": lambda n, rng: rng.normal(size=n) + 9 * (rng.random(n) < 0.1),
    "nearly all copied": lambda n, rng: rng.normal(size=n) + 9 * (rng.random(n) < 0.98),
    "rounded": lambda n, rng: np.round(rng.normal(0.5, size=n)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize(("m", "n"), [(400, 200), (100, 400), (1000, 1000)])
def test_intervals_cover(name, m, n):
    """Nominal 95 %; the truth from large samples."""
    rng = np.random.default_rng(0)
    draw = SITUATIONS[name]
    blur = (lambda x: np.round(x)) if name == "rounded" else (lambda x: x)
    truth = roc.auroc(draw(400_000, rng), blur(rng.normal(size=400_000)))
    covered = 0
    for _ in range(1000):
        interval = roc.auroc_interval(draw(m, rng), blur(rng.normal(size=n)), 0.95)
        covered += interval.low <= truth <= interval.high
    assert 0.93 < covered / 1000 < (1.0 if name == "nearly all copied" else 0.985)  # the wider of two there
