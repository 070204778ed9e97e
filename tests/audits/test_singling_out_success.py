"""Success at the size of train, and the risk beyond chance: closed forms, twins by sampling, coverage."""

import itertools
import math

import numpy as np
import pytest

from synth_audit.audits.privacy import singling_out
from synth_audit.audits.privacy.singling_out.predicates import CodedRows, codebook
from synth_audit.stats.attack_success import risk
from synth_audit.stats.proportions import Proportion

APART = np.arange(1000)


def hits(successes, n):
    return np.arange(n) < successes


def singled(w, n):
    """Cohen & Nissim's P(w, n)."""
    return n * w * (1 - w) ** (n - 1)


def test_with_equal_sizes_nothing_is_corrected():
    found = singling_out.control_rate(
        np.array([1, 0, 2, 1, 0, 0, 0, 0]), APART[:8], np.array([0, 5, 1, 1, 1, 0, 0, 0]), 9, 9
    )
    assert found == singling_out.IsolationRate(2 / 8, 8, 8)
    train = singling_out.IsolationRate.of(hits(3, 8), APART[:8])
    plain, ours = (
        risk(Proportion(3, 8), Proportion(2, 8), 0.9),
        singling_out.isolation_risk(train, found, 0.9),
    )
    assert ours.value == pytest.approx(plain.value)
    assert ours.interval.low == pytest.approx(plain.interval.low)
    assert ours.interval.high == pytest.approx(plain.interval.high)


@pytest.mark.parametrize(("n_control", "n_train"), [(10, 40), (39, 40), (1, 7), (40, 10), (41, 40), (12, 12)])
@pytest.mark.parametrize("w", [0.002, 0.03, 0.2, 0.7])
def test_the_expected_gain_is_the_chance_among_strangers_for_every_weight(w, n_control, n_train):
    from scipy.stats import binom

    c, t = np.divmod(np.arange((n_control + 1) * (n_train + 1)), n_train + 1)
    chance = binom.pmf(c, n_control, w) * binom.pmf(t, n_train, w)
    gains = singling_out.gains_among_strangers(c, t, n_control, n_train)
    assert chance @ gains == pytest.approx(singled(w, n_train), rel=1e-6)


@pytest.mark.parametrize(("n_control", "n_train"), [(2, 5), (4, 5), (5, 3)])
def test_gains_are_means_over_all_ways_to_mix_the_tables(n_control, n_train):
    for c, t in itertools.product(range(n_control + 1), range(n_train + 1)):
        control, train = hits(c, n_control), hits(t, n_train)
        [gain] = singling_out.gains_among_strangers(np.array([c]), np.array([t]), n_control, n_train)
        if n_control > n_train:
            ways = [sum(w) == 1 for w in itertools.combinations(control, n_train)]
            assert gain == pytest.approx(np.mean(ways))
        else:
            kept = itertools.combinations(train, n_train - n_control)
            ways = [c == 1 and not any(stay) for stay in kept]
            assert gain == pytest.approx(n_train / n_control * np.mean(ways))


def test_a_leak_cannot_pass_for_chance():
    """With the leaked row in train, a guess gains no more than it would with it out of the way."""
    t = np.arange(0, 30)
    gains = singling_out.gains_among_strangers(np.ones(30, dtype=int), t, 100, 400)
    assert gains[0] == pytest.approx(4)
    assert gains[1] == pytest.approx(1)
    assert (np.diff(gains) < 0).all()


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_no_weight_beats_the_bound(n):
    weights = np.linspace(1e-6, 1, 100_001)
    assert singled(weights, n).max() == pytest.approx(singling_out.chance_at_most(n), rel=1e-4)
    stuffed = singling_out.control_rate(np.ones(50, dtype=int), APART[:50], np.zeros(50, dtype=int), 1, n)
    assert stuffed.share == pytest.approx(singling_out.chance_at_most(n))


def test_guesses_at_one_record_count_as_one():
    gains, rows = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]), np.array([7, 7, 7, 8, 9, -1])
    assert singling_out.IsolationRate.of(gains, rows) == singling_out.IsolationRate(4 / 6, 6, 6 * 4 / 10)
    assert singling_out.IsolationRate.of(gains, APART[:6]) == singling_out.IsolationRate(4 / 6, 6, 6)
    assert singling_out.IsolationRate.of(gains * 0, rows, most=3.0) == singling_out.IsolationRate(0, 6, 2)
    assert (
        singling_out.IsolationRate.of(gains, rows).interval(0.95).high
        > singling_out.IsolationRate.of(gains, APART[:6]).interval(0.95).high
    )


