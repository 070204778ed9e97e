"""Numbers moved otherwise in each group: what is learnt of them, and missing ones."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.learnt_moves import _binned, learnt_moves
from synth_audit.kernels.linked_columns import LinkedColumn


def test_each_group_has_its_own_factor():
    rng = np.random.default_rng(0)
    n = 400
    labels = [rng.integers(8, size=n).astype(float) for _ in range(4)]
    number = rng.uniform(1, 100, n)
    number[::50] = np.nan
    factors = np.array([0.5, 2, 3, 0.3, 1.4, 0.7, 1, 4])
    others = [LinkedColumn.of(np.concatenate([x, x]), n, numeric=False) for x in labels]
    released = number * factors[labels[2].astype(int)]
    weights = learnt_moves(others, [np.concatenate([released, number])], n)
    table, column = weights.tables[-1], weights.columns[-1]
    own = table[column.people, column.release]
    strangers = table[column.people, np.roll(column.release, 1)]
    known = ~np.isnan(number)
    assert np.median(own[known]) > 1 > 0 > np.median(strangers[known])
    assert not own[~known].any()


@pytest.mark.parametrize("turned", [False, True])
def test_numbers_are_found_in_the_distribution_of_another_column(turned):
    rng = np.random.default_rng(1)
    n = 400
    labels = [rng.integers(8, size=n).astype(float) for _ in range(4)]
    others = [LinkedColumn.of(np.concatenate([x, x]), n, numeric=False) for x in labels]
    first, second = rng.normal(size=n), np.exp(rng.normal(size=n))
    order = np.argsort(np.argsort(first))
    instead = np.sort(second)[n - 1 - order if turned else order]
    weights = learnt_moves(
        others, [np.concatenate([rng.permutation(first), first]), np.concatenate([instead, second])], n
    )
    column, table = weights.columns[len(others)], weights.tables[len(others)]
    own, strangers = (table[column.people, rows] for rows in (column.release, np.roll(column.release, 1)))
    assert np.median(own) > 1 > 0 > np.median(strangers)


@pytest.mark.parametrize(("factors", "far"), [(True, 99), (False, 99)])
def test_bins(factors, far):
    release, person = np.array([10.0, 1e9, 0.0, np.nan]), np.array([10.0, 1e-9, 0.0, 1.0])
    assert _binned(release, person, 100.0, factors).tolist() == [50, far, 50, 100]
