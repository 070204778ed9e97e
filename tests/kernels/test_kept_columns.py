"""Columns that rows keep of people together: found among others, told of whom they are, and nobody else."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.agreement_columns import AgreementColumn
from synth_audit.kernels.kept_columns import kept_bits, kept_sets

N, COPIED, KEPT = 400, 80, {1, 3, 4, 6, 8}


@pytest.fixture(scope="module")
def columns():
    """Eight numbers, two of which hang together, and two labels; of 80 people five columns are kept."""
    rng = np.random.default_rng(4)
    people, release = rng.normal(size=(2, N, 8))
    for side in (people, release):
        side[:, 1] += side[:, 0]
    labels = rng.integers(0, 8, (2, N, 2))
    for k in sorted(KEPT - {8}):
        release[:COPIED, k] = people[:COPIED, k] + 0.02 * rng.normal(size=COPIED)
    labels[1, :COPIED, 0] = labels[0, :COPIED, 0]
    numbers = [AgreementColumn.of_numbers(*x) for x in zip(people.T, release.T, strict=True)]
    return [*numbers, *(AgreementColumn.of_labels(*x) for x in zip(*np.moveaxis(labels, -1, 1), strict=True))]


def test_the_columns_that_are_kept_are_the_surest(columns):
    [surest, *_] = kept_sets(columns, np.arange(N), 3)
    assert set(surest) <= KEPT


def test_some_of_the_people_show_it_too(columns):
    [surest] = kept_sets(columns, np.arange(0, N, 2), 1)
    assert set(surest) <= KEPT


def test_rows_tell_of_those_whose_values_they_keep(columns):
    [told] = kept_bits(columns, [tuple(sorted(KEPT))]).T
    assert (told[:COPIED] > 18).mean() > 0.8
    assert (told[COPIED:] > 0).mean() < 0.02
    # of the first person, by hand: all rows near in all of these columns, each value six bits at most
    bits = np.array([columns[k].of_pairs(np.zeros(N, int), np.arange(N)) for k in sorted(KEPT)])
    near = (bits[:4] >= 4).all(axis=0) & (bits[4] > 0)
    assert told[0] == pytest.approx(np.minimum(bits, 6.0).sum(axis=0)[near].max(initial=0.0))


def test_where_nothing_is_kept_there_is_hardly_a_set_and_none_of_anybody():
    rng = np.random.default_rng(5)
    people, release = rng.normal(size=(2, N, 6))
    columns = [AgreementColumn.of_numbers(*x) for x in zip(people.T, release.T, strict=True)]
    sets = kept_sets(columns, np.arange(N), 4)
    told = kept_bits(columns, sets)
    assert told.shape == (N, len(sets))
    assert np.count_nonzero(told) <= 0.05 * N * max(1, len(sets))
