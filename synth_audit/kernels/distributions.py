"""Distances between two distributions of one column: pure functions on cell shares and samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.measurement import Interval
from synth_audit.kernels.intervals import normal_interval
from synth_audit.kernels.proportion_interval import nothing_seen
from synth_audit.kernels.sorted_numbers import SortedNumbers

GROUPS = 1000
"""Rows are resampled in at most so many groups, so that a resample costs no more for a larger table."""

_LARGE = 1e100
"""Squares of this, summed, are finite."""

FARTHEST = 1e9
"""Standard deviations beyond which a value is no farther away, so that sums stay finite."""


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
