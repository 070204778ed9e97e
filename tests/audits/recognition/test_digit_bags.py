"""Digits in whatever order: slips of typing keep them, other numbers and unknown ones do not."""

import numpy as np
import pytest

from synth_audit.audits.recognition.views.recoding import digit_bags, digits_of_numbers, digits_of_times


def bags(*values, step=1.0):
    numbers = np.array(values, float)
    return digit_bags(digits_of_numbers(numbers, step), np.isfinite(numbers))


def test_exchanged_digits_lost_zeros_and_a_moved_point_are_one_bag():
    assert len(set(bags(7203, 7230, 723, 372, -237))) == 1
    assert len(set(bags(1.25, 12.5, 2.15, step=0.01))) == 1


def test_other_digits_are_other_bags():
    assert len(set(bags(7203, 7204, 77203, 22, 2, 0))) == 6


def test_digits_finer_than_the_step_are_none():
    assert len(set(bags(0.1 + 0.2, 0.3, step=0.1))) == 1
    assert len(set(bags(0.25, 0.5, step=0.25))) == 2


def test_what_is_unknown_has_no_bag_and_large_numbers_fit():
    assert (bags(np.nan, 5, np.inf) < 0).tolist() == [True, False, True]
    assert (bags(9e15, 8e300, 0) >= 0).all()


@pytest.mark.parametrize("step", [5e-324, 1e-310, 1e-290])
def test_the_smallest_steps_and_the_largest_numbers_end_in_digits(step):
    digits = digits_of_numbers(np.array([0, 8e300, np.nan, 1e-289]), step)
    assert digits[0] == digits[2] == 0 < digits[3] < digits[1] == 10**15 - 1


def microseconds(*times):
    return np.array([np.datetime64(t, "us").astype(np.int64) for t in times], float)


def test_times_are_read_as_they_are_written():
    found = digits_of_times(microseconds("2019-03-07T23:04:59", "1969-12-31T00:00:01"), 1e6)
    assert found.tolist() == [20190307230459, 19691231000001]
    assert digits_of_times(microseconds("1899-11-30"), 86_400e6).tolist() == [18991130]


def test_a_day_in_the_place_of_the_month_is_one_bag():
    found = digits_of_times(microseconds("2019-03-07", "2019-07-03", "2019-03-08"), 86_400e6)
    same, exchanged, other = digit_bags(found, np.ones(3, bool))
    assert same == exchanged != other
