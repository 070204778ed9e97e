"""Shifts: were two numbers of many people moved by the same constants?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import ClassVar, NamedTuple, Self

import numpy as np

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits.recognition.coded_cells import CELLS, MOST_BITS, CodedCells
from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo

_NUMBERS = 8
"""Numbers that are paired, those with most different values: 28 pairs."""

_GRID = 2**18
"""Cells of one cross-correlation: a few milliseconds."""

_COMMON = 0.05
"""Share of the people from which on a value is left out: it makes spikes and distinguishes no person."""

_SPIKES = 6
"""Shifts by which people are scored, in each resolution."""

_PAIRS = 2**27
"""Records times rows of a block. At most some hundredths of them are at a spike, since no common value is."""

_CLEAR = 6.0
"""Standard deviations by which a shift of two columns, or of a further one, must exceed chance."""


_Shift = tuple[tuple[int, float], ...]
"""Columns, and how many bins each is moved by."""


class _Spike(NamedTuple):
    """A spike: so many bins in one column and so many in another, modulo the sizes of their grids."""

    strength: float
    lags: dict[int, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Shifts:
    """Rows at constant differences from people in two numbers and more.

    The joint histograms of two numbers, of people and of rows, are correlated over all shifts (FFT). A shift
    that many pairs share is a spike, compared with shifts near it and with pairs of people. Further columns
    join by the clearest shift among the pairs so far. Only shifts of most columns are followed, because two
    coarse columns alone have many spikes. A row at a spike scores the sum of the bits of the columns
    in which it lies at the shift, with and without those of equal labels.

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
            yield from _scores(ranked[:_NUMBERS], labels, reach)


def _scores(numbers: Sequence[PooledColumn], labels: Sequence[CodedCells], reach: int) -> Iterator[Score]:
    """Score the surest shifts in one resolution."""
    grids = [_BinnedNumbers.of(c, reach) for c in numbers]
    spikes = [s for i, j in combinations(range(len(grids)), 2) for s in _spikes(grids, i, j)]
    surest = sorted((s for s in spikes if s.strength > _CLEAR), key=lambda s: -s.strength)
    found: dict[_Shift, list[_Spike]] = {}
    for spike in surest[: 4 * _SPIKES]:
        pairs = _SpikePairs.of(grids, spike.lags, reach)
        found.setdefault(_joined(grids, spike.lags, pairs), []).append(spike)
    for k, shift in enumerate(sorted(found, key=len, reverse=True)[:_SPIKES]):
        # Made again, as those of all spikes would be held otherwise.
        pairs_of_all = [_SpikePairs.of(grids, spike.lags, reach) for spike in found[shift]]
        alone, beside = _told(grids, shift, pairs_of_all, reach, labels)
        names = tuple(grids[i].name for i, _ in shift)
        what = f"shift {k + 1}, {'coarse' if reach else 'exact'}"
        yield Score(what, alone, names)
        yield Score(f"{what}, and labels", beside, names)


@dataclass(frozen=True, eq=False)
class _BinnedNumbers:
    """One number in bins of equal width, NaN where there is none or a common one.

    Attributes:
        size: bins of a grid on which shifts are looked for; those further apart fall on the same bin.
    """

    name: str
    people: Floats = field(repr=False)
    release: Floats = field(repr=False)
    size: int

    @classmethod
    def of(cls, column: PooledColumn, reach: int) -> _BinnedNumbers:
        least, most = np.nanmin(column.people), np.nanmax(column.people)
        # Where it is not compared to the last digit, in as many cells as other views have.
        width = max(column.step, column.width / CELLS) if reach else column.step
        # Room for a third more than the range, so that a shift does not wrap round to others.
        size = int(2 ** np.clip(np.ceil(np.log2((most - least) * 1.3 / width + 2)), 5, 12))
        people, release = (_bins(x, width) for x in (column.people, column.release))
        return cls(column.name, people, release, size)


def _bins(values: Floats, width: float) -> Floats:
    different, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    common = np.isin(values, different[counts > _COMMON * len(values)])
    return np.where(np.isfinite(values) & ~common, np.floor(values / width + 0.5), np.nan)


def _spikes(grids: Sequence[_BinnedNumbers], i: int, j: int) -> Iterator[_Spike]:
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
        yield _Spike(float(strength[x, y]), {i: (int(x), a), j: (int(y), b)})


