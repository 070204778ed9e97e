"""Proportions, their intervals and differences, and tests of rare counts."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth_audit.stats import proportions, resampling
from synth_audit.stats.proportions import (
    Proportion,
    chance_of_more,
    middle_and_half_width,
    proportion_difference,
    proportion_interval,
    unseen_share,
)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 5000), share=st.floats(0, 1), level=st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_agrees_with_scipy(n, share, level):
    successes = round(share * n)
    found = proportion_interval(successes, n, level)
    expected = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= found.low <= successes / n + 1e-12
    assert successes / n - 1e-12 <= found.high <= 1


def test_wilson_ends_solve_the_score_equation():
    found, z = proportion_interval(7.5, 40, 0.9), resampling.critical_value(0.9)
    for end in (found.low, found.high):
        assert abs(7.5 / 40 - end) == pytest.approx(z * math.sqrt(end * (1 - end) / 40))


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (1, 0), (-1, 5), (6, 5), (0, -1), (float("nan"), 5)])
def test_wilson_refuses_impossible_counts(successes, n):
    with pytest.raises(ValueError, match="wilson needs"):
        proportion_interval(successes, n, 0.95)


@pytest.mark.parametrize(
    ("a", "n_a", "b", "n_b", "low", "high"),
    [  # Newcombe 1998, table II, method 10
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0),
        (10, 10, 0, 10, 0.6075, 1.0),
    ],
)
def test_newcombe_gives_the_published_intervals(a, n_a, b, n_b, low, high):
    found = proportion_difference(a, n_a, b, n_b, 0.95)
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_newcombe_turns_around_with_its_arguments():
    one, other = proportion_difference(3, 20, 7, 30, 0.9), proportion_difference(7, 30, 3, 20, 0.9)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_percentile_and_normal_intervals():
    draws = np.arange(101.0)
    found = resampling.percentile_interval(draws, 0.9)
    assert (found.low, found.high, found.level) == (pytest.approx(5), pytest.approx(95), 0.9)
    around = resampling.normal_interval(10.0, draws, 0.95)
    assert around.high - 10 == pytest.approx(10 - around.low)
    assert around.high - 10 == pytest.approx(1.959964 * draws.std(ddof=1))


def test_undefined_draws_leave_no_finite_interval():
    found = resampling.percentile_interval(np.array([0.0, 1.0, np.nan]), 0.95)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@given(n=st.integers(1, 500), q=st.floats(0.001, 1))
def test_rank_is_the_least_that_reaches_the_quantile(n, q):
    rank = resampling.quantile_rank(n, q)
    assert 1 <= rank <= n
    assert rank / n >= q - 1e-9
    assert rank == 1 or (rank - 1) / n < q


@pytest.mark.parametrize(("n", "q"), [(1, 0.5), (7, 0.02), (60, 0.02), (60, 0.5), (61, 1.0)])
def test_resampled_quantile_is_distributed_as_a_real_bootstrap(n, q):
    rng = np.random.default_rng(5)
    ordered = np.sort(np.round(rng.normal(size=n), 1))
    fast = resampling.resampled_quantile(ordered, q, 4000, rng)
    rank = resampling.quantile_rank(n, q)
    slow = np.sort(rng.choice(ordered, (4000, n)), axis=1)[:, rank - 1]
    values = np.unique(ordered)
    gap = max(abs(np.mean(fast <= v) - np.mean(slow <= v)) for v in values)
    assert gap < 1.95 * math.sqrt(2 / 4000)  # Kolmogorov–Smirnov, 0.1 %
    assert set(fast) <= set(values)


@pytest.mark.parametrize(
    ("asked", "level", "draws"), [(200, 0.95, 200), (1000, 0.95, 1000), (200, 0.99, 1000)]
)
def test_a_bootstrap_has_draws_beyond_the_ends_of_its_interval(asked, level, draws):
    assert resampling.enough_draws(asked, level) == draws


PACKAGE = Path(proportions.__file__).parent.parent
HOME = "proportions.py"


def test_the_middle_and_half_width_are_those_of_the_interval():
    ends = proportion_interval(7, 40, 0.95)
    assert middle_and_half_width(7, 40, 0.95) == pytest.approx(
        ((ends.low + ends.high) / 2, (ends.high - ends.low) / 2)
    )
    assert middle_and_half_width(0, 0, 0.95) == pytest.approx((0.5, 0.5))


def test_what_was_not_seen_may_be_as_much_as_wilson_says():
    z = 1.959963984540054
    assert unseen_share(100, 0.95) == pytest.approx(z * z / (100 + z * z))


def texts(nodes):
    """Texts of a module that are not documentation."""
    inside = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # stands alone, does nothing
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    ]


def test_no_other_file_names_the_formula():
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if path.name != HOME and "wilson" in source.lower():
            nodes = list(ast.walk(ast.parse(source)))
            assert not [t for t in texts(nodes) if "wilson" in t.lower()], path


def test_it_is_the_tail_of_a_binomial():
    coins = np.random.default_rng(0).binomial(9, 0.25, 400_000)
    assert chance_of_more(4, 5, 100, 300) == pytest.approx((coins >= 4).mean(), abs=2e-3)
    assert chance_of_more(7, 0, 50, 50) == pytest.approx(0.5**7)


def test_nothing_new_is_no_surprise():
    assert chance_of_more(0, 3, 10, 10) == 1.0


def test_weights_of_one_are_a_plain_count():
    assert Proportion.of_weights(np.ones(7), 40) == Proportion(7, 40)
    assert Proportion.of_weights(np.empty(0), 40) == Proportion(0, 40)


def test_the_count_is_as_uncertain_as_the_sum():
    weights = np.random.default_rng(1).uniform(size=500)
    found = Proportion.of_weights(weights, 1_000)
    assert found.share == pytest.approx(weights.sum() / 1_000)
    assert found.successes / found.trials**2 == pytest.approx(np.square(weights).sum() / 1_000**2, rel=0.01)
