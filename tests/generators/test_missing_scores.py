"""Missing values of a vine's variables: drawn so that linear relations stay."""

import numpy as np
import pytest

from synth_audit.generators.vine.copulas import fill_scores, pairwise_correlation


def gappy(n=3000):
    """Three normal columns; the second is missing where the first is high, the third at random."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 3))
    z[:, 1] = 0.8 * z[:, 0] + 0.6 * z[:, 1]
    full = z.copy()
    z[full[:, 0] > 0.5, 1] = np.nan
    z[rng.random(n) < 0.3, 2] = np.nan
    return full, z


def test_relations_and_spread_are_restored_where_values_are_missing():
    full, z = gappy()
    filled = fill_scores(z, np.random.default_rng(1))
    gone = np.isnan(z[:, 1])
    assert np.corrcoef(filled[:, 0], filled[:, 1])[0, 1] == pytest.approx(0.8, abs=0.1)
    assert filled[gone, 1].mean() == pytest.approx(full[gone, 1].mean(), abs=0.25)
    assert filled[:, 2].std() == pytest.approx(1, abs=0.06)
    assert np.corrcoef(filled[:, 0], filled[:, 2])[0, 1] == pytest.approx(0, abs=0.06)


def test_present_values_and_the_input_are_not_changed():
    _, z = gappy(300)
    before = z.copy()
    filled = fill_scores(z, np.random.default_rng(1))
    assert np.array_equal(z, before, equal_nan=True)
    assert np.array_equal(filled[~np.isnan(z)], z[~np.isnan(z)])
    assert np.isfinite(filled).all()
    assert np.array_equal(filled, fill_scores(z, np.random.default_rng(1)))


def test_correlations_agree_with_the_rows_that_both_have():
    _, z = gappy(500)
    both = ~np.isnan(z[:, 1])
    expected = np.corrcoef(z[both, 0], z[both, 1])[0, 1]
    assert pairwise_correlation(z)[0, 1] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("column", [np.full(40, 2.0), np.full(40, np.nan), np.r_[1.0, np.full(39, np.nan)]])
def test_columns_without_information_are_unrelated(column):
    z = np.column_stack([np.random.default_rng(0).normal(size=40), column, column])
    correlation = pairwise_correlation(z)
    assert correlation[0, 1] == 0
    assert np.linalg.eigvalsh(correlation).min() > 0
    assert np.isfinite(fill_scores(z, np.random.default_rng(0))).all()