def _joint(first: _BinnedNumbers, second: _BinnedNumbers, side: str, a: int, b: int) -> Floats32:
    x, y = getattr(first, side), getattr(second, side)
    able = np.isfinite(x) & np.isfinite(y)
    cells = x[able] % a * b + y[able] % b
    return np.bincount(cells.astype(np.intp), minlength=a * b).reshape(a, b).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _SpikePairs:
    """The pairs of records and rows at a spike, a block of records at a time.

    Attributes:
        order: of the rows by cell, missing ones first. first, last: where the rows of each record stand in
            it, shape (cells next to each other, records) each.
    """

    order: Positions = field(repr=False)
    first: Positions = field(repr=False)
    last: Positions = field(repr=False)

    @classmethod
    def of(cls, grids: Sequence[_BinnedNumbers], lags: dict[int, tuple[int, int]], reach: int) -> Self:
        (i, (x, a)), (j, (y, b)) = lags.items()
        cells = np.nan_to_num(grids[i].release % a * b + grids[j].release % b, nan=-1.0)
        order = np.argsort(cells, kind="stable")
        mine = np.stack(
            [
                (grids[i].people + x + dx) % a * b + (grids[j].people + y + dy) % b
                for dx, dy in product(range(-reach, reach + 1), repeat=2)
            ]
        )
        first, last = (np.searchsorted(cells, mine, side, sorter=order) for side in ("left", "right"))
        return cls(order, first, np.where(np.isnan(mine), first, last))

    def blocks(self) -> Iterator[slice]:
        """Blocks of records, so small that their pairs can be held."""
        n, m = self.first.shape[1], len(self.order)
        size = max(1, _PAIRS // m)
        return (slice(start, min(start + size, n)) for start in range(0, n, size))

    def among(self, block: slice) -> Positions:
        """Pairs of some records, ``record * rows + row``."""
        first, counts = self.first[:, block], (self.last - self.first)[:, block]
        record = np.repeat(np.tile(np.arange(block.start, block.stop), len(first)), counts.ravel())
        ends = np.cumsum(counts.ravel())
        place = np.arange(len(record)) + np.repeat(first.ravel() - ends + counts.ravel(), counts.ravel())
        found: Positions = record * len(self.order) + self.order[place]
        return found


def _joined(grids: Sequence[_BinnedNumbers], lags: dict[int, tuple[int, int]], pairs: _SpikePairs) -> _Shift:
    """The shift of a spike, not modulo its grids any more, with those of further columns that go with it.

    By chance means: where the rows of the pairs are permuted, on average.
    """
    record, row = np.divmod(pairs.among(next(pairs.blocks())), len(grids[0].release))
    joined = {}
    for k, grid in enumerate(grids):
        mine, theirs = grid.people[record], grid.release[row]
        known = np.isfinite(mine) & np.isfinite(theirs)
        mine, theirs = mine[known], theirs[known]
        if not len(mine):
            continue
        by, size = lags.get(k, (None, grid.size))
        if by is None:
            counts, *sides = (
                np.bincount((x % size).astype(np.intp), minlength=size) for x in (theirs - mine, mine, theirs)
            )
            people, release = map(np.fft.rfft, sides)
            by_chance = np.maximum(np.fft.irfft(np.conj(people) * release, size) / len(mine), 0)
            clear = (counts - by_chance) / np.sqrt(by_chance + 1)
            if clear.max() <= _CLEAR:
                continue
            by = int(clear.argmax())
        away, counts = np.unique(theirs - mine, return_counts=True)
        joined[k] = float(away[np.where(away % size == by, counts, -1).argmax()])
    return tuple(joined.items())


def _told(
    grids: Sequence[_BinnedNumbers],
    shift: _Shift,
    spikes: Sequence[_SpikePairs],
    reach: int,
    labels: Sequence[CodedCells],
) -> tuple[Floats, Floats]:
    """Bits of each record's best row at a shift: by numbers alone, and beside the next row with equal labels.

    Args:
        spikes: that led to this shift.
    """
    n, m = len(grids[0].people), len(grids[0].release)
    told = [(grids[i], by, _bits_at(grids[i], by, reach)) for i, by in shift]
    tables = [c.agreement() for c in labels]
    alone, beside = np.zeros(n), np.zeros(n)
    for block in spikes[0].blocks():
        pairs = np.unique(np.concatenate([s.among(block) for s in spikes]))
        record, row = np.divmod(pairs, m)
        bits, equal = np.zeros(len(pairs)), np.zeros(len(pairs))
        for grid, by, by_one in told:
            bits += (np.abs(grid.release[row] - grid.people[record] - by) <= reach) * by_one
        for column, table in zip(labels, tables, strict=True):
            equal += table[column.people[record], column.release[row]]
        asked = np.arange(block.start, block.stop)
        alone[block] = _best(record, bits, asked)[0]
        best, second = _best(record, bits + equal, asked)
        beside[block] = best - second + 1e-3 * best
    return alone, beside


def _best(record: Positions, bits: Floats, asked: Positions) -> tuple[Floats, Floats]:
    """Most bits of a pair of each record asked about, and of the next pair; 0 where there is none.

    Args:
        record: of each pair, ascending.
    """
    held = np.append(bits[np.lexsort((-bits, record))], [0.0, 0.0])
    place = np.searchsorted(record, asked)
    found = np.append(record, [-1, -1])
    return (
        np.where(found[place] == asked, held[place], 0.0),
        np.where(found[place + 1] == asked, held[place + 1], 0.0),
    )


def _bits_at(grid: _BinnedNumbers, by: float, reach: int) -> float:
    """Bits that a shift of one column tells, from the share of all pairs at it."""
    mine, rows = grid.people[np.isfinite(grid.people)] + by, np.sort(grid.release[np.isfinite(grid.release)])
    pairs = np.searchsorted(rows, mine + reach, "right") - np.searchsorted(rows, mine - reach, "left")
    share = pairs.sum() / (len(grid.people) * len(grid.release))
    return -float(np.log2(max(share, 2.0**-MOST_BITS)))
