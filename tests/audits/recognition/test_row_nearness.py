"""Row nearness: none for other people's rows, and plain for rows between people of either side."""

import numpy as np
import pytest

from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.audits.recognition.row_nearness import row_nearness

N = 300


def pool_of(people, release):
    columns = tuple(
        PooledColumn(f"x{j}", people[:, j], release[:, j], numeric=True, step=0.01) for j in range(4)
    )
    return PooledPeople(columns, (), np.arange(len(people)), len(release), 1)


def drawn(seed, n=N):
    return np.random.default_rng([3, seed]).normal(size=(n, 4)).round(2)


def between_neighbours(people, seed):
    """Rows between each person and the nearest other one."""
    away = np.abs(people[:, None] - people[None]).sum(axis=2) + 1e9 * np.eye(len(people))
    weight = np.random.default_rng(seed).random((len(people), 1))
    return (people + weight * (people[away.argmin(axis=1)] - people)).round(2)


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_other_people_are_no_nearer(seed):
    found = row_nearness(pool_of(drawn(seed), drawn(seed + 50)), np.random.default_rng(seed))
    assert abs(found.value) < 0.6
    assert found.p > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_rows_between_neighbours_of_either_side_are_nearer(seed):
    people = drawn(seed)
    found = row_nearness(pool_of(people, between_neighbours(people, seed)), np.random.default_rng(seed))
    assert found.value > 0.9
    assert found.p == pytest.approx(1 / 300)


def test_rows_unlike_people_are_further():
    found = row_nearness(pool_of(drawn(1), drawn(2) + 3), np.random.default_rng(1))
    assert found.value < -0.9
    assert found.p == 1.0


def test_too_few_people_are_not_compared():
    assert row_nearness(pool_of(drawn(1, 20), drawn(2, 20)), np.random.default_rng(1)) is None
