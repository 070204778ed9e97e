"""How finely the numbers of a column are given: the coarsest grid that they lie on, and numbers put on it.

Digits beyond it are nobody's measurement: a release that has them carries something else in them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np

from synth_audit.arrays import Bools, Floats

Calendar = Literal["M", "Y"]
Ends = tuple[float, float]

_EXACT = 2.0**53
"""From here on neighbouring floats are a whole step apart, or more."""

_OFF = 0.02
"""Share of distinct numbers that may lie off a grid that is a column's; one of :data:`_ENOUGH` may."""

_ENOUGH = 20
"""Distinct numbers from which on one may lie off the grid."""

_OFTEN_OFF = 0.05
"""The same of numbers that many rows hold; one always may."""

_DAY = 86_400e6
"""In microseconds."""

_SAMPLE = 10_000
"""Rows, evenly spaced, that a grid is first looked for in."""

_FIRST_LOOK = 100
"""Numbers that rule out most grids before all are compared."""

_MANY = 10
"""Fewer distinct numbers than this may all be multiples of 2 or 5 by chance."""

_ATOM = 10
"""A number off the grid that so many rows hold is one of the column's own, such as a mean put for unknown."""

_ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Relative error that a product and a quotient of floats may add."""

_MOST_DIGITS = 15
"""Decimal digits that every float64 keeps."""

_LARGEST, _SMALLEST = 12, -15
"""Powers of ten that are tried as a step."""

_MULTIPLES = ((25, 1), (5, 1), (5, 2), (2, 1))
"""Steps between powers of ten, as (numerator, denominator), the coarsest first."""

_DIVISIONS = (3, 6, 7, 9, 11, 12, 13)
"""Parts of a whole in which people count that are no decimal steps, months and weekdays among them."""


@dataclass(frozen=True)
class ValueGrid:
    """The whole multiples of ``numerator / denominator``, or the first moments of months or years.

    Attributes:
        calendar: of numbers that are microseconds since 1970.
    """

    numerator: float = 1.0
    denominator: float = 1.0
    calendar: Calendar | None = None

    @classmethod
    def of_step(cls, step: float) -> Self:
        """The multiples of a step as it is written: 0.25 is 1/4."""
        exact = Fraction(repr(float(step)))
        written = exact.denominator < 10**300  # beyond, no float holds it
        return cls(float(exact.numerator), float(exact.denominator)) if written else cls(float(step))

    def nearest(self, values: Floats) -> Floats:
        """The nearest multiple of each number; a number so large that floats are coarser stays."""
        if self.calendar:
            return self._first_moments(values)
        with np.errstate(over="ignore", invalid="ignore"):
            times = np.rint(values * self.denominator / self.numerator) + 0.0
            found = times * self.numerator
            # A step of many digits, such as 0.3333333333333333, has products beyond what floats count.
            found = np.where(np.abs(found) < _EXACT, found / self.denominator, times * self.step)
        return np.where(np.abs(times) < _EXACT, found, values)

    @property
    def step(self) -> float:
        """The distance of neighbours; of months and years the shortest."""
        if self.calendar:
            return {"M": 28.0, "Y": 365.0}[self.calendar] * _DAY
        return self.numerator / self.denominator

    def within(self, ends: Ends) -> Ends:
        """The outermost multiples between two ends; the ends themselves where there are none."""
        low, high = (float(self.nearest(np.array([end]))[0]) for end in ends)
        if self.calendar is None:
            step = self.numerator / self.denominator
            low, high = low + step * (low < ends[0]), high - step * (high > ends[1])
            low, high = (float(x) for x in self.nearest(np.array([low, high])))
        return (low, high) if ends[0] <= low <= high <= ends[1] else ends

    def _first_moments(self, values: Floats) -> Floats:
        known = ~np.isnan(values)
        moments = np.where(known, values, 0.0).astype(np.int64).astype("datetime64[us]")
        start = moments.astype(f"datetime64[{self.calendar}]")
        ends = np.stack([(start + i).astype("datetime64[us]").astype(np.int64) for i in (0, 1)])
        later = values - ends[0] > ends[1] - values
        return np.where(known, np.where(later, ends[1], ends[0]), np.nan)


@dataclass(frozen=True)
class Resolution:
    """The grid of a column's numbers and how many significant digits they have.

    Attributes:
        digits: of which no number has more; None for no limit but the grid's.
        rounded: numbers miss the grid by what arithmetic in floating point leaves.
        atoms: single numbers off the grid that are the column's own.
    """

    grid: ValueGrid
    digits: int | None = None
    rounded: bool = False
    atoms: tuple[float, ...] = ()

    def nearest(self, values: Floats, ends: Ends | None = None) -> Floats:
        """The nearest number of this resolution for each, between two ends if these are given."""
        found = values if self.digits is None else _with_digits(values, self.digits)
        found = self.grid.nearest(found)
        if ends is not None:
            found = np.clip(found, *self.grid.within(ends))
        return np.where(np.isin(values, self.atoms), values, found)

    def holds(self, values: Floats, *, single: bool = False) -> Bools:
        """True for numbers that are not given more finely, and where missing; shape (n,).

        Args:
            single: the numbers were stored as float32.
        """
        fine = _off(self.grid.nearest(values), values, single=single, rounded=self.rounded)
        if self.digits is not None:
            digits = _with_digits(values, self.digits)
            fine |= _off(digits, values, single=single, rounded=self.rounded)
        return ~fine

    def finer_than(self, other: "Resolution") -> bool:
        """Whether it leaves room for numbers given more finely than another's."""
        more_digits = other.digits is not None and (self.digits is None or self.digits > other.digits)
        return more_digits or self.grid.step < other.grid.step * (1 - _ROUNDING)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        grid = [self.grid.numerator, self.grid.denominator, self.grid.calendar]
        return {"grid": grid, "digits": self.digits, "rounded": self.rounded, "atoms": list(self.atoms)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """The resolution that wrote these JSON values."""
        return cls(ValueGrid(*plain["grid"]), plain["digits"], plain["rounded"], tuple(plain["atoms"]))


def decimal_grids() -> tuple[ValueGrid, ...]:
    """Powers of ten, coarse to fine."""
    powers = range(_LARGEST, _SMALLEST - 1, -1)
    return tuple(ValueGrid(10.0 ** max(power, 0), 10.0 ** max(-power, 0)) for power in powers)


TIME_UNITS: Mapping[str, ValueGrid] = {
    "year": ValueGrid(calendar="Y"),
    "month": ValueGrid(calendar="M"),
    "day": ValueGrid(86_400e6),
    "hour": ValueGrid(3_600e6),
    "minute": ValueGrid(60e6),
    "second": ValueGrid(1e6),
    "millisecond": ValueGrid(1e3),
}
"""Grids of microseconds since 1970, coarse to fine."""

_PARTS_OF_AN_HOUR = tuple(ValueGrid(minutes * 60e6) for minutes in (30, 15, 10, 5))


def time_grids() -> tuple[ValueGrid, ...]:
    """Units of time and some parts of an hour, coarse to fine."""
    units = list(TIME_UNITS.values())
    return (*units[:4], *_PARTS_OF_AN_HOUR, *units[4:])


def resolution_of(
    values: Floats, grids: Sequence[ValueGrid], *, single: bool = False, decimal: bool = True
) -> Resolution | None:
    """The coarsest resolution that 98 of 100 distinct numbers have; None where there is none, as of noise.

    Zeros are on every grid and say nothing. Of long columns a part is looked at.

    Args:
        values: shape (n,), NaN where missing. grids: coarse to fine.
        decimal: grids are powers of ten, between which lie 2, 2.5, 5 and 25 times as much; where none of them
            is the column's, thirds and the like and what arithmetic leaves are tried; digits are counted.
    """
    values = values[:: max(1, len(values) // _SAMPLE)]
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) < 2:
        return None
    body = _Body(distinct[distinct != 0], counts[distinct != 0] >= _ATOM, single)
    for found in _candidates(grids, decimal=decimal):
        if body.fits(found):
            return body.with_atoms(_refined(found, body) if decimal else found)
    return None


@dataclass(frozen=True, eq=False)
class _Body:
    """The distinct numbers of a column but zero.

    Attributes:
        often: those that many rows hold. single: they were stored as float32.
    """

    values: Floats
    often: Bools
    single: bool

    def fits(self, resolution: Resolution) -> bool:
        """Whether hardly any number is finer, and none so large that floats are coarser themselves.

        A few that many rows hold may be, such as a mean put for unknown.
        """
        n = len(self.values)
        few = self._off(resolution, slice(None, None, max(1, n // _FIRST_LOOK)))
        if n > 2 * _FIRST_LOOK and few.mean() > 2 * _OFTEN_OFF:
            return False
        off = self._off(resolution, slice(None))
        once, often = int((off & ~self.often).sum()), int((off & self.often).sum())
        return once <= max(n >= _ENOUGH, _OFF * n) and often <= max(1.0, _OFTEN_OFF * n)

    def large(self) -> "_Body":
        """The tenth that is largest."""
        size = np.abs(self.values)
        at = size >= np.quantile(size, 0.9)
        return _Body(self.values[at], self.often[at], self.single)

    def with_atoms(self, resolution: Resolution) -> Resolution:
        """The resolution with the numbers off its grid that many rows hold."""
        odd = self._off(resolution, slice(None)) & self.often
        return replace(resolution, atoms=tuple(self.values[odd].tolist()))

    def _off(self, resolution: Resolution, part: slice) -> Bools:
        values = self.values[part]
        off = ~resolution.holds(values, single=self.single)
        if resolution.grid.calendar is None:
            off |= np.abs(values) >= _EXACT / resolution.grid.denominator
        return off


def _candidates(grids: Sequence[ValueGrid], *, decimal: bool) -> Iterator[Resolution]:
    yield from map(Resolution, grids)
    if decimal:
        yield from (Resolution(ValueGrid(1.0, float(n))) for n in _DIVISIONS)
        coarser = (grid for grid in grids if grid.denominator <= 1e9)
        yield from (Resolution(grid, rounded=True) for grid in coarser)


def _refined(found: Resolution, body: _Body) -> Resolution:
    """The same with a multiple of its step, and with significant digits, as far as the numbers allow them."""
    if len(body.values) < _MANY:
        return found
    coarser = next((x for x in _multiples(found) if body.fits(x)), found)
    grid, large = coarser.grid, body.large()
    tenfold = replace(coarser, grid=ValueGrid(grid.numerator, grid.denominator / 10))
    if grid.denominator < 1e3 or coarser.rounded or len(large.values) < _MANY or not large.fits(tenfold):
        return coarser
    # Large numbers are given more coarsely than small ones: it is digits that are counted.
    counted = (replace(coarser, digits=n) for n in range(1, _MOST_DIGITS + 1))
    return next((x for x in counted if body.fits(x)), coarser)


def _multiples(found: Resolution) -> Iterator[Resolution]:
    """25, 5, 2.5 and 2 times the step."""
    for times, over in _MULTIPLES:
        numerator, denominator = found.grid.numerator * times, found.grid.denominator * over
        common = over if numerator % over == 0 else 1
        yield replace(found, grid=ValueGrid(numerator / common, denominator / common))


def _off(near: Floats, values: Floats, *, single: bool, rounded: bool) -> Bools:
    if rounded:
        near = np.where(np.abs(near - values) <= _ROUNDING * np.abs(values), values, near)
    if single:
        with np.errstate(over="ignore"):
            near, values = (x.astype(np.float32).astype(np.float64) for x in (near, values))
    off: Bools = (near != values) & ~np.isnan(values)
    return off


def _with_digits(values: Floats, digits: int) -> Floats:
    """The nearest number of so many significant digits, by a single division as reading it would give it."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size = np.floor(np.log10(np.abs(values)))
        places = np.where(np.isfinite(size), digits - 1 - size, 0.0)
        fine, coarse = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        found = np.rint(values * fine / coarse) * coarse / fine
    return np.where(np.isfinite(found) & (places <= 22), found, values)
