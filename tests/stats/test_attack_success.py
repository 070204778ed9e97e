"""Risk of attacks: closed forms, and intervals that hold what they promise."""

import math

import numpy as np
import pytest

from synth_audit.findings.measurement import Interval
from synth_audit.stats.attack_success import corrected_level, paired_risk, risk, worst_interval
from synth_audit.stats.proportions import Proportion, proportion_interval
from synth_audit.stats.resampling import critical_value


def test_the_middle_of_wilson_s_interval_is_the_rate_of_the_literature():
    tally, level = Proportion(30, 500), 0.95
    around = tally.interval(level)
    assert tally.centre(level) == pytest.approx((around.low + around.high) / 2)
    assert tally.share == 0.06


def test_risk_by_hand():
    z = critical_value(0.95)
    r_t, r_c = (50 + z * z / 2) / (500 + z * z), (5 + z * z / 2) / (500 + z * z)
    found = risk(Proportion(50, 500), Proportion(5, 500), 0.95)
    assert found.value == pytest.approx((r_t - r_c) / (1 - r_c))
    assert found.interval.method == "mover on wilson"


@pytest.mark.parametrize("counts", [((50, 500), (5, 500)), ((480, 500), (90, 100)), ((0, 40), (7, 30))])
def test_the_ends_of_the_risk_are_the_roots_that_define_them(counts):
    """At an end q of the ratio of failures, a − q b lies as far from 0 as its own variance allows."""
    (s_t, n_t), (s_c, n_c) = counts
    found = risk(Proportion(s_t, n_t), Proportion(s_c, n_c), 0.95).interval
    d_t, d_c = proportion_interval(s_t, n_t, 0.95), proportion_interval(s_c, n_c, 0.95)
    a, b = (1 - Proportion(s, n).centre(0.95) for s, n in counts)
    for q, of_a, of_b in ((1 - found.high, d_t.high, d_c.low), (1 - found.low, d_t.low, d_c.high)):
        assert (a - q * b) ** 2 == pytest.approx((a - (1 - of_a)) ** 2 + q**2 * (1 - of_b - b) ** 2)


def test_the_risk_has_ends_where_every_stranger_was_guessed():
    found = risk(Proportion(499, 500), Proportion(60, 60), 0.95)
    assert found.interval.low < -1
    assert -1 < found.value < found.interval.high < 1


def test_the_denominator_is_what_was_guessed():
    assert risk(Proportion(31, 31), Proportion(0, 31), 0.95).value > 0.85, "31 of 31 is no 6 % risk"


def test_risk_is_not_clipped():
    assert risk(Proportion(0, 500), Proportion(250, 500), 0.95).value < -0.9


@pytest.mark.parametrize(("train", "control"), [((0, 0), (1, 9)), ((1, 9), (0, 0))])
def test_no_guess_is_no_number(train, control):
    found = risk(Proportion(*train), Proportion(*control), 0.95)
    assert math.isnan(found.value)
    assert (found.interval.low, found.interval.high) == (-math.inf, math.inf)
    assert Proportion(0, 0).interval(0.95).high == 1.0


def test_pairing_narrows_where_guesses_hit_both():
    rng = np.random.default_rng(0)
    common = rng.random(2000) < 0.4
    train, control = common | (rng.random(2000) < 0.05), common | (rng.random(2000) < 0.01)
    paired = paired_risk(train, control, 0.95).interval
    plain = risk(Proportion.of(train), Proportion.of(control), 0.95).interval
    assert paired.high - paired.low < 0.6 * (plain.high - plain.low)


def test_bonferroni():
    assert corrected_level(0.95, 5) == pytest.approx(0.99)
    assert corrected_level(0.95, 0) == 0.95


def covered(draws, truth):
    return np.mean([x.interval.low <= truth <= x.interval.high for x in draws])


