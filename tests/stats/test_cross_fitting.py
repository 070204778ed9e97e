"""The worst attack is chosen on other people than it is measured on, and claiming more often is no excess."""

import numpy as np
import pytest

from synth_audit.findings.measurement import Interval, IntervalEstimate
from synth_audit.stats.cross_fitting import ClaimCount, ClaimTable, halved, held_out_excess, mean_of_halves
from synth_audit.stats.proportions import proportion_difference, proportion_interval


def test_excess_is_the_share_claimed_times_what_claims_are_better():
    found = ClaimCount(200, 50, 40, 20, 6).excess(0.95)
    assert found.value == pytest.approx(0.25 * (0.8 - 0.3))
    apart = proportion_difference(40, 50, 6, 20, 0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.25 * apart.low, 0.25 * apart.high))


def test_claiming_more_often_alone_is_no_excess():
    assert ClaimCount(200, 180, 60, 9, 3).excess(0.95).value == pytest.approx(0)


def test_without_claims_little_is_known():
    none = ClaimCount(50, 0, 0, 3, 1).excess(0.95)
    assert (none.value, none.interval.high) == (0.0, proportion_interval(0, 50, 0.95).high)
    nothing_beside = ClaimCount(50, 20, 20, 0, 0).excess(0.95)
    assert nothing_beside.value == 0.0
    assert nothing_beside.interval.high == pytest.approx(0.4), "as much as all claims, were strangers' wrong"
    assert nothing_beside.interval.low < 0


def table(*attacks):
    """Claims of attacks, the same in both halves: claims, right, control claims, control right."""
    return ClaimTable(
        np.array([100.0, 100.0]), *np.array([[a, a] for a in attacks], float).transpose(2, 1, 0)
    )


def test_the_worst_attack_stands_out_by_more_than_its_error():
    lucky, sure, often = (2, 2, 2, 0), (60, 50, 20, 5), (90, 30, 30, 10)
    assert table(lucky, sure, often).worst(0, np.ones(3, bool)) == 1
    assert table(often, lucky, sure).worst(1, np.ones(3, bool)) == 2
    assert table(often, lucky, sure).worst(1, np.array([True, True, False])) == 1, "the best of what may be"


def test_each_half_measures_what_the_other_chose():
    """Claims and right ones; each attack shines on the half that it may be chosen on or on the other."""
    claims = np.full((2, 3), 100.0)
    right = np.array([[80.0, 30.0, 40.0], [20.0, 90.0, 50.0]])
    tried = ClaimTable(np.array([100.0, 100.0]), claims, right, claims / 2, claims / 5)
    found, chosen = held_out_excess(tried, np.ones((2, 3), bool), 0.95)
    assert chosen == (1, 0), "the first half measures what stood out on the second, and the other way round"
    assert found.value == pytest.approx((0.3 + 0.2) / 2 - 0.4)
    assert held_out_excess(tried, np.array([[0, 0, 1], [0, 0, 1]], bool), 0.95)[1] == (2, 2)


def test_the_mean_of_two_halves_is_surer_than_either():
    halves = [
        IntervalEstimate(0.1, Interval(0.04, 0.18, 0.95, "x")),
        IntervalEstimate(0.3, Interval(0.24, 0.36, 0.95, "x")),
    ]
    found = mean_of_halves(halves, 0.95)
    assert found.value == pytest.approx(0.2)
    assert found.interval.low == pytest.approx(0.2 - np.hypot(0.06, 0.06) / 2)
    assert found.interval.high == pytest.approx(0.2 + np.hypot(0.08, 0.06) / 2)


MEMBER = np.arange(560) < 400


def test_either_side_is_halved_and_differently_each_time():
    second = halved(MEMBER, 3, np.random.default_rng(0))
    assert second[:, MEMBER].sum(axis=1).tolist() == [200] * 3
    assert second[:, ~MEMBER].sum(axis=1).tolist() == [80] * 3
    assert (second[0] != second[1]).any()
