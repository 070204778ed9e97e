"""Recoding: does a row agree with the person once both are read in other terms?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Integers
from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo
from synth_audit.audits.recognition.views.agreement import agreement_scores

_DAY = 86_400 * 10**6
_MOST_DIGITS, _BITS = 15, 4
"""Digits that a double holds, and bits that count as many of one."""

_MOST_DECIMALS = 300
"""Places after the point: ten to a few more is no double."""

_FEWEST = 13
"""Different values from which on a number has ranks that tell people apart; fewer are labels."""


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


@dataclass(frozen=True, kw_only=True)
class Recoding:
    """Agreement in bits after every column was recoded alike.

    Codings of numbers: ranks within each table (any unit, any increasing scale), ranks counted from the other
    end, the digits in whatever order (slips of typing), and differences of neighbouring columns in shares of
    their ranges, modulo 1 (one shift of all numbers of a person).

    Source: Fellegi & Sunter 1969 for the bits; the codings are ours.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Agreement in other units, scales or spellings",
        finds="a row that agrees once numbers are read by rank, by digits or by their differences",
        cost="minutes",
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score each coding in turn."""
        numbers = [c for c in pool.columns if c.numeric]
        labels = [c for c in pool.columns if not c.numeric]
        for name, columns in _codings(numbers):
            for score in agreement_scores(chain(columns, labels), pool, rng, name=name):
                yield replace(score, name=f"{name}, {score.name}")


def _codings(numbers: Sequence[PooledColumn]) -> Iterator[tuple[str, Iterable[PooledColumn]]]:
    """Codings by name, each column made when it is asked for: large ones are not all held."""
    fine = [c for c in numbers if len(np.unique(c.people[np.isfinite(c.people)])) >= _FEWEST]
    if not fine:
        return
    rest = [c for c in numbers if c not in fine]
    yield "ranks", chain((_by_rank(c) for c in fine), rest)
    yield "mirrored ranks", chain((_by_rank(c, mirrored=True) for c in fine), rest)
    yield "digits", map(_by_digits, fine)
    if len(fine) >= 3:
        ring = sorted(fine, key=lambda c: (np.nanmin(c.people), np.nanmax(c.people), c.name))
        yield "differences", map(_difference, ring, [*ring[1:], ring[0]])


def _by_rank(column: PooledColumn, *, mirrored: bool = False) -> PooledColumn:
    release = _ranks(column.release)
    return replace(column, people=_ranks(column.people), release=1 - release if mirrored else release)


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata  # lazy import: keeps the CLI's start fast

    known = np.isfinite(values)
    found = np.full(len(values), np.nan)
    found[known] = (2 * rankdata(values[known]) - 1) / (2 * max(1, known.sum()))
    return found


def _by_digits(column: PooledColumn) -> PooledColumn:
    both = np.concatenate([column.people, column.release])
    read = digits_of_times if column.time else digits_of_numbers
    codes = digit_bags(read(both, column.step), np.isfinite(both)).astype(np.float64)
    n = len(column.people)
    return replace(column, people=codes[:n], release=codes[n:], numeric=False)


def _difference(a: PooledColumn, b: PooledColumn) -> PooledColumn:
    def share(c: PooledColumn, values: Floats) -> Floats:
        low, high = np.nanmin(c.people), np.nanmax(c.people)
        return (values - low) / (high - low)

    people = (share(a, a.people) - share(b, b.people)) % 1
    release = (share(a, a.release) - share(b, b.release)) % 1
    return PooledColumn(f"{a.name} - {b.name}", people, release, numeric=True)