@pytest.mark.slow
@pytest.mark.parametrize(("p_t", "p_c"), [(0.05, 0.01), (0.5, 0.45), (0.15, 0.02), (0.9, 0.3), (0.01, 0.01)])
def test_coverage_of_the_risk(p_t, p_c):
    rng, n = np.random.default_rng(1), 2000
    counts = ([Proportion(rng.binomial(n, p), n) for p in (p_t, p_c)] for _ in range(4000))
    draws = [risk(*both, 0.95) for both in counts]
    assert covered(draws, (p_t - p_c) / (1 - p_c)) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("n_control", [60, 100, 250])
@pytest.mark.parametrize("p", [0.05, 0.2, 0.5, 0.8, 0.95])
def test_few_strangers_accuse_no_honest_release_more_often_than_stated(p, n_control):
    """Each end of a 95 % interval may miss 2.5 %; the symmetric delta form missed up to 29 % below."""
    rng = np.random.default_rng(5)
    counts = [(rng.binomial(2000, p), rng.binomial(n_control, p)) for _ in range(1500)]
    draws = [risk(Proportion(t, 2000), Proportion(c, n_control), 0.95).interval for t, c in counts]
    assert np.mean([x.low > 0 for x in draws]) <= 0.045
    assert np.mean([x.high < 0 for x in draws]) <= 0.055


@pytest.mark.slow
@pytest.mark.parametrize(
    ("both", "only_t", "only_c"), [(0.3, 0.1, 0.05), (0.02, 0.1, 0.01), (0.01, 0.01, 0.01)]
)
def test_coverage_of_the_paired_risk(both, only_t, only_c):
    rng, n = np.random.default_rng(2), 2000
    p_t, p_c = both + only_t, both + only_c
    draws = []
    for _ in range(3000):
        u = rng.random(n)
        train = u < p_t
        control = (u < both) | ((u >= p_t) & (u < p_t + only_c))
        draws.append(paired_risk(train, control, 0.95))
    assert covered(draws, (p_t - p_c) / (1 - p_c)) == pytest.approx(0.95, abs=0.02)


def test_guesses_at_one_record_count_as_one_when_they_agree():
    hits = np.array([3, 0, 3, 3, 0, 0, 3, 0])
    tally = Proportion.of_clusters(hits, np.full(8, 3))
    assert tally.share == pytest.approx(0.5)
    assert tally.trials == 8


def test_independent_guesses_keep_their_number():
    rng = np.random.default_rng(0)
    tally = Proportion.of_clusters(rng.binomial(10, 0.3, 5000), np.full(5000, 10))
    assert tally.trials == pytest.approx(50_000, rel=0.05)


def test_without_spread_there_are_as_many_guesses_as_records():
    assert Proportion.of_clusters(np.full(40, 5), np.full(40, 5)) == Proportion(40.0, 40)


@pytest.mark.slow
def test_coverage_of_clustered_guesses():
    rng, truth = np.random.default_rng(4), 0.3
    draws = []
    for _ in range(3000):
        chance = rng.beta(0.6, 1.4, 300)
        tally = Proportion.of_clusters(rng.binomial(8, chance), np.full(300, 8))
        draws.append(tally.interval(0.95))
    assert np.mean([x.low <= truth <= x.high for x in draws]) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(("safer", "ends"), [(False, (0.2, 0.9)), (True, (0.1, 0.5))])
def test_the_interval_of_the_worst_choice_has_the_worst_of_both_ends(safer, ends):
    found = worst_interval(
        [Interval(0.1, 0.9, 0.99, "wilson"), Interval(0.2, 0.5, 0.99, "wilson")],
        0.95,
        "2 settings",
        higher_is_safer=safer,
    )
    assert (found.low, found.high) == ends
    assert (found.level, found.method) == (0.95, "wilson, corrected for 2 settings")


@pytest.mark.parametrize("first", [True, False])
def test_an_end_that_is_no_number_leaves_the_worst_one_unknown(first):
    ends = [Interval(0.0, 0.1, 0.95, "wilson"), Interval(math.nan, math.nan, 0.95, "wilson")]
    found = worst_interval(ends if first else ends[::-1], 0.95, "2 settings")
    assert math.isnan(found.low)
    assert math.isnan(found.high)