def test_without_a_guess_nothing_is_known():
    nothing = singling_out.IsolationRate.of(np.array([]), np.array([], dtype=int))
    found = singling_out.isolation_risk(nothing, nothing, 0.95)
    assert math.isnan(found.value)
    assert (found.interval.low, found.interval.high) == (-math.inf, math.inf)
    assert (nothing.interval(0.9).low, nothing.interval(0.9).high) == (0, 1)


@pytest.mark.parametrize(("s_t", "s_c"), [(31, 0), (0, 31), (31, 31), (0, 0), (5, 1)])
@pytest.mark.parametrize("most", [1.0, 4.0, 40.0])
def test_intervals_stand_upright_at_the_ends(s_t, s_c, most):
    train = singling_out.IsolationRate.of(hits(s_t, 31), APART[:31])
    control = singling_out.IsolationRate.of(hits(s_c, 31) * 1.0, APART[:31], most)
    found = singling_out.isolation_risk(train, control, 0.95)
    assert found.interval.low <= found.value <= found.interval.high
    assert found.value <= 1


def test_fewer_control_rows_widen_the_interval_and_leave_the_value():
    train = singling_out.IsolationRate.of(hits(40, 400), APART[:400])
    few, many = (
        singling_out.isolation_risk(train, singling_out.IsolationRate(0.05, 400, n), 0.95) for n in (50, 400)
    )
    assert few.value == many.value
    assert few.interval.high - few.value > many.interval.high - many.value
    assert few.value - few.interval.low > many.value - many.interval.low


def records(n, rng):
    """Skewed numbers and uneven labels, in which some people stand out."""
    return {
        "money": np.rint(np.exp(rng.normal(5, 1.5, n))),
        "age": rng.integers(18, 90, n),
        "place": rng.choice(list("abcdefgh"), n, p=np.array([40, 25, 15, 8, 6, 3, 2, 1]) / 100).tolist(),
        "job": rng.choice(list("uvwxyz"), n).tolist(),
        "score": rng.normal(size=n),
    }


@pytest.fixture
def trial(tables_of):
    def run(sizes, k, n_guesses, rng):
        n_synthetic, n_train, n_control = sizes
        tables = tables_of(*(records(n, rng) for n in (n_train, n_synthetic, n_control)))
        lexicon, (train, codes, control) = codebook(tables, tables[0].schema.features)
        synthetic = CodedRows.of(codes, lexicon)
        if k == 1:
            found = singling_out.predicates.univariate(synthetic, n_guesses, rng)
        else:
            found = singling_out.predicates.multivariate(synthetic, k, n_guesses, 20 * n_guesses, rng)
        draws = singling_out.predicates.NaiveDraws.of(len(lexicon), k, len(found), rng)
        [without] = singling_out.predicates.naive(lexicon, [draws])
        [tried] = singling_out.PredicateTrial.of_each([(found, without)], lexicon, train, control)
        return tried

    return run


@pytest.mark.parametrize("sizes", [(600, 600, 150), (600, 300, 600), (300, 600, 300)])
def test_counts_are_exact_where_the_rates_need_them(sizes, trial):
    found = trial(sizes, 2, 300, np.random.default_rng(0))
    gains = found.in_control.single
    assert len(found) > 50
    assert found.train.share == np.mean(found.in_train.counts == 1)
    assert found.naive.shape == (len(found),)
    assert gains.any()
    assert found.most_used()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1000, 1000, 250), (1000, 1000, 125), (1000, 500, 1000), (400, 800, 200)])
@pytest.mark.parametrize("k", [1, 3])
def test_an_honest_release_has_risk_nought_and_intervals_that_cover_it(sizes, k, trial):
    runs = 300
    found = [trial(sizes, k, 400, np.random.default_rng(i)).risk(0.95) for i in range(runs)]
    values = np.array([f.value for f in found])
    assert abs(values.mean()) < 4 * values.std() / math.sqrt(runs) + 0.003
    covered = np.mean([f.interval.low <= 0 <= f.interval.high for f in found])
    assert covered > 0.92


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_the_published_factor_is_a_ratio_of_averages_over_even_weights(n):
    w = (np.arange(200_000) + 0.5) / 200_000
    average = np.mean(n * w * (1 - w) ** (n - 1))
    assert singling_out.published_factor(n, n) == 1.0
    assert singling_out.published_factor(n, 3 * n) == pytest.approx(1 / (3 * n + 1) / average, rel=1e-3)
