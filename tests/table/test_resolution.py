"""The resolution of a column, and numbers put on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit.table.resolution import (
    TIME_UNITS,
    Resolution,
    ValueGrid,
    decimal_grids,
    resolution_of,
    time_grids,
)

NOISE = np.random.default_rng(0).normal(50, 10, 800)
WHOLE = np.rint(NOISE)


def found(values, **more):
    return resolution_of(np.asarray(values, dtype=float), decimal_grids(), **more)


def step(resolution):
    return resolution.grid.numerator / resolution.grid.denominator


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.round(NOISE, 2), 0.01),
        (WHOLE, 1),
        (WHOLE * 100, 100),
        (np.rint(NOISE / 5) * 5, 5),
        (np.rint(NOISE * 4) / 4, 0.25),
        (np.rint(NOISE * 3) / 3, 1 / 3),
        (WHOLE * 2500, 2500),
        (np.rint(NOISE / 2) * 2, 2),
        (np.where(np.arange(800) % 9, 0, np.round(NOISE, 1)), 0.1),
    ],
    ids=["cents", "whole", "hundreds", "fives", "quarters", "thirds", "2500", "twos", "mostly zero"],
)
def test_the_coarsest_step_is_found(values, expected):
    resolution = found(values)
    assert step(resolution) == pytest.approx(expected, rel=1e-12)
    assert resolution.holds(values).all()
    assert not resolution.holds(values + expected / 2).any()


def test_noise_has_none_nor_have_a_constant_and_gaps():
    assert found(NOISE) is None
    assert found([4.0, 4.0]) is None
    assert found([np.nan, np.nan]) is None


def test_few_finer_numbers_do_not_set_it_and_a_frequent_one_is_kept():
    few = np.where(np.arange(800) % 200 == 0, NOISE, np.round(NOISE, 1))
    assert step(found(few)) == 0.1
    mean = np.where(np.arange(800) % 5 == 0, NOISE.mean(), WHOLE)
    resolution = found(mean)
    assert (step(resolution), resolution.atoms) == (1, (NOISE.mean(),))
    assert resolution.nearest(np.array([NOISE.mean(), NOISE.mean() + 0.1])).tolist() == [NOISE.mean(), 50]


def test_what_arithmetic_leaves_is_no_finer_digit():
    summed = np.round(NOISE, 2) + 0.1 + 0.2
    resolution = found(summed)
    assert (step(resolution), resolution.rounded) == (0.01, True)
    assert resolution.holds(summed).all()
    assert not resolution.holds(summed + 1e-9).any()


def test_significant_digits_are_counted_where_large_numbers_are_coarser():
    values = np.array([float(f"{x:.3g}") for x in np.exp(np.random.default_rng(1).normal(0, 4, 800))])
    resolution = found(values)
    assert resolution.digits == 3
    assert resolution.holds(np.array([1.23, 45600.0])).all()
    assert not resolution.holds(np.array([1.234, 45612.0])).any()


def test_single_precision_is_compared_as_it_was_stored():
    cents = np.round(NOISE, 2).astype(np.float32).astype(float)
    resolution = found(cents, single=True)
    assert step(resolution) == 0.01
    assert resolution.holds(cents, single=True).all()
    assert resolution.holds(np.round(NOISE, 2)).all()


@pytest.mark.parametrize("unit", TIME_UNITS)
def test_units_of_time(unit):
    start = np.datetime64("2011-03-01T07:11:13.017", "us").astype(np.int64)
    moments = TIME_UNITS[unit].nearest(start + np.arange(60.0) * 5.0e13 + np.arange(60) ** 2 * 1.01e9)
    resolution = resolution_of(moments, time_grids(), decimal=False)
    assert resolution == Resolution(TIME_UNITS[unit])
    assert not resolution.holds(moments + 1000 * (unit != "millisecond") + 1).any()


def test_quarters_of_an_hour():
    moments = np.arange(50.0) * 900e6
    assert resolution_of(moments, time_grids(), decimal=False).grid == ValueGrid(900e6)


def test_the_nearest_month_may_be_the_next():
    days = np.array(["2024-01-20", "2024-01-02", "NaT"], dtype="datetime64[us]")
    values = np.where(np.isnat(days), np.nan, days.astype(np.int64))
    near = TIME_UNITS["month"].nearest(values)
    expected = np.array(["2024-02-01", "2024-01-01"], dtype="datetime64[us]").astype(float)
    assert near[:2].tolist() == expected.tolist()
    assert np.isnan(near[2])


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.sampled_from([0.01, 0.25, 1.0, 5.0, 100.0]),
    st.floats(-50, 0),
    st.floats(1, 50),
)
def test_what_is_rounded_lies_on_the_grid_and_within_the_ends(values, width, low, high):
    resolution = Resolution(ValueGrid.of_step(width))
    made = resolution.nearest(np.array(values), (low, high))
    assert ((made >= low) & (made <= high)).all()
    assert resolution.holds(made).all()  # 0 lies between the ends, and on every grid
    free = resolution.nearest(np.array(values))
    assert np.abs(free - values).max() <= width / 2 * (1 + 1e-6)


def test_ends_that_hold_no_step_are_kept():
    assert Resolution(ValueGrid(5.0)).nearest(np.array([1.0, 9.0]), (2.0, 3.0)).tolist() == [2, 3]


def test_huge_numbers_stay():
    assert Resolution(ValueGrid(1.0, 100.0)).nearest(np.array([1e300, np.nan]))[0] == 1e300


@pytest.mark.parametrize("values", [np.round(NOISE, 2), WHOLE * 100, np.rint(NOISE * 3) / 3])
def test_it_survives_as_json(values):
    resolution = found(values)
    assert Resolution.from_plain(resolution.plain()) == resolution


@pytest.mark.parametrize("width", [0.3333333333333333, 1 / 7, 0.0123456789, 5e-324, 1e308])
def test_a_step_of_any_digits_puts_numbers_on_it(width):
    grid, values = ValueGrid.of_step(width), np.append(np.round(NOISE, 2) * 1e7, np.round(NOISE, 2))
    made = grid.nearest(values)
    np.testing.assert_array_equal(grid.nearest(made), made)
    told_apart = np.abs(values) < width * 2.0**53
    assert (np.abs(made - values) <= 0.5 * width + 1e-9 * np.abs(values)).all()
    times = made[told_apart] / width
    np.testing.assert_allclose(times, np.rint(times), rtol=1e-12, atol=1e-6)
