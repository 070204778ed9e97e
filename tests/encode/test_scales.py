"""A scale that extremes do not move."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.encode.scales import FIRST_LABEL, MISSING, REGULAR, RobustScale
from synth_audit.neighbours.gower import NEAR


@pytest.fixture
def normal():
    return np.random.default_rng(0).normal(50.0, 10.0, 4000)


def test_a_uniform_column_has_its_range():
    assert RobustScale.of(np.linspace(3.0, 7.0, 1001)).span == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("share", [0.001, 0.005, 0.05, 0.3, 0.7])
@pytest.mark.parametrize("code", [9999.0, -999.0])
def test_a_code_for_unknown_moves_nothing_however_frequent_it_is(normal, share, code):
    spoilt = normal.copy()
    spoilt[: round(share * len(normal))] = code
    expected, found = RobustScale.of(normal[spoilt != code]), RobustScale.of(spoilt)
    assert found.labels.tolist() == [code]
    assert (found.centre, found.span) == (expected.centre, expected.span)


def test_rare_extremes_are_numbers_far_away_and_hide_no_code_behind_them(normal):
    spoilt = normal.copy()
    spoilt[:3] = 1e5, 1e7, 1e9
    spoilt[3:9] = 9999.0
    found = RobustScale.of(spoilt)
    assert found.labels.tolist() == [9999.0]
    assert found.span == pytest.approx(RobustScale.of(normal).span, rel=0.02)
    numbers, what = found.read(np.array([1e9, 9999.0, 50.0]))
    assert what.tolist() == [REGULAR, FIRST_LABEL, REGULAR]
    assert numbers[0] > 1e6
    assert abs(numbers[2]) < 0.1


def test_a_value_that_most_rows_share_is_a_label_and_the_others_set_the_scale():
    rng = np.random.default_rng(0)
    gains = np.where(rng.random(5000) < 0.92, 0.0, rng.uniform(1000.0, 9000.0, 5000))
    found = RobustScale.of(gains)
    assert found.labels.tolist() == [0.0]
    assert found.span == pytest.approx(8000.0, rel=0.1)


def test_a_column_of_few_numbers_keeps_their_range():
    found = RobustScale.of(np.tile([0.0, 1.0], 50))
    assert found.span == 1.0
    assert not len(found.labels)


def test_a_code_for_unknown_that_was_moved_is_that_code_still(normal):
    spoilt = np.concatenate([normal, np.full(30, 9999.0)])
    found = RobustScale.of(spoilt)
    what = found.read(np.array([9990.0, 10_050.0, 6000.0, 200.0, np.nan]))[1]
    assert what.tolist() == [FIRST_LABEL, FIRST_LABEL, FIRST_LABEL, REGULAR, MISSING]


def test_levels_far_apart_are_told_apart_with_noise_on_them():
    rng = np.random.default_rng(0)
    levels = 3.0 ** rng.integers(0, 9, 500)
    found = RobustScale.of(levels)
    assert len(found.labels) > 3
    assert np.array_equal(found.read(levels * rng.uniform(0.95, 1.05, 500))[1], found.read(levels)[1])


def test_a_shared_value_ends_within_a_thirtieth_of_the_range():
    gains = np.concatenate([np.zeros(900), np.linspace(1000.0, 9000.0, 100)])
    found = RobustScale.of(gains)
    reach = found.span / NEAR
    assert found.read(np.array([0.9, 1.1]) * reach)[1].tolist() == [FIRST_LABEL, REGULAR]


def test_two_labels_never_reach_each_other():
    found = RobustScale.of(np.array([0.0] * 97 + [5.0] * 3))
    assert found.labels.tolist() == [0.0, 5.0]
    assert found.reach.max() < 2.5
    assert found.read(np.array([2.4, 2.5, 2.6, 9.0]))[1].tolist() == [
        FIRST_LABEL,
        REGULAR,
        FIRST_LABEL + 1,
        REGULAR,
    ]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [np.nan] * 4,
        [7.0] * 4,
        [1.7e308, -1.7e308, 0.0, 1.0],
        [5e-324, 1e-323, *[0.0] * 40],
        [-1.5e308, np.nan] * 3,
    ],
)
def test_no_value_is_nowhere(values):
    scale = RobustScale.of(np.array(values, dtype=float))
    numbers, what = scale.read(np.array([1.7e308, -1.7e308, 5e-324, 0.0, np.nan]))
    assert np.isfinite(numbers).all()
    assert what[-1] == MISSING
    assert scale.span > 0


def test_neither_order_nor_unit_moves_a_place(normal):
    values = np.concatenate([normal, np.full(20, 9999.0), [np.nan]])
    numbers, what = RobustScale.of(values).read(values)
    for other in (values * 1000.0, values / 7.0 - 3.0):
        moved, same = RobustScale.of(np.random.default_rng(1).permutation(other)).read(other)
        assert np.array_equal(same, what)
        assert moved == pytest.approx(numbers, abs=1e-9)
