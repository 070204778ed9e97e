"""Least squares from correlations against numpy's own, and where designs are singular."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.kernels import linear
from synth_audit.kernels.linear import Regression, Scaling, correlation


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
