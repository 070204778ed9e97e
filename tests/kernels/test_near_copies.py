"""Near people, counted: closed forms, and a null that holds for the worst of many subgroups."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels import dcr
from synth_audit.kernels.near_copies import (
    People,
    excess,
    excess_of_parts,
    near_parts,
    nearer_than_most,
    nearness,
    worst_excess,
)


def test_nearness_of_copies_twins_and_others():
    found = nearness(np.array([0.0, 0.0, 1.0, 3.0]), np.array([2.0, 0.0, 0.0, 2.0]))
    assert found.tolist() == [0.0, 1.0, np.inf, 1.5]


def test_rows_are_near_that_are_well_below_the_quantile_of_control():
    control = np.arange(1.0, 51.0)  # a tenth of it is at 5 or below
    train, strangers = near_parts(np.array([0.0, 3.75, 3.76, 5.0]), control, 0.1)
    assert train.tolist() == [1, 1, 0, 0]
    assert strangers.sum() == 3
    twins = near_parts(np.array([0.0, 0.7, 1.0]), np.ones(50), 0.1)[0]
    assert twins.tolist() == [1, 1, 0], "beside people who all have twins a copy is near, and a twin is not"


def test_many_more_small_tables_are_decided_and_no_fewer_copies_seen():
    """Against the quantile itself: honest people of a smooth density, and one in ten with a near copy."""
    rng, decided, seen = np.random.default_rng(0), np.zeros(2), np.zeros(2)
    everybody = np.ones(300, dtype=bool), np.ones(100, dtype=bool)
    for _ in range(100):
        train, control = (rng.gamma(12, 0.09, n) for n in (300, 100))
        limit = np.sort(control)[1]
        leaky = np.where(np.arange(300) < 30, 0.2, train)
        for x, counted in ((train, decided), (leaky, seen)):
            for i, near in enumerate((near_parts(x, control, 0.02), (x <= limit, control <= limit))):
                found = excess(alone(near[0]), alone(near[1]), everybody, 0.95).interval
                counted[i] += found.high < 0.05 if counted is decided else found.low > 0.05
    assert decided[0] >= 97
    assert decided[0] > decided[1]
    assert seen[0] >= seen[1]


@pytest.mark.parametrize("control", [np.repeat([0.0, 1.0], 25), np.zeros(50), np.full(50, np.inf)])
def test_where_nothing_is_below_the_quantile_the_share_of_near_control_rows_is_alpha(control):
    train, strangers = near_parts(control, control, 0.1)
    assert strangers.mean() == pytest.approx(0.1)
    assert train.tolist() == strangers.tolist()


@pytest.mark.parametrize("equal", [0.0, 0.05])
def test_copies_that_were_moved_are_nearer_than_most(equal):
    """One in ten has a row beside the own one, whether or not strangers have equal rows by nature."""
    rng = np.random.default_rng(0)
    train, control = rng.uniform(0.5, 2, 1000), rng.uniform(0.5, 2, 400)
    train[: int(1000 * equal)], control[: int(400 * equal)] = 0, 0
    honest = nearer_than_most(train, control, 0.05)
    assert honest[1].mean() == pytest.approx(equal + 0.025 * (1 - equal), abs=0.001)
    assert honest[0].mean() - honest[1].mean() == pytest.approx(0, abs=0.02)
    train[100:200] = rng.uniform(0.4, 0.5, 100)
    near = nearer_than_most(train, control, 0.05)
    assert near[0].mean() - near[1].mean() == pytest.approx(0.1, abs=0.03)
    assert (near[0][100:200] == 1).all()


def test_a_release_of_train_itself_is_nearer_than_most():
    """Control finds the same rows in train and in the release: all of it is at 1, its part near."""
    near = nearer_than_most(np.zeros(100), np.ones(40), 0.05)
    assert near[0].mean() == 1
    assert near[1].mean() == pytest.approx(0.025)


def test_where_all_strangers_have_equal_rows_an_equal_one_is_near_and_no_other():
    near = nearer_than_most(np.array([0.0, 0.1, np.inf]), np.zeros(5), 0.05)
    assert near[0].tolist() == [1, 0, 0]
    near = nearer_than_most(np.array([0.0, 0.1, np.inf]), np.array([0.0, np.inf, np.inf]), 0.05)
    assert near[0].tolist() == [1, 1, 0]


def test_who_is_nearer_than_most_is_so_below_each_quantile_up_to_alpha():
    """The naive twin: on average over quantiles, ties in part."""
    rng = np.random.default_rng(0)
    train, control = (np.round(rng.gamma(4, 1, n), 1) for n in (200, 120))
    quantiles = (np.arange(5000) + 0.5) / 5000 * 0.1
    ordered = np.sort(control)
    expected = np.zeros(len(train))
    for q in quantiles:
        limit = dcr.threshold(ordered, q)
        expected += np.where(train == limit.distance, limit.tie_part, train < limit.distance)
    near = nearer_than_most(train, control, 0.1)
    assert near[0] == pytest.approx(expected / len(quantiles), abs=1e-3)
    assert near[1].mean() == pytest.approx(0.05)


def test_parts_decide_more_small_tables_than_one_quantile_and_see_no_fewer_copies():
    """At 400 and 170 people: the excess over all quantiles up to 5 % beside that at 5 % alone."""
    rng, decided, seen = np.random.default_rng(0), np.zeros(2), np.zeros(2)
    everybody, found = (np.ones(400, dtype=bool), np.ones(170, dtype=bool)), 0
    for _ in range(100):
        train, control = (rng.gamma(12, 0.09, n) for n in (400, 170))
        leaky = np.where(np.arange(400) < 40, rng.uniform(0.2, 0.5, 400), train)
        limit = np.sort(control)[8]
        for x, counted in ((train, decided), (leaky, seen)):
            parts = excess_of_parts(*map(alone, nearer_than_most(x, control, 0.05)), 0.95).interval
            one = excess(alone(x <= limit), alone(control <= limit), everybody, 0.95).interval
            for i, interval in enumerate((parts, one)):
                counted[i] += interval.high < 0.055 if counted is decided else interval.low > 0.03
            found += counted is decided and parts.low > 0
    assert decided[0] > decided[1] + 10
    assert seen[0] > seen[1]
    assert found <= 5


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
