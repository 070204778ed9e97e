"""Shifts: were two numbers of many people moved by the same constants?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Floats, Floats32
from synth_audit.audits.recognition.matching import AT_ONCE, CELLS, MOST_BITS, CodedCells
from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo

_NUMBERS = 8
"""Numbers that are paired, those with most different values: 28 pairs."""

_GRID = 2**18
"""Cells of one cross-correlation: a few milliseconds."""

_COMMON = 0.05
"""Share of the people from which on a value is left out: it makes spikes without telling anybody apart."""

_SPIKES = 6
"""Shifts that are followed, in each resolution."""

_CLEAR = 6.0
"""Standard deviations by which a further column's shift must stand out among its bins."""


Codes16 = npt.NDArray[np.int16]


class _Shift(NamedTuple):
    """A spike: so many bins in one column and so many in another, modulo the sizes of their grids."""

    strength: float
    lags: dict[int, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Shifts:
    """Rows at constant differences from people in two numbers and more.

    The joint histograms of two numbers, of people and of rows, are correlated over all shifts (FFT). A shift
    that many pairs share is a spike over its neighbourhood, and over the same of people among themselves.
    Further columns join by the shift that stands out among the pairs at hand. A row's score is the sum of
    the bits of the columns in which it lies at the shift, with and without those of equal labels.

    Source: ours; cross-correlation by FFT.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Numbers moved by a constant", finds="a row that lies at one constant difference"
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score the surest shifts, to the last digit and in coarse bins."""
        ranked = sorted((c for c in pool.columns if c.numeric), key=lambda c: -len(np.unique(c.people)))
        labels = [CodedCells.of(c) for c in pool.columns if not c.numeric]
        for reach in (0, 1):
            grids = [_BinnedNumbers.of(c, reach) for c in ranked[:_NUMBERS]]
            spikes = [s for i, j in combinations(range(len(grids)), 2) for s in _spikes(grids, i, j)]
            spikes = sorted(spikes, key=lambda s: -s.strength)[:_SPIKES]
            lags = [_joined(grids, s.lags, reach) for s in spikes]
            told = _told(grids, lags, reach, labels)
            for k, (lag, alone, beside) in enumerate(zip(lags, *told, strict=True)):
                names = tuple(grids[i].name for i in sorted(lag))
                what = f"shift {k + 1}, {'coarse' if reach else 'exact'}"
                yield Score(what, alone, names)
                yield Score(f"{what}, and labels", beside, names)


@dataclass(frozen=True, eq=False)
class _BinnedNumbers:
    """One number in bins of equal width, -1 where there is none or a common one."""

    name: str
    people: Codes = field(repr=False)
    release: Codes = field(repr=False)
    size: int

    @classmethod
    def of(cls, column: PooledColumn, reach: int) -> _BinnedNumbers:
        least, most = np.nanmin(column.people), np.nanmax(column.people)
        coarse = max(column.step, column.width / CELLS)  # where it is not compared to the last digit
        width = coarse if reach else column.step
        # Room for a third more than the range, so that a shift does not wrap round to others.
        size = int(2 ** np.clip(np.ceil(np.log2((most - least) * 1.3 / width + 2)), 5, 12))
        people, release = (_bins(x, width, size) for x in (column.people, column.release))
        return cls(column.name, people, release, size)


def _bins(values: Floats, width: float, size: int) -> Codes:
    different, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    common = np.isin(values, different[counts > _COMMON * len(values)])
    able = np.isfinite(values) & ~common
    return np.where(able, np.mod(np.floor(np.where(able, values, 0.0) / width + 0.5), size), -1).astype(
        np.int64
    )


def _spikes(grids: Sequence[_BinnedNumbers], i: int, j: int) -> Iterator[_Shift]:
    """The two shifts of a pair of columns that stand out most."""
    from scipy.ndimage import uniform_filter  # lazy import: keeps the CLI's start fast

    a, b = grids[i].size, grids[j].size
    while a * b > _GRID:
        a, b = (a // 2, b) if a > b else (a, b // 2)
    counts = [_joint(grids[i], grids[j], side, a, b) for side in ("people", "release")]
    n, m = (x.sum() for x in counts)
    if not min(n, m):
        return
    people, release = (np.fft.rfft2(x) for x in counts)
    found = np.fft.irfft2(np.conj(people) * release, (a, b))
    usual = np.fft.irfft2(np.conj(people) * people, (a, b)) * (m / n)
    usual[0, 0] = 0  # each person beside itself
    around = (uniform_filter(found, 5, mode="wrap") * 25 - found) / 24
    usual = np.maximum(np.maximum(around, usual), 0)
    strength = (found - usual) / np.sqrt(usual + 1)
    strength[0, 0] = 0  # equal values are no shift
    for k in np.argpartition(strength.ravel(), -2)[-2:]:
        x, y = np.unravel_index(k, strength.shape)
        yield _Shift(float(strength[x, y]), {i: (int(x), a), j: (int(y), b)})


def _joint(first: _BinnedNumbers, second: _BinnedNumbers, side: str, a: int, b: int) -> Floats32:
    x, y = getattr(first, side), getattr(second, side)
    able = (x >= 0) & (y >= 0)
    cells = x[able] % a * b + y[able] % b
    return np.bincount(cells, minlength=a * b).reshape(a, b).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Shifted:
    """One number at a shift: the rows' bins, -1 where there is none, and those where people's would lie."""

    people: Codes = field(repr=False)
    rows: Codes16 = field(repr=False)
    by: int
    size: int

    @classmethod
    def of(cls, grid: _BinnedNumbers, lag: tuple[int, int]) -> _Shifted:
        by, size = lag
        rows = np.where(grid.release >= 0, grid.release % size, -1).astype(np.int16)
        return cls(grid.people, rows, by, size)

    def found(self, reach: int, records: slice) -> Bools:
        """Which rows lie at the shift, give or take ``reach`` bins, shape (records, rows)."""
        mine = self.people[records]
        found = np.zeros((len(mine), len(self.rows)), dtype=np.bool_)
        for off in range(-reach, reach + 1):
            wanted = np.where(mine >= 0, (mine + self.by + off) % self.size, -2).astype(np.int16)
            found |= self.rows == wanted[:, None]
        return found


def _blocks(grids: Sequence[_BinnedNumbers]) -> Iterator[slice]:
    """Blocks of records that are held beside all rows."""
    n, m = len(grids[0].people), len(grids[0].release)
    size = max(1, AT_ONCE // m)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _joined(
    grids: Sequence[_BinnedNumbers], lags: dict[int, tuple[int, int]], reach: int
) -> dict[int, tuple[int, int]]:
    """The shift with those of further columns that go with it.

    By chance means: where the rows of the pairs are permuted, on average.
    """
    pairs = []
    shifted = [_Shifted.of(grids[i], lag) for i, lag in lags.items()]
    for block in _blocks(grids):
        both = np.logical_and.reduce([s.found(reach, block) for s in shifted])
        pairs.append(np.flatnonzero(both) + block.start * both.shape[1])
    record, row = np.divmod(np.concatenate(pairs), len(grids[0].release))
    joined = dict(lags)
    for k, grid in enumerate(grids):
        if k not in lags and len(record):
            away = (grid.release[row] - grid.people[record]) % grid.size
            counts = np.bincount(away, minlength=grid.size)
            people, release = (
                np.fft.rfft(np.bincount(x % grid.size, minlength=grid.size))
                for x in (grid.people[record], grid.release[row])
            )
            by_chance = np.maximum(np.fft.irfft(np.conj(people) * release, grid.size) / len(record), 0)
            clear = (counts - by_chance) / np.sqrt(by_chance + 1)
            if clear.max() > _CLEAR:
                joined[k] = int(clear.argmax()), grid.size
    return joined


def _told(
    grids: Sequence[_BinnedNumbers],
    shifts: Sequence[dict[int, tuple[int, int]]],
    reach: int,
    labels: Sequence[CodedCells],
) -> tuple[Floats, Floats]:
    """Bits of each record's best row, by numbers alone and with equal labels, shape (shifts, records)."""
    n = len(grids[0].people) if grids else 0
    told = [
        [(_Shifted.of(grids[i], lag), np.float32(_bits_at(grids[i], lag, reach))) for i, lag in lags.items()]
        for lags in shifts
    ]
    tables = [c.agreement() for c in labels]
    alone, beside = np.empty((len(shifts), n)), np.empty((len(shifts), n))
    for block in _blocks(grids) if shifts else ():
        equal = np.zeros((block.stop - block.start, len(grids[0].release)), np.float32)
        for column, table in zip(labels, tables, strict=True):
            equal += np.take(table[column.people[block]], column.release, axis=1)
        for k, shifted in enumerate(told):
            bits = np.zeros_like(equal)
            for number, by_one in shifted:
                bits += number.found(reach, block) * by_one
            alone[k, block] = bits.max(axis=1)
            bits += equal
            best = bits.max(axis=1)
            bits[np.arange(len(bits)), bits.argmax(axis=1)] = -np.inf
            beside[k, block] = best - bits.max(axis=1) + 1e-3 * best
    return alone, beside


def _bits_at(grid: _BinnedNumbers, lag: tuple[int, int], reach: int) -> float:
    """Bits that a shift of one column tells, from the share of all pairs at it."""
    by, size = lag
    people, release = (np.bincount(x[x >= 0] % size, minlength=size) for x in (grid.people, grid.release))
    pairs = sum(float(people @ np.roll(release, -(by + off))) for off in range(-reach, reach + 1))
    return -float(np.log2(max(pairs / (len(grid.people) * len(grid.release)), 2.0**-MOST_BITS)))
