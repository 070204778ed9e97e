"""Distances between two distributions of one column, entropy, and a scale that extremes do not move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from synth_audit.arrays import Bools, Codes, Counts, Floats
from synth_audit.findings.measurement import Interval
from synth_audit.stats.proportions import nothing_seen
from synth_audit.stats.resampling import normal_interval

_QUANTILES, _EXTREMES = 128, 16
"""Fine cells of about equal mass, and values at either end with a cell of their own: tails weigh most."""

GROUPS = 1000
"""Rows are resampled in at most so many groups, so that a resample costs no more for a larger table."""

_LARGE = 1e100
"""Squares of this, summed, are finite."""

FARTHEST = 1e9
"""Standard deviations beyond which a value is no farther away, so that sums stay finite."""

CENTRAL = 0.05, 0.95
"""Quantiles that bound the central range."""

NEAR = 30
"""A number within 1/30 of the range from a value that most rows share is that value."""

REGULAR, MISSING, FIRST_LABEL = range(3)
"""What a cell is: a number; missing; from here on one of the values that are labels."""

_FREQUENT = 3
"""An isolated extreme that occurs less often is a number that lies far away."""

_MOST_LABELS = 16
"""Values of a column of numbers that may be labels; codes such as 9999 are few."""

_MOST_EXTREMES = 64
"""Values at either end that are looked at."""

FAR = 1e100
"""Where numbers beyond all reason are put, so that no difference overflows."""

_SHARED = 0.8
"""Share of regular values that are one value, from which the central range counts as empty."""


@dataclass(frozen=True, eq=False)
class SortedNumbers:
    """A sample.

    Attributes:
        values: those present, ascending, shape (n,). missing: how many others there are.
    """

    values: Floats
    missing: int

    @classmethod
    def of(cls, numbers: Floats) -> SortedNumbers:
        """Of numbers in any order, NaN where missing."""
        known = np.sort(numbers[~np.isnan(numbers)])
        return cls(known, len(numbers) - len(known))

    def quantile_cells(self, most: int) -> Floats:
        """Inner edges of at most ``most`` cells of about equal mass, shape (≤ most − 1,).

        A value so frequent that it fills several cells gets one of its own, so spikes survive.
        """
        if not len(self.values):
            return np.empty(0)
        edges = np.unique(np.quantile(self.values, np.linspace(0, 1, most + 1)[1:-1]))
        heavy = edges[self.held(edges) / len(self.values) >= 1 / most]
        return np.unique(np.concatenate([edges, np.nextafter(heavy, -np.inf)]))

    def held(self, at: Floats) -> Codes:
        """How many values are equal to each of ``at``."""
        return self.values.searchsorted(at, "right") - self.values.searchsorted(at, "left")

    def cell_counts(self, edges: Floats) -> Codes:
        """Numbers in each cell of these inner edges, the last for missing, shape (len(edges) + 2,)."""
        return np.append(_cell_sizes(self.values, edges), self.missing)

    def most_frequent(self) -> tuple[Floats, int]:
        """The values that no other is more frequent than, ascending, and how often each is held."""
        last = _last_of_equals(self.values)
        counts = np.diff(last, prepend=-1)
        most = int(counts.max(initial=0))
        return self.values[last[counts == most]], most


@dataclass(frozen=True, eq=False)
class SortedPair:
    """Two samples, neither of them empty, in one order.

    Attributes:
        values: of both, ascending, shape (n + m,). last: position of the last of each distinct value, (k,).
        below: how many of the first sample are no larger than each distinct value, shape (k,).
        gaps: ``F − G`` of the two distribution functions at each distinct value, shape (k,).
    """

    values: Floats
    last: Codes
    below: Codes
    gaps: Floats

    @classmethod
    def of(cls, first: SortedNumbers, second: SortedNumbers) -> SortedPair:
        """Merge them."""
        n, m = len(first.values), len(second.values)
        both = np.concatenate([first.values, second.values])
        order = np.argsort(both, kind="stable")  # which takes two sorted halves in one pass
        values = both[order]
        last = _last_of_equals(values)
        of_first = np.cumsum(order < n, dtype=np.int64)[last]
        return cls(values, last, of_first, of_first / n - (last + 1 - of_first) / m)

    def kolmogorov_smirnov(self, fewest: int = 1) -> float:
        """Largest distance between the two distribution functions, in [0, 1].

        Args:
            fewest: values are left out that divide the first sample so that fewer lie on one side, if any;
                beside the second sample the distance would tell how few.
        """
        return float(np.abs(self.gaps[tellable(self.below, fewest)]).max(initial=0.0))

    def wasserstein(self, scaled: Floats) -> float:
        """``W₁ = ∫ |F(x) − G(x)| dx``, in the unit of ``scaled``: how far a value must move on average.

        Args:
            scaled: :attr:`values` in any unit, shape (n + m,), ascending.
        """
        return float(np.abs(self.gaps[:-1]) @ np.diff(scaled[self.last]))

    def fine_cells(self, coarse: Floats) -> Floats:
        """Inner edges of cells so fine that a distance between them stands for that between values.

        Each value has a cell of its own where they are few; else about 128 cells of equal mass, and the 16
        values at either end on their own. The coarse edges are among them.
        """
        known = self.values[self.last]
        if len(known) > _QUANTILES + 2 * _EXTREMES:
            middle = np.quantile(self.values, np.linspace(0, 1, _QUANTILES + 1)[1:-1])
            known = np.concatenate([known[:_EXTREMES], middle, known[-_EXTREMES - 1 :]])
        return np.unique(np.concatenate([known[:-1], coarse]))

    def cell_places(self, edges: Floats, scaled: Floats, beside: Floats) -> Floats:
        """Where each cell lies: the mean of its values, or its edge where it has none, (len(edges) + 1,).

        Args:
            scaled: :attr:`values` in the unit of the places. beside: the edges in it.
        """
        sizes = _cell_sizes(self.values, edges)
        filled = sizes > 0
        places = np.append(beside, beside[-1:]) if len(edges) else np.zeros(1)
        starts = (np.cumsum(sizes) - sizes)[filled]
        places[filled] = np.add.reduceat(scaled, starts) / sizes[filled]
        return places


def tellable(below: Codes, fewest: int) -> Bools:
    """Where a sample is divided into none, or at least ``fewest``, on either side.

    Args:
        below: how many of the sample lie below each cut, ascending, all of them last; shape (k,).
    """
    above = below[-1:] - below
    told: Bools = ((below == 0) | (below >= fewest)) & ((above == 0) | (above >= fewest))
    return told


def _last_of_equals(ascending: Floats) -> Codes:
    if not len(ascending):
        return np.empty(0, dtype=np.int64)
    return np.append(np.flatnonzero(ascending[1:] != ascending[:-1]), len(ascending) - 1)


def _cell_sizes(ascending: Floats, edges: Floats) -> Codes:
    """A cell holds what is above the edge below it, and up to its own edge."""
    return np.diff(ascending.searchsorted(edges, "right"), prepend=0, append=len(ascending))


def in_deviations(values: Floats, anchor: Floats) -> Floats | None:
    """Values from the smallest of ``anchor`` on, in standard deviations of it; missing stays missing.

    At most :data:`FARTHEST` to either side. Halves, or the range of huge values would overflow.

    Args:
        anchor: may hold missing values.

    Returns:
        Shape of ``values``; None where the anchor's values are all equal, since no unit follows from them.
    """
    known = anchor[~np.isnan(anchor)]
    if not len(known) or known.min() == known.max():
        return None
    low = known.min() / 2
    unit = known.max() / 2 - low
    deviation = float(np.std((known / 2 - low) / unit))
    with np.errstate(over="ignore"):
        scaled = (values / 2 - low) / unit / deviation
    standardised: Floats = np.clip(scaled, -FARTHEST, FARTHEST)
    return standardised


def total_variation(p: Floats, q: Floats) -> Floats:
    """``½ Σ |p − q|`` over the last axis, in [0, 1]; p and q are shares of the same cells."""
    distance: Floats = 0.5 * np.abs(p - q).sum(axis=-1)
    return distance


def hellinger(p: Floats, q: Floats) -> Floats:
    """``sqrt(½ Σ (√p − √q)²)`` over the last axis, in [0, 1]; p and q are shares of the same cells."""
    distance: Floats = np.sqrt(0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2, axis=-1))
    return distance


def inverted_chi_square(observed: Floats, expected: Floats, n: int) -> Floats:
    """``1 − p`` of the χ² test that n rows have the expected shares, over the last axis, in [0, 1].

    ``χ² = n Σ (o − e)² / e`` with as many degrees of freedom as there are expected cells, less one. The
    expected shares are taken as exact. A row in a cell that is not expected at all gives 1.

    Args:
        observed, expected: shares of the same cells, shape (…, k).
    """
    from scipy.special import chdtr  # here, since a code location must not load it

    seen = expected > 0
    parts = np.divide((observed - expected) ** 2, expected, out=np.zeros_like(observed), where=seen)
    freedom = seen.sum(axis=-1) - 1.0
    one_less_p = np.where(freedom > 0, chdtr(np.maximum(freedom, 1.0), n * parts.sum(axis=-1)), 0.0)
    return np.where(((observed > 0) & ~seen).any(axis=-1), 1.0, one_less_p)


def quantile_cells(anchor: Floats, most: int) -> Floats:
    """Inner edges of at most ``most`` cells of about equal mass of ``anchor``, shape (≤ most − 1,).

    A value so frequent that it fills several cells gets one of its own, so spikes survive.
    """
    return SortedNumbers.of(anchor).quantile_cells(most)


def cell_codes(values: Floats, edges: Floats) -> Codes:
    """Cell of each value: 0 … len(edges) from low to high, and len(edges) + 1 for missing, shape (n,)."""
    cells = np.searchsorted(edges, values, side="left")
    return np.where(np.isnan(values), len(edges) + 1, cells).astype(np.int64)


def shares(codes: Codes, n_cells: int) -> Floats:
    """Share of rows in each cell, shape (n_cells,)."""
    return np.bincount(codes, minlength=n_cells) / len(codes)


def tellable_cells(counts: Sequence[Codes], fewest: int, *, ordered: bool) -> list[int]:
    """Cells whose numbers of real rows may be told, in order; all others are to be joined into one.

    Each holds ``fewest`` rows of the first table, and as many or none of the second. So does the rest, with
    its missing values and without, or else the next smallest cells join it: it would give away the one small
    cell in it. Missing values join last, since their share is told on its own. What may be told of two
    tables is what may be told of the first alone with more cells joined, so that nobody learns from the
    difference of the two.

    Args:
        counts: rows of train, and of control where it is there, in each cell; the last cell is for missing.
        ordered: the order of cells means something, so the first of equally small ones joins; else all of
            them do, or names or the order of rows would decide.
    """
    large = [i for i, n in enumerate(counts[0].tolist()) if n >= fewest]
    told = _with_enough_beside(counts[:1], large, fewest, ordered)
    if len(counts) > 1:
        told = [i for i in told if not 0 < counts[1][i] < fewest]
        told = _with_enough_beside(counts, told, fewest, ordered)
    return told


def _with_enough_beside(counts: Sequence[Codes], told: list[int], fewest: int, ordered: bool) -> list[int]:
    """Cells without the smallest of them, until enough rows of every table lie in those left out."""
    last = len(counts[0]) - 1
    size = [(i == last, *n, i if ordered else 0) for i, n in enumerate(np.stack(counts, axis=1).tolist())]
    while told:
        rest = np.setdiff1d(np.arange(last + 1), told)
        sums = [int(n[part].sum()) for n in counts for part in (rest, rest[rest < last])]
        lone = any(sums) and sums[0] < fewest
        if not lone and not any(0 < n < fewest for n in sums):
            break
        smallest = min(size[i] for i in told)
        told = [i for i in told if size[i] != smallest]
    return told


def joined_cells(counts: Sequence[Codes], fewest: int, *, ordered: bool) -> tuple[Codes, int]:
    """New number of each cell with the small ones joined, shape (k,), and how many new cells there are.

    Cells that may be told (:func:`tellable_cells`) come first, then the one of all others, last the one of
    cells in which no real row lies: what only a release has is never hidden among what is rare.
    """
    told = tellable_cells(counts, fewest, ordered=ordered)
    numbers = np.full(len(counts[0]), len(told))
    numbers[told] = np.arange(len(told))
    numbers[np.sum(counts, axis=0) == 0] = len(told) + 1
    return numbers.astype(np.int64), len(told) + 2


@dataclass(frozen=True, eq=False)
class Resamples:
    """Bootstrap resamples of the rows of a table, the same for all of its columns.

    Rows are drawn in random groups of equal size, at most :data:`GROUPS` of them: the variance of a share is
    the same as that of drawing single rows, and what columns have in common stays together.

    Attributes:
        group: of each row, shape (n,). times: how often each group is drawn, shape (n_draws, n_groups).
    """

    group: Codes
    times: Floats

    @classmethod
    def of(cls, n: int, n_draws: int, rng: np.random.Generator) -> Resamples:
        """Draw ``n_draws`` resamples of n rows."""
        groups = min(n, GROUPS)
        times = rng.multinomial(groups, np.full(groups, 1 / groups), size=n_draws)
        return cls(rng.permutation(n) % groups, times.astype(np.float64))

    def shares(self, codes: Codes, n_cells: int) -> Floats:
        """Cell shares of every resample, shape (n_draws, n_cells); sums of counts, so exact in any order."""
        groups = self.times.shape[1]
        counts = np.bincount(self.group * n_cells + codes, minlength=groups * n_cells)
        drawn = self.times @ counts.reshape(groups, n_cells).astype(np.float64)
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def spread(drawn: Floats, places: Floats) -> Floats:
    """Standard deviation of present values from cell shares of which the last is missing, shape (…).

    Args:
        drawn: shape (…, k). places: where each cell but the last lies, shape (k − 1,).
    """
    present = drawn[..., :-1]
    present = present / np.maximum(present.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    unit = max(float(np.abs(places).max(initial=0.0)) / _LARGE, 1.0)  # keeps squares finite
    around = places / unit - (present @ (places / unit))[..., None]
    deviations: Floats = unit * np.sqrt((present * around**2).sum(axis=-1))
    return deviations


def distribution_functions(drawn: Floats) -> Floats:
    """Cumulative shares of the present values from cell shares of which the last is missing, (…, k − 1)."""
    steps = np.cumsum(drawn[..., :-1], axis=-1)
    return np.asarray(steps / np.maximum(steps[..., -1:], np.finfo(float).tiny))


def distance_interval(value: float, draws: Floats, level: float, room: float) -> Interval:
    """``value ± z · standard deviation of the draws``, and never no width at all.

    Args:
        room: half-width where every resample gives the same value, such as between two constant columns:
            what could be there and was not drawn.
    """
    interval = normal_interval(value, draws, level)
    if interval.high > interval.low:
        return interval
    return Interval(value - room, value + room, level, nothing_seen())


def entropy(codes: Codes) -> float:
    """Shannon entropy ``−Σ p log₂ p`` over the distinct codes in bits, missing counted as one.

    Args:
        codes: shape (n,), n ≥ 1.

    Returns:
        0 or more; equal for equal sets of frequencies, whatever the codes.
    """
    shares = np.sort(np.unique(codes, return_counts=True)[1]) / len(codes)
    return abs(float(np.sum(shares * np.log2(shares))))


@dataclass(frozen=True, eq=False)
class RobustScale:
    """Where numbers lie relative to the central range of a reference, and which of them are labels.

    The range of a column is ``(q95 − q05) / 0.9`` of its regular values, which is the range of a uniform
    column, and at most their own. Two sorts of values are labels, equal or not and at no distance.
    An isolated frequent extreme, such as 9999 for "unknown", is separated from all that lies inside by a gap
    wider than the central range of that; whatever lies nearer to it than to any other value of the reference
    is that label, or a copy could leave all labels by a hair. Where four values in five are the same one, so
    that the central range is all but empty, that value is a label and the scale is that of the others.

    Attributes:
        centre: middle of the central range.
        span: the range; infinite where the regular values do not differ.
        labels: values that are labels, ascending, shape (k,).
        reach: how far a number may lie from each and still be it, shape (k,).
    """

    centre: float
    span: float
    labels: Floats
    reach: Floats

    @classmethod
    def of(cls, reference: Floats) -> Self:
        """Read the scale off the values of a reference, NaN where there is none, shape (n,)."""
        distinct, counts = np.unique(reference[~np.isnan(reference)], return_counts=True)
        left, left_counts, extremes, shared = distinct, counts, np.empty(0), np.empty(0)
        while len(left) and len(extremes) + len(shared) < _MOST_LABELS:
            found = _isolated(left, left_counts)
            if found.any():
                extremes = np.concatenate([extremes, left[found]])
            elif _is_shared(left_counts):
                found = np.arange(len(left)) == np.argmax(left_counts)
                shared = np.concatenate([shared, left[found]])
            else:
                break
            left, left_counts = left[~found], left_counts[~found]
        labels = np.sort(np.concatenate([extremes, shared]))
        centre, span = _spread(left, left_counts)
        most = np.where(np.isin(labels, extremes), np.inf, span / NEAR)
        return cls(centre, span, labels, np.minimum(most, _half_way(labels, distinct)))

    def read(self, values: Floats) -> tuple[Floats, Codes]:
        """Numbers in ranges from the centre, 0 for others, and what each cell is; shape (n,) each."""
        what = np.where(np.isnan(values), MISSING, REGULAR)
        for code, (label, reach) in enumerate(zip(self.labels, self.reach, strict=True), FIRST_LABEL):
            with np.errstate(over="ignore"):
                what[np.abs(values - label) <= reach] = code
        with np.errstate(over="ignore"):  # halves, since the difference of huge numbers may be infinite
            scaled = (values / 2 - self.centre / 2) / (self.span / 2)
        return np.where(what == REGULAR, np.clip(scaled, -FAR, FAR), 0.0), what.astype(np.int64)


def _central(distinct: Floats, counts: Counts) -> tuple[float, float]:
    """Ends of the central range of values that occur so often."""
    below = np.cumsum(counts)
    low, high = (int(np.searchsorted(below, q * below[-1])) for q in CENTRAL)
    return float(distinct[low]), float(distinct[min(high, len(distinct) - 1)])


def _isolated(distinct: Floats, counts: Counts) -> Bools:
    """Which values are frequent and lie at one end beyond a gap wider than the central range inside it."""
    found = np.zeros(len(distinct), dtype=bool)
    for step in (-1, 1):  # from the highest value down, then from the lowest up
        values, often = distinct[::step], counts[::step]
        for i in range(min(len(values) - 1, _MOST_EXTREMES)):
            inside, inside_counts = values[i + 1 :][::step], often[i + 1 :][::step]
            low, high = _central(inside, inside_counts)
            gap = abs(values[i] / 2 - values[i + 1] / 2)
            if _is_shared(inside_counts) or gap <= high / 2 - low / 2:
                break
            found[len(found) - 1 - i if step < 0 else i] = often[i] >= _FREQUENT
        if found.any():
            break  # the other end is looked at again without them
    return found


def _is_shared(counts: Counts) -> bool:
    """Whether nearly all values are the same one."""
    return bool(counts.max() >= _SHARED * counts.sum())


def _spread(distinct: Floats, counts: Counts) -> tuple[float, float]:
    """Middle and range of the central range; of halves, lest a difference be infinite."""
    if not len(distinct):
        return 0.0, np.inf
    low, high = _central(distinct, counts)
    half = min((high / 2 - low / 2) / (CENTRAL[1] - CENTRAL[0]), distinct[-1] / 2 - distinct[0] / 2)
    if not half > 0:
        return low / 2 + high / 2, np.inf
    half = float(np.clip(half, np.finfo(np.float64).tiny, np.finfo(np.float64).max / 2))
    return low / 2 + high / 2, half * 2


def _half_way(labels: Floats, distinct: Floats) -> Floats:
    """A little less than half of the way from each label to the nearest other value of the reference."""
    if len(distinct) < 2:
        return np.zeros(len(labels))
    place = np.searchsorted(distinct, labels)
    steps = np.concatenate([[np.inf], np.diff(distinct / 2), [np.inf]])
    half_way: Floats = np.minimum(steps[place], steps[place + 1]) * (1 - 1e-9)
    return half_way
