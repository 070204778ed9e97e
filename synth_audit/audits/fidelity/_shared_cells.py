"""Columns of several tables as shared cells and sorted samples, and the distances between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import codes
from synth_audit.findings.measurement import Interval
from synth_audit.stats.distributions import SortedNumbers, cell_codes, tellable_cells
from synth_audit.stats.proportions import NOTHING_SEEN
from synth_audit.stats.resampling import normal_interval
from synth_audit.table.resolution import ValueGrid
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_MISSING_LABEL = "missing"

_QUANTILES, _EXTREMES = 128, 16
"""Fine cells of about equal mass, and values at either end with a cell of their own: tails weigh most."""

GROUPS = 1000
"""Rows are resampled in at most so many groups, so that a resample costs no more for a larger table."""

_LARGE = 1e100
"""Squares of this, summed, are finite."""

FARTHEST = 1e9
"""Standard deviations beyond which a value is no farther away, so that sums stay finite."""


@dataclass(frozen=True, eq=False)
class SharedCells:
    """Cells of one column in several tables, the last for missing.

    Attributes:
        codes: the cell of each row, shape (n,) for each table.
        size: how many cells there are; of labels, in which any row lies.
        names: what stands under the bar of each cell, that of missing last, where nothing is missing too.
        ordered: true where neighbours may be joined: cells of numbers, low to high.
        axis: what stands along the axis of the cells.
    """

    codes: tuple[Codes, ...]
    size: int
    names: tuple[str, ...]
    ordered: bool
    axis: str


def shared_cells(
    tables: Sequence[Table], real: Sequence[Table], column: Column, *, most: int, fewest: int
) -> SharedCells:
    """Cells to compare tables in: of numbers by their quantiles in train, one for each label.

    Real rows alone decide which cells of numbers there are. Their names hold rounded edges, each shared by
    enough training rows.

    Args:
        real: tables, train first, in which a cell of numbers should hold ``fewest`` rows.
        most: cells of numbers at most.
    """
    if (kind := number_kind(column)) is None:
        return _label_cells(tables, column)
    numbers = [SortedNumbers.of(t.numbers(column.name)) for t in real]
    edges = tellable_edges(numbers, most, fewest)
    found = tuple(cell_codes(t.numbers(column.name), edges) for t in tables)
    shared = _shared_edges(edges, numbers[0], fewest, kind.edge_grids(edges)) if len(edges) else edges
    names = (*_cell_names(edges, shared, column), _MISSING_LABEL)
    axis = "value, in cells of equal real mass with rounded edges"
    return SharedCells(found, len(names), names, ordered=True, axis=axis)


def _label_cells(tables: Sequence[Table], column: Column) -> SharedCells:
    """One cell for each label of any of the tables, numbered as :func:`.codes.codes` does.

    Of several spellings of a label the most frequent one names it, that of the first table if it has it.
    """
    joint = codes(tables, column)
    last = 1 + max(int(c.max()) for c in joint)
    found = tuple(np.where(c < 0, last, c) for c in joint)
    labels: dict[int, str | None] = {}
    for table, of_table in zip(tables, found, strict=True):
        # The most frequent label of a code first, of equally frequent ones the first met.
        pairs = pa.table({"code": of_table, "label": table.texts(column.name)})
        counted = pairs.group_by(["code", "label"], use_threads=False).aggregate([([], "count_all")])
        order = np.argsort(-counted["count_all"].to_numpy(), kind="stable")[::-1]
        spelt = (counted[name].take(pa.array(order)).to_pylist() for name in ("code", "label"))
        labels = dict(zip(*spelt, strict=True)) | labels
    known = {i: label for i, label in labels.items() if label is not None}
    names = (*(known[i] for i in range(1 + max(known, default=-1))), _MISSING_LABEL)
    size = 1 + max(int(c.max()) for c in found)
    return SharedCells(found, size, names, ordered=False, axis="category")


def tellable_edges(real: Sequence[SortedNumbers], most: int, fewest: int) -> Floats:
    """Inner edges of as many quantile cells of train, at most ``most``, as leave the most to compare.

    Fewer where control is small: of ten cells with too few control rows each, all would be joined.

    Args:
        real: numbers of train, and of control where it is there.
    """
    best, left = np.empty(0), -1
    for n_cells in range(most, 1, -1):
        edges = real[0].quantile_cells(n_cells)
        counts = [v.cell_counts(edges) for v in real]
        told = tellable_cells(counts, fewest, ordered=True)
        if len(told) > left:
            best, left = edges, len(told)
        if len(told) == np.count_nonzero(np.sum(counts, axis=0)):
            break  # none is joined, so fewer cells leave no more
    return best


def _shared_edges(edges: Floats, train: SortedNumbers, fewest: int, grids: Iterable[ValueGrid]) -> Floats:
    """Each edge on the finest grid where ``fewest`` training rows share its place, ascending; else NaN."""
    shared = np.full(len(edges), np.nan)
    for grid in grids:
        near = grid.nearest(edges)
        enough = SortedNumbers.of(grid.nearest(train.values)).held(near) >= fewest
        shared = np.where(np.isnan(shared) & enough, near, shared)
        if not np.isnan(shared).any():
            return np.maximum.accumulate(shared)
    return np.full(len(edges), np.nan)


def _cell_names(edges: Floats, shared: Floats, column: Column) -> list[str]:
    """Names of the cells between edges, by the rounded ones; by number where these are NaN."""
    if not len(edges) or np.isnan(shared).any():
        return [f"cell {i + 1}" for i in range(len(edges) + 1)]
    texts = [column.kind.bound_text(edge) for edge in shared.tolist()]
    spikes = np.nextafter(edges[1:], -np.inf) == edges[:-1]  # cells of one value
    between = [
        b if spike else f"about {b}" if a == b else f"{a} to {b}"
        for (a, b), spike in zip(pairwise(texts), spikes, strict=True)
    ]
    return [f"up to {texts[0]}", *between, f"over {texts[-1]}"]


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


def shares(codes: Codes, n_cells: int) -> Floats:
    """Share of rows in each cell, shape (n_cells,)."""
    return np.bincount(codes, minlength=n_cells) / len(codes)


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
    def of(cls, first: SortedNumbers, second: SortedNumbers) -> "SortedPair":
        """Merge them."""
        n, m = len(first.values), len(second.values)
        both = np.concatenate([first.values, second.values])
        order = np.argsort(both, kind="stable")  # which takes two sorted halves in one pass
        values = both[order]
        last = SortedNumbers(values, 0).last
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
        sizes = SortedNumbers(self.values, 0).cell_counts(edges)[:-1]
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
    def of(cls, n: int, n_draws: int, rng: np.random.Generator) -> "Resamples":
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
    return Interval(value - room, value + room, level, NOTHING_SEEN)
