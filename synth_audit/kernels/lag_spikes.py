"""By what one table's numbers differ from another's more often than chance, in two columns at once.

If rows keep a few numbers of people, each moved by a constant of its column, the differences between people
and rows have a spike: one lag in every column at once. It is looked for in pairs of columns by the
cross-correlation of their counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Floats32, Integers, Positions

MISSING = np.iinfo(np.int64).min
"""Code of a cell that holds nothing."""

_COMMON = 0.05
"""A value of which people or rows have so many leads to nobody: it counts, but no row is looked up by it."""

_AROUND = 2
"""Lags on either side whose mean says what a lag has by chance."""

_FEWEST = 20
"""Cells that both columns of a pair must have in either table."""


_Values = tuple[tuple[Integers, Floats], tuple[Integers, Floats]]
"""Different steps and how many have each, of people and of the release."""


class LagSpike(NamedTuple):
    """Lags of two columns that stand out together.

    Attributes:
        score: standard errors above chance. columns: two of them. lags: of these, in steps mod their sizes.
    """

    score: float
    columns: tuple[int, int]
    lags: tuple[int, int]


@dataclass(frozen=True, eq=False)
class LagColumn:
    """A column of people beside a column of a release, as steps.

    Attributes:
        people, release: steps, :data:`MISSING` where there is none; shape (n,) and (m,).
        size: lags are looked for mod so many steps.
        whole: lags hold for the steps themselves, not mod ``size`` alone.
        near: steps by which a lag may be missed.
        fixed: no lag but 0 is possible, as of labels.
        sources: which columns of the tables people's and the release's steps were read from.
    """

    people: Integers
    release: Integers
    size: int
    whole: bool = True
    near: int = 0
    fixed: bool = False
    sources: tuple[int, int] = (0, 0)

    @cached_property
    def leading(self) -> tuple[Bools, Bools]:
        """Which people's and which rows' values are no common ones."""
        sides = (self.people, self.release)
        common = np.concatenate([_common(steps) for steps in sides])
        people, release = ((steps != MISSING) & ~np.isin(steps, common) for steps in sides)
        return people, release

    @cached_property
    def cells(self) -> tuple[Integers, Integers]:
        """People's and rows' steps mod ``size``, below 0 for none that leads to anybody."""
        people, release = (
            np.where(leads, steps % self.size, -1)
            for leads, steps in zip(self.leading, (self.people, self.release), strict=True)
        )
        return people, release

    def codes(self, lag: int, size: int, bins: int) -> tuple[Integers, Integers, int]:
        """Codes that people and rows share who are apart by a lag.

        Args:
            size: steps are told apart mod it. bins: steps that have one code.

        Returns:
            of people, −1 where no row is apart by it, −2 for values that lead to nobody; of rows, −1 for
            these; and how many codes there are.
        """
        if (lag, size, bins) not in self._codes:
            values, rows = self._rows_coded(size, bins)
            wanted = (np.where(self.leading[0], self.people, 0) + lag) % size // bins
            place = np.searchsorted(values, wanted)
            there = np.append(values, -1)[place] == wanted
            codes = np.where(self.leading[0], np.where(there, place, -1), -2)
            self._codes[lag, size, bins] = codes, rows, len(values)
        return self._codes[lag, size, bins]

    def _rows_coded(self, size: int, bins: int) -> tuple[Integers, Integers]:
        """Different steps of rows that lead to anybody, and which of them each row has."""
        if (size, bins) not in self._rows:
            leads = self.leading[1]
            values, found = np.unique(self.release[leads] % size // bins, return_inverse=True)
            rows = np.full(len(self.release), -1)
            rows[leads] = found
            self._rows[size, bins] = values, rows
        return self._rows[size, bins]

    @cached_property
    def _codes(self) -> dict[tuple[int, int, int], tuple[Integers, Integers, int]]:
        return {}

    @cached_property
    def _rows(self) -> dict[tuple[int, int], tuple[Integers, Integers]]:
        return {}

    def told(self, rows: Positions) -> Floats:
        """How much it tells to have the value of each of some rows, or one as near as counts, in bits."""
        return self.told_by_row[rows].astype(np.float64)

    @cached_property
    def told_by_row(self) -> Floats32:
        """How much it tells to have the value of each row, or one as near as counts, in bits, shape (m,)."""
        values, n = self._all_counts[1]
        sums = np.concatenate([[0.0], np.cumsum(n)])
        # Missing values are the lowest steps, which no lag holds for.
        low = np.searchsorted(values, np.maximum(values, MISSING + self.near) - self.near, "left")
        high = np.searchsorted(values, values + self.near, "right")
        told = -np.log2(np.maximum(sums[high] - sums[low], 1) / len(self.release))
        found: Floats32 = told.astype(np.float32)[np.searchsorted(values, self.release)]
        return found

    def of(self, people: Positions) -> LagColumn:
        """The same with some of the people."""
        return replace(self, people=self.people[people])

    def apart(self, people: Positions, rows: Positions) -> tuple[Integers, Bools]:
        """By how many steps rows are beyond people; and where both have one."""
        a, b = self.people[people], self.release[rows]
        known = (a != MISSING) & (b != MISSING)
        found = np.where(known, b, 0) - np.where(known, a, 0)
        return (found if self.whole else found % self.size), known

    def holds(self, people: Positions, rows: Positions, lag: int) -> Bools:
        """Whether rows are beyond people by a lag."""
        return self.holds_and_known(people, rows, lag)[0]

    def holds_and_known(self, people: Positions, rows: Positions, lag: int) -> tuple[Bools, Bools]:
        """Whether rows are beyond people by a lag; and where both have a value."""
        found, known = self.apart(people, rows)
        off = np.abs(found - lag)
        if not self.whole:
            off = np.minimum(off, self.size - off)
        return known & (off <= self.near), known

    def leading_apart(self, people: Positions, rows: Positions) -> Integers:
        """By how many steps rows are beyond people, of those pairs whose values are no common ones."""
        leads = self.leading[0][people] & self.leading[1][rows]
        found = self.release[rows[leads]] - self.people[people[leads]]
        return found if self.whole else found % self.size

    def chance(self, lag: int, *, leading: bool = True) -> float:
        """Share of pairs of a person and a row that a lag holds for exactly; of those with leading values."""
        (a, n_a), (b, n_b) = self._leading_counts if leading else self._all_counts
        if not len(a) or not len(b):
            return 0.0
        wanted = a + lag if self.whole else (a + lag) % self.size
        place = np.minimum(np.searchsorted(b, wanted), len(b) - 1)
        same = b[place] == wanted
        return float(n_a[same] @ n_b[place[same]]) / float(n_a.sum() * n_b.sum())

    @cached_property
    def _leading_counts(self) -> _Values:
        people, release = self.leading
        return _counted(self.people[people]), _counted(self.release[release])

    @cached_property
    def _all_counts(self) -> _Values:
        return _counted(self.people), _counted(self.release)


def _counted(steps: Integers) -> tuple[Integers, Floats]:
    values, n = np.unique(steps, return_counts=True)
    return values, n.astype(np.float64)


def _common(steps: Integers) -> Integers:
    values, n = np.unique(steps[steps != MISSING], return_counts=True)
    common: Integers = values[n > max(2.0, _COMMON * n.sum())]
    return common


def different(x: LagColumn, y: LagColumn) -> bool:
    """Whether two columns were read from no column of a table both."""
    return x.sources[0] != y.sources[0] and x.sources[1] != y.sources[1]


def _pairs(columns: Sequence[LagColumn]) -> Iterator[tuple[int, int]]:
    """Pairs of columns that may have lags and differ."""
    for i, x in enumerate(columns):
        for j in range(i + 1, len(columns)):
            if not x.fixed and not columns[j].fixed and different(x, columns[j]):
                yield i, j


def lag_spikes(columns: Sequence[LagColumn], each: int) -> Iterator[LagSpike]:
    """The lags that stand out most in pairs of columns.

    With ``P`` and ``S`` the counts of people's and rows' steps mod their sizes,
    ``N(a, b) = Σ P(x, y) S(x + a, y + b)`` pairs of a person and a row are apart by (a, b). By chance these
    are as many as at the lags around, lags of a single column being as frequent as they are; and no fewer
    than people among themselves, or rows, are apart by it: grids and formulas make spikes in every table.

    Args:
        each: lags of a pair.
    """
    for i, j in _pairs(columns):
        x, y = columns[i], columns[j]
        people, release = _counts(x, y, 0), _counts(x, y, 1)
        if min(people.sum(), release.sum()) >= _FEWEST:
            score = _standing_out(people, release)
            for place in np.argpartition(-score, min(each, score.size - 1), axis=None)[:each]:
                a, b = divmod(int(place), y.size)
                yield LagSpike(float(score[a, b]), (i, j), (a, b))


def _counts(x: LagColumn, y: LagColumn, side: int) -> Floats:
    first, second = x.cells[side], y.cells[side]
    leads = (first >= 0) & (second >= 0)
    cells = first[leads] * y.size + second[leads]
    return np.bincount(cells, minlength=x.size * y.size).reshape(x.size, y.size).astype(np.float64)


def near_spikes(columns: Sequence[LagColumn]) -> Iterator[LagSpike]:
    """How much oftener people and rows are near in two columns than people, or rows, among themselves.

    Args:
        columns: no lag but 0 is possible in them.
    """
    for i, x in enumerate(columns):
        for j in range(i + 1, len(columns)):
            y = columns[j]
            if different(x, y):
                people, release = _counts(x, y, 0), _counts(x, y, 1)
                if min(people.sum(), release.sum()) >= _FEWEST:
                    yield LagSpike(_nearer(people, release, (x.near, y.near)), (i, j), (0, 0))


def _nearer(people: Floats, release: Floats, near: tuple[int, int]) -> float:
    """Standard errors by which pairs are near more often than usual; counts of the steps of two columns."""
    times = release.sum() / people.sum()
    near_people, near_release = (_box(x, near) for x in (people, release))
    found = float((people * near_release).sum())
    among = ((people * near_people).sum() - people.sum(), (release * near_release).sum() - release.sum())
    usual = max(float(among[0]) * times, float(among[1]) / times)
    return float((found - usual) / np.sqrt(found + usual + 2))


def moved_on(columns: Sequence[LagColumn]) -> Iterator[tuple[float, int, int]]:
    """How well a series of columns fits itself some columns further on, with one lag for all.

    As :func:`lag_spikes`, all pairs of neighbours together.

    Args:
        columns: of one size, each beside itself.

    Yields:
        standard errors above chance of the best lag for each number of columns, that number, and the lag.
    """
    n, size = len(columns), columns[0].size
    pairs = [(i, (i + 1) % n) for i in range(n)]
    people, release = (np.array([_counts(columns[i], columns[j], side) for i, j in pairs]) for side in (0, 1))
    if min(people.sum(), release.sum()) < _FEWEST:
        return
    of_people, of_release = np.fft.rfft2(people), np.fft.rfft2(release)
    times = release.sum() / people.sum()
    for k in range(1, n):
        people_further, further = (np.roll(x, -k, axis=0) for x in (of_people, of_release))
        found, among_people, among_rows = (
            _lagged((np.conj(a) * b).sum(axis=0), people.shape[1:])
            for a, b in ((of_people, further), (of_people, people_further), (of_release, further))
        )
        score = np.diagonal(_above(found, among_people * times, among_rows / times))
        lag = int(score.argmax())
        yield float(score[lag]), k, lag if lag <= size // 2 else lag - size


def _standing_out(people: Floats, release: Floats) -> Floats:
    """Standard errors by which each lag is more frequent than chance, shape of the counts."""
    times = release.sum() / people.sum()
    of_people, of_release = np.fft.rfft2(people), np.fft.rfft2(release)
    among = [_lagged(np.abs(x) ** 2, people.shape) for x in (of_people, of_release)]
    for lags, counts in zip(among, (people, release), strict=True):
        lags[0, 0] -= counts.sum()  # each row and itself
    return _above(_lagged(np.conj(of_people) * of_release, people.shape), among[0] * times, among[1] / times)


def _lagged(product: npt.NDArray[Any], shape: tuple[int, ...]) -> Floats:
    return np.asarray(np.fft.irfft2(product, s=shape), np.float64)


def _above(found: Floats, *others: Floats) -> Floats:
    """Standard errors by which lags are more frequent than around them, and than among people or rows."""
    usual = _around(found)
    for other in others:
        np.maximum(usual, other, out=usual)
    score: Floats = (found - usual) / np.sqrt(np.maximum(0.0, found + usual) + 2)
    return score


def _around(found: Floats) -> Floats:
    """What a lag has by the lags around it, those of one column being as frequent as they are."""
    first, second = found.sum(axis=1, keepdims=True), found.sum(axis=0, keepdims=True) / found.sum()
    even = first * second
    beside = _box(first, (_AROUND, 0)) * _box(second, (0, _AROUND)) - even
    usual: Floats = even * (_box(found) - found + 8) / (beside + 8)
    return usual


def _box(x: Floats, width: tuple[int, int] = (_AROUND, _AROUND)) -> Floats:
    """Sums of the lags around and the middle, lags going round."""
    for axis, w in enumerate(width):
        if w:
            n, ends = x.shape[axis], (slice(-w, None), slice(w))
            last, first = (x[end] if axis == 0 else x[:, end] for end in ends)
            round_ = np.concatenate([last, x, first], axis=axis)
            first, *further = (
                round_[k : k + n] if axis == 0 else round_[:, k : k + n] for k in range(2 * w + 1)
            )
            x = first + further[0]
            for other in further[1:]:
                x += other
    return x
