from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from synth_audit.generators.vine.columns import (
    central,
    least_important_first,
    sensitive_first,
)
from synth_audit.stats.association import kendall


def naive_tau_b(x, y):
    concordant = discordant = tied_x = tied_y = 0
    for i, j in combinations(range(len(x)), 2):
        a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        concordant += a * b > 0
        discordant += a * b < 0
        tied_x += a == 0 and b != 0
        tied_y += b == 0 and a != 0
    total = concordant + discordant
    return (concordant - discordant) / np.sqrt((total + tied_x) * (total + tied_y))


def test_kendall_agrees_with_counting_pairs_and_skips_missing_ones():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, size=(2, 40)).astype(float)
    y = y + x
    full = naive_tau_b(x, y)
    assert kendall(x, y) == pytest.approx(full)
    gaps = np.array([np.nan, 1.0, np.nan])
    assert kendall(np.append(x, gaps), np.append(y, [3.0, np.nan, np.nan])) == pytest.approx(full)


@pytest.mark.parametrize("y", [np.full(5, 2.0), np.full(5, np.nan), np.array([1.0, *[np.nan] * 4])])
def test_kendall_is_zero_where_it_is_undefined(y):
    assert kendall(np.arange(5.0), y) == 0


def test_kendall_of_many_rows_uses_an_even_subset():
    x = np.arange(50_000.0)
    assert kendall(x, -x) == pytest.approx(-1)


def correlated(seed=0, n=600):
    """Columns 1 and 5 are sensitive, 4 and then 2 close to 1, 7 close to 5, 6 the response, 0 and 3 apart."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 8))
    z[:, 2] = z[:, 1] + 0.4 * z[:, 2]
    z[:, 4] = -z[:, 1] + 0.1 * z[:, 4]
    z[:, 7] = z[:, 5] + 0.25 * z[:, 7]
    return z


def test_algorithm_1():
    assert sensitive_first(correlated(), [1, 5], 6, 0.6) == (1, 5, 4, 7, 2, 0, 3, 6)


def test_a_high_threshold_leaves_the_original_order():
    assert sensitive_first(correlated(), [1, 5], 6, 1.0) == (1, 5, 0, 2, 3, 4, 7, 6)


def test_a_sensitive_root_stays_the_root():
    assert sensitive_first(correlated(), [6, 1], 6, 0.6)[0] == 1
    assert sensitive_first(correlated(), [6, 1], 6, 0.6)[-1] == 6


def test_without_sensitive_columns_only_the_root_moves():
    assert sensitive_first(correlated(), [], 2, 0.6) == (0, 1, 3, 4, 5, 6, 7, 2)


def test_the_central_column_has_most_association():
    z = np.random.default_rng(0).normal(size=(300, 4))
    z[:, 0] += z[:, 2]
    z[:, 3] += z[:, 2]
    assert central(z, [0, 1, 2, 3]) == 2
    assert central(z, [1]) == 1


@pytest.mark.parametrize("is_class", [True, False])
def test_the_most_important_column_is_next_to_the_root(is_class):
    z = np.random.default_rng(0).normal(size=(400, 4))
    y = 2 * z[:, 2] + z[:, 0] + 0.3 * np.random.default_rng(1).normal(size=400)
    values = np.column_stack([z, (y > 0) if is_class else y]).astype(float)
    values[:30, 1] = np.nan
    values[-5:, 4] = np.nan
    order = least_important_first(values, 4, is_class=is_class, rng=np.random.default_rng(2))
    assert order[2:] == (0, 2, 4)
    assert order == least_important_first(values, 4, is_class=is_class, rng=np.random.default_rng(2))
    assert least_important_first(values[:, 4:], 0, is_class=is_class, rng=np.random.default_rng(2)) == (0,)
