"""Which digits numbers have, in whatever order: what slips of those who type leave of a number.

Two digits exchanged, a zero lost or put in, and the decimal point moved keep which other digits there are,
though such numbers are near one another in no distance.
"""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Bools, Codes, Floats, Integers

_DAY = 86_400 * 10**6
_MOST_DIGITS, _BITS = 15, 4
"""Digits that a double holds, and bits that count as many of one."""

_MOST_DECIMALS = 300
"""Places after the point: ten to a few more is no double."""


def digits_of_numbers(values: Floats, step: float) -> Integers:
    """The digits of numbers as one whole number, those after the point as many as the step has.

    Args:
        values: NaN where there is none, which has no digits.
        step: how finely the numbers are given, above 0.
    """
    decimals = np.clip(np.ceil(-np.log10(step) - 1e-9), 0, _MOST_DECIMALS)
    with np.errstate(over="ignore"):
        size = np.where(np.isfinite(values), np.abs(values), 0.0) * 10.0**decimals
    digits: Integers = np.rint(np.minimum(size, 10.0**_MOST_DIGITS - 1)).astype(np.int64)
    return digits


def digits_of_times(values: Floats, step: float) -> Integers:
    """The digits of times as they are written, year, month and day first.

    Args:
        values: microseconds since 1970, NaN where there is none.
        step: how finely they are given, in microseconds; hours to seconds are left out from a day on.
    """
    at = np.where(np.isfinite(values), values, 0.0).astype(np.int64)
    day = np.floor_divide(at, _DAY)
    dates = day.astype("datetime64[D]")
    months, years = dates.astype("datetime64[M]"), dates.astype("datetime64[Y]")
    month = (months - years.astype("datetime64[M]")).astype(np.int64) + 1
    day_of_month = (dates - months.astype("datetime64[D]")).astype(np.int64) + 1
    written: Integers = ((years.astype(np.int64) + 1970) * 100 + month) * 100 + day_of_month
    if step < _DAY:
        second = (at - day * _DAY) // 10**6
        written = ((written * 100 + second // 3600) * 100 + second // 60 % 60) * 100 + second % 60
    return written


def digit_bags(digits: Integers, known: Bools) -> Codes:
    """Whole numbers as codes, equal where they have the same digits but zeros, in whatever order.

    Returns:
        Shape (n,), below 0 where a number is not known.
    """
    left, bags = np.abs(digits), np.zeros(len(digits), np.int64)
    while left.any():
        left, digit = np.divmod(left, 10)
        bags += np.where(digit > 0, np.int64(1) << (_BITS * (digit - 1)).clip(0), 0)
    codes = np.unique(bags, return_inverse=True)[1]
    return np.where(known, codes, -1)
