"""Near people, counted: closed forms, and a null that holds for the worst of many subgroups."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.near_copies import People, excess, near_parts, nearness, worst_excess


def test_nearness_of_copies_twins_and_others():
    found = nearness(np.array([0.0, 0.0, 1.0, 3.0]), np.array([2.0, 0.0, 0.0, 2.0]))
    assert found.tolist() == [0.0, 1.0, np.inf, 1.5]


@pytest.mark.parametrize("control", [np.arange(50.0), np.repeat([0.5, 1.0], 25), np.ones(50)])
def test_the_share_of_near_control_rows_is_alpha_whatever_the_ties(control):
    train, strangers = near_parts(control, control, 0.1)
    assert strangers.mean() == pytest.approx(0.1)
    assert train.tolist() == strangers.tolist()


def test_where_strangers_have_equal_rows_copies_that_were_moved_are_near_too():
    """One in ten has a row a little beside the own one; five in a hundred have an equal one by nature."""
    rng = np.random.default_rng(0)
    train, control = rng.uniform(0.5, 2, 1000), rng.uniform(0.5, 2, 400)
    train[:50], control[:20] = 0, 0
    honest = near_parts(train, control, 0.02)
    assert honest[0].mean() - honest[1].mean() == pytest.approx(0, abs=0.02)
    train[50:150] = rng.uniform(0.1, 0.5, 100)
    near = near_parts(train, control, 0.02)
    assert near[0].mean() - near[1].mean() == pytest.approx(0.1, abs=0.03)
    assert (near[0][50:150] == 1).all()


def test_people_are_counted_once_by_their_nearest_row():
    people = People(np.array([1.0, 0.0, 0.0, 0.4, 1.0]), np.array([0, 0, 1, 1, 2]))
    assert people.tally(np.array([True, True, True, True, False])) == (1.4, 2)
    assert people.tally(np.array([False, True, True, False, False])) == (0.0, 2)


def alone(near):
    return People(near.astype(float), np.arange(len(near)))


def test_the_excess_is_a_difference_of_shares_of_the_subgroup():
    train, control = alone(np.arange(20) < 6), alone(np.arange(10) < 1)
    found = excess(train, control, (np.arange(20) < 10, np.arange(10) < 5), 0.95)
    assert found.value == pytest.approx(0.6 - 0.2)
    assert found.interval.low < found.value < found.interval.high


def test_the_worst_is_at_least_nought_and_allows_for_the_number_of_subgroups():
    train, control = alone(np.zeros(400, dtype=bool)), alone(np.arange(100) < 10)
    sides = [(np.arange(400) % 4 == k, np.arange(100) % 4 == k) for k in range(4)]
    found = worst_excess(train, control, sides, 0.95)
    assert found.value == 0.0
    one = excess(train, control, sides[0], 0.95).interval
    assert found.interval.high > one.high
    assert "4 subgroups" in found.interval.method


def test_the_worst_of_many_honest_subgroups_is_rarely_accused():
    rng, accused = np.random.default_rng(0), 0
    for _ in range(200):
        near = [alone(rng.random(n) < 0.02) for n in (2000, 500)]
        kinds = rng.integers(0, 15, 2000), rng.integers(0, 15, 500)
        sides = [(kinds[0] == k, kinds[1] == k) for k in range(15)]
        accused += worst_excess(near[0], near[1], sides, 0.95).interval.low > 0
    assert accused <= 10
