"""Least squares, means of groups, and imputation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth_audit.stats import regression as linear
from synth_audit.stats.regression import (
    BELIEVED,
    GroupMeans,
    Regression,
    Scaling,
    chance_of_share,
    correlation,
    share_overlooked,
)


def standardised(values):
    return Scaling.of(values).apply(values)


def fitted(x, y, groups=None):
    """Regression of y, shape (n, c), on x with what it found."""
    x, y = standardised(x), standardised(y)
    n = len(x)
    regression = Regression.on(
        correlation(x), np.arange(x.shape[1]) if groups is None else np.array(groups), n
    )
    with_y = x.T @ y / (n - 1)
    return regression, regression.coefficients(with_y), with_y


def naive(x, y):
    """Coefficients of standardised columns with an intercept, and the adjusted R²."""
    x, y = ((v - v.mean(axis=0)) / v.std(axis=0, ddof=1) for v in (x, y))
    n, q = x.shape
    full = np.column_stack([np.ones(n), x])
    beta = np.linalg.lstsq(full, y, rcond=None)[0]
    left = ((y - full @ beta) ** 2).sum(axis=0) / (y**2).sum(axis=0)
    return beta[1:], 1 - left * (n - 1) / (n - q - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 3), st.integers(12, 60))
def test_coefficients_and_r_squared_are_those_of_least_squares(seed, q, c, n):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, q)) + rng.normal(size=(n, 1))) * 10.0 ** rng.integers(-3, 4, q) + 1000
    y = standardised(x) @ rng.normal(size=(q, c)) + rng.normal(size=(n, c))
    regression, beta, with_y = fitted(x, y)
    expected, r_squared = naive(x, y)
    assert beta == pytest.approx(expected, abs=1e-6)
    assert regression.adjusted_r_squared(beta, with_y) == pytest.approx(r_squared, abs=1e-6)
    assert regression.effects(beta) == pytest.approx(np.abs(beta), abs=1e-9)
    assert not regression.singular


def test_collinear_predictors_get_the_solution_of_smallest_norm():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = x[:, :1] + 0.1 * rng.normal(size=(200, 1))
    regression, beta, with_y = fitted(np.column_stack([x, x[:, 0], -2 * x[:, 0], np.full(200, 3.0)]), y)
    whole, whole_beta, whole_with = fitted(x, y)
    assert regression.singular
    assert regression.rank == 2
    assert beta[[0, 2, 3], 0] == pytest.approx(whole_beta[0, 0] / 3 * np.array([1, 1, -1]))
    assert beta[4, 0] == 0
    assert regression.adjusted_r_squared(beta, with_y) == pytest.approx(
        whole.adjusted_r_squared(whole_beta, whole_with)
    )


def test_nearly_collinear_predictors_do_not_blow_up():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    _, beta, _ = fitted(np.column_stack([x, x + 1e-9 * rng.normal(size=200)]), rng.normal(size=(200, 1)))
    assert np.abs(beta).max() < 1


def test_more_predictors_than_rows_have_coefficients_but_no_r_squared():
    rng = np.random.default_rng(0)
    regression, beta, with_y = fitted(rng.normal(size=(20, 30)), rng.normal(size=(20, 1)))
    assert np.isfinite(beta).all()
    assert regression.singular
    assert np.isnan(regression.adjusted_r_squared(beta, with_y)).all()


def test_adjusted_r_squared_is_zero_on_average_without_association():
    rng = np.random.default_rng(0)
    regression, beta, with_y = fitted(rng.normal(size=(60, 10)), rng.normal(size=(60, 3000)))
    assert abs(regression.adjusted_r_squared(beta, with_y).mean()) < 0.01


def test_the_effect_of_a_label_does_not_depend_on_its_coding():
    rng = np.random.default_rng(0)
    label, other = rng.integers(0, 4, 300), rng.normal(size=300)
    y = (np.array([0.0, 2.0, -1.0, 0.5])[label] + other + rng.normal(size=300))[:, None]
    indicators = (label[:, None] == np.arange(4)).astype(float)
    sizes = [
        (r := fitted(np.column_stack([indicators[:, kept], other]), y, [0] * len(kept) + [1]))[0].effects(
            r[1]
        )
        for kept in ([0, 1, 2], [1, 2, 3], [3, 0, 2])
    ]
    assert sizes[1] == pytest.approx(sizes[0])
    assert sizes[2] == pytest.approx(sizes[0])
    full = np.column_stack([np.ones(300), indicators[:, 1:], other])
    beta = np.linalg.lstsq(full, y[:, 0] / y.std(ddof=1), rcond=None)[0]
    assert sizes[0][0, 0] == pytest.approx((indicators[:, 1:] @ beta[1:4]).std(ddof=1))


def test_scaling_reads_missing_as_the_mean():
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 5.0], [8.0, 7.0]])
    filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    expected = (filled - filled.mean(axis=0)) / filled.std(axis=0, ddof=1)
    assert standardised(values) == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300, -1e300, 1.6e15])
def test_a_column_of_equal_values_is_zero_and_not_rounding(value):
    assert not standardised(np.full((7, 1), value)).any()
    assert not standardised(np.full((7, 1), np.nan)).any()


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e150, 1e307])
def test_scaling_knows_no_unit_and_no_offset(unit):
    x = np.random.default_rng(0).uniform(-1, 1, size=(50, 1))
    assert standardised(x * unit) == pytest.approx(standardised(x), rel=1e-9)
    assert standardised(x * 1e6 + 1.6e15) == pytest.approx(standardised(x), abs=1e-5)
    assert standardised(x).std(ddof=1) == pytest.approx(1)


def test_scaling_takes_the_furthest_numbers_that_there_are():
    x = np.array([[1.7e308], [-1.7e308], [0.0], [np.nan]])
    assert standardised(x)[:, 0] == pytest.approx([np.sqrt(1.5), -np.sqrt(1.5), 0, 0])


def test_signed_r_squared_is_that_of_the_correlation():
    rng = np.random.default_rng(0)
    truths = rng.normal(size=(40, 3))
    guesses = np.column_stack([truths[:, 0] * 9 + 1, rng.normal(size=40), np.full(40, 0.1)])
    c = np.corrcoef(guesses[:, 1], truths[:, 1])[0, 1]
    found = linear.signed_r_squared(guesses, truths)
    np.testing.assert_allclose(found, [1, np.sign(c) * c**2, 0], atol=1e-12)
    counts = rng.integers(0, 3, 40)
    again = linear.signed_r_squared(np.repeat(guesses, counts, axis=0), np.repeat(truths, counts, axis=0))
    np.testing.assert_allclose(linear.signed_r_squared(guesses, truths, counts * 1.0), again, atol=1e-12)


def drawn_groups(seed, n=60, size=7, c=2):
    rng = np.random.default_rng(seed)
    return rng.integers(0, size, n), rng.normal(size=(n, c))


@given(st.integers(0, 1000), st.integers(1, 40))
def test_means_of_groups_are_those_of_a_loop(seed, n):
    groups, responses = drawn_groups(seed, n)
    means = GroupMeans.of(groups, responses, 7)
    for i in range(n):
        mates = [j for j in range(n) if groups[j] == groups[i]]
        others = [j for j in mates if j != i]
        assert means.at(groups)[i] == pytest.approx(responses[mates].sum(axis=0) / (len(mates) + BELIEVED))
        assert means.of_others(groups, responses)[i] == pytest.approx(
            responses[others].sum(axis=0) / (len(others) + BELIEVED), abs=1e-12
        )


def test_a_group_that_nobody_is_in_says_nothing():
    means = GroupMeans.of(np.array([0, 0, 2]), np.ones((3, 1)), 4)
    assert means.at(np.array([1, 3])).tolist() == [[0.0], [0.0]]
    assert means.spent == 1


def test_the_mean_of_others_tells_nothing_where_groups_are_chance():
    """That of all in the group would: each row tells of itself."""
    own, others = [], []
    for seed in range(200):
        groups, responses = drawn_groups(seed, n=100, size=40, c=1)
        means = GroupMeans.of(groups, responses, 40)
        own.append(np.mean(means.at(groups) * responses))
        others.append(np.mean(means.of_others(groups, responses) * responses))
    assert np.mean(own) > 0.1
    assert abs(np.mean(others)) < 0.02


def test_the_test_of_groups_is_an_analysis_of_variance():
    groups, responses = drawn_groups(1, c=1)
    parts = [responses[groups == g, 0] for g in range(7)]
    expected = stats.f_oneway(*parts).pvalue
    assert GroupMeans.of(groups, responses, 9).chance(responses, np.ones(1)) == pytest.approx(expected)


def test_the_test_of_groups_holds_for_several_responses():
    """Indicators of one label each are not independent of one another."""
    rng = np.random.default_rng(0)
    p = []
    for _ in range(400):
        labels, groups = rng.integers(0, 5, (2, 200))
        marks = (labels[:, None] == np.arange(5)) * 1.0
        p.append(GroupMeans.of(groups, marks, 5).chance(marks, np.full(5, 0.2)))
    assert np.mean(np.array(p) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_a_share_of_variance_is_tested_as_a_regression_is():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=50), rng.normal(size=50)
    slope = stats.linregress(x, y)
    assert chance_of_share(slope.rvalue**2, 1, 49) == pytest.approx(slope.pvalue)
    assert chance_of_share(0.9, 0, 49) == 1.0
    assert chance_of_share(0.9, 49, 49) == 1.0
    assert chance_of_share(1.0, 3, 49) < 1e-6


@pytest.mark.parametrize(("q", "n"), [(3, 80), (20, 200)])
def test_what_a_test_may_overlook_it_finds_as_often_as_said(q, n):
    share = share_overlooked(q, n - 1, 0.01, 0.9)
    rng = np.random.default_rng(3)
    missed = []
    for _ in range(600):
        x = rng.normal(size=(n, q))
        x = x - x.mean(axis=0)
        signal = x[:, 0] / x[:, 0].std()
        y = np.sqrt(share) * signal + np.sqrt(1 - share) * rng.normal(size=n)
        y = y - y.mean()
        left = y - x @ np.linalg.lstsq(x, y)[0]
        missed.append(chance_of_share(1 - left @ left / (y @ y), q, n - 1) > 0.01)
    assert np.mean(missed) == pytest.approx(0.05, abs=0.027)
    assert share_overlooked(50, 50, 0.01, 0.9) == 1.0
    assert share_overlooked(q, 10_000, 0.01, 0.9) < share / 20
