"""Measures of association between the columns of a table, with the jackknife of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Counts32, Floats, Floats32
from synth_audit.execution.executor import single_threaded_algebra

Scalar = TypeVar("Scalar", bound=np.generic)

_MOST_CELLS, _MOST_ROWS = 512, 8192
"""Cells and rows that are multiplied at a time: some 40 MiB with the counts of twenty groups."""

_STEPS, _LARGEST = 256, 8
"""Steps of the table to a unit of ``√λ``, and the ``√λ`` beyond which it is level."""

_MOST_KENDALL = 20_000
"""Kendall's tau is estimated from at most this many evenly spaced rows."""

_NO_SPREAD = 1e-12
"""Variance, in units of the column's own, that is nothing but rounding."""


@dataclass(frozen=True, eq=False)
class JackknifeRows:
    """Rows of one table in groups, each of which is left out once.

    Attributes:
        cells: cell of each row in every column, 0 … size − 1, shape (n, d).
        sizes: number of cells of each column, shape (d,).
        numbers: values of the numeric columns, NaN where missing, shape (n, p).
        groups: rows of each group; together all rows. A single group is never left out.
    """

    cells: Codes
    sizes: Codes
    numbers: Floats
    groups: tuple[slice, ...]

    @classmethod
    def of(
        cls,
        cells: Codes,
        sizes: Codes,
        numbers: Floats,
        n_groups: int = 1,
        rng: np.random.Generator | None = None,
    ) -> Self:
        """Put the rows into at most ``n_groups`` groups of one size, at random where ``rng`` is given."""
        n = len(cells)
        order = np.arange(n) if rng is None else rng.permutation(n)
        ends = np.linspace(0, n, min(n_groups, n) + 1).astype(int).tolist()
        groups = tuple(slice(a, b) for a, b in pairwise(ends))
        return cls(cells[order], sizes, numbers[order], groups)

    @property
    def left_out(self) -> tuple[slice, ...]:
        """The rows that each replicate lacks: none, then each group."""
        return (slice(0, 0), *(self.groups if len(self.groups) > 1 else ()))


def differences(parts: npt.NDArray[Scalar]) -> Iterator[npt.NDArray[Scalar]]:
    """The sum of the parts of all groups, shape (g, …), then the sum without each."""
    total = parts.sum(axis=0, dtype=parts.dtype)
    yield total
    if len(parts) > 1:
        yield from (total - part for part in parts)


def cell_counts(rows: JackknifeRows, column: int) -> Counts32:
    """Rows in every cell of a column, for each replicate; shape (t, cells)."""
    size = int(rows.sizes[column])
    parts = [np.bincount(rows.cells[group, column], minlength=size) for group in rows.groups]
    return np.stack(list(differences(np.stack(parts).astype(np.int32))))


def pair_counts(rows: JackknifeRows, a: slice, b: slice, group: slice) -> Counts32:
    """Rows of a group in every pair of cells of two blocks of columns, shape (cells, cells)."""
    total = np.zeros((rows.sizes[a].sum(), rows.sizes[b].sum()), dtype=np.int32)
    for block in row_blocks(group):
        hot = [one_hot(rows.cells[block, of], rows.sizes[of]) for of in (a, b)]
        total += (hot[0].T @ hot[1]).astype(np.int32)  # whole numbers: exact, whatever the order of the sum
    return total


def rows_apart(rows: JackknifeRows, present: Bools, missing: Codes) -> Codes:
    """Rows that do not lie in the fullest cell of column i, of those in which columns i and j are present.

    Args:
        present: where each column has a value to compare, shape (n, d).
        missing: cell of each column that stands for no value, −1 for none, shape (d,).

    Returns:
        shape (d, d), not symmetric.
    """
    first = starts(rows.sizes)
    counts = np.zeros((int(rows.sizes.sum()), len(rows.sizes)))
    for block in row_blocks(slice(0, len(rows.cells))):
        counts += one_hot(rows.cells[block], rows.sizes).T @ present[block].astype(np.float32)
    counts[(first + missing)[missing >= 0]] = 0
    rest = np.add.reduceat(counts, first, axis=0) - np.maximum.reduceat(counts, first, axis=0)
    return np.asarray(rest, dtype=np.int64)


def standardised(numbers: Floats) -> Floats:
    """Columns in standard deviations from their mean; 0 where a column does not vary, NaN where missing."""
    made = np.full(numbers.shape, np.nan)
    for j, values in enumerate(numbers.T):
        known = ~np.isnan(values)
        if known.any():
            unit = np.abs(values[known]).max() or 1.0  # squares of huge numbers have no room
            centred = values[known] / unit - (values[known] / unit).mean()
            spread = centred.std() if values[known].min() < values[known].max() else 0.0
            made[known, j] = centred / spread if spread > 0 else 0.0
    return made


def one_hot(cells: Codes, sizes: Codes) -> Floats32:
    """1 in the cell of each column that a row lies in, shape (n, cells of all columns)."""
    hot = np.zeros((len(cells), int(sizes.sum())), dtype=np.float32)
    hot[np.arange(len(cells))[:, None], cells + starts(sizes)] = 1
    return hot


def column_blocks(sizes: Codes) -> Iterator[slice]:
    """Neighbouring columns with few enough cells together; a column of too many stands alone."""
    start, width = 0, 0
    for j, size in enumerate(sizes.tolist()):
        if width and width + size > _MOST_CELLS:
            yield slice(start, j)
            start, width = j, 0
        width += size
    if len(sizes):
        yield slice(start, len(sizes))


def row_blocks(group: slice) -> Iterator[slice]:
    """A group's rows, few enough at a time."""
    for start in range(group.start, group.stop, _MOST_ROWS):
        yield slice(start, min(start + _MOST_ROWS, group.stop))


def starts(sizes: Codes) -> Codes:
    """Position of the first cell of each column, shape (d,)."""
    return np.cumsum(sizes) - sizes


def over_pairs(values: Floats, first: Codes, second: Codes) -> Floats:
    """Sums of the cells of every pair of columns, whose first cells are given; shape (columns, columns)."""
    summed: Floats = np.add.reduceat(np.add.reduceat(values, second, axis=1), first, axis=0)
    return summed


def divided(a: Floats, b: Floats, above: float = 0.0) -> Floats:
    """a / b, and 0 where b is not above the limit."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > above)


def chance_information(of_a: Floats, of_b: Floats, n: int) -> Floats:
    """What each cell of a table of two independent columns adds to ``n I`` on average, given its margins.

    A cell's count N is nearly Poisson with mean ``λ = n_i n_j / n``, which would add
    ``h(λ) = E[N log N] − λ log λ``. Fixed margins take the share ``c = 1 − (1 − n_i/n)(1 − n_j/n)`` of its
    variance away, and with it ``c λ E[Δ² N log N] / 2``, to the first order of Charlier's expansion. Both are
    read off a table; summed over the cells this is the expectation of Vinh, Epps & Bailey 2010, which would
    cost time in proportion to the counts.

    Args:
        of_a, of_b: rows in each cell of either column, shapes (r,) and (k,).

    Returns:
        shape (r, k), in nats.
    """
    excess, lessened = _of_poisson()
    place = np.sqrt(of_a / n)[:, None] * (_STEPS * np.sqrt(of_b)) + 0.5
    at = np.minimum(place, len(excess) - 1).astype(np.int32)
    kept = (1 - of_a / n)[:, None] * (1 - of_b / n)
    chance: Floats = excess[at] - (1 - kept) * lessened[at]
    return chance


@cache
def _of_poisson() -> tuple[Floats, Floats]:
    """``h(λ) = λ (E[log(N + 1)] − log λ)`` and ``λ E[Δ² N log N] / 2`` on a grid of ``√λ``."""
    root = np.arange(_LARGEST * _STEPS + 1) / _STEPS
    mean = np.maximum(root**2, 1e-12)
    counts = np.arange(4.0 * _LARGEST**2)
    logs = np.log(counts + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(logs)[:-1]])
    share = np.exp(counts * np.log(mean)[:, None] - mean[:, None] - log_factorials)
    bent = (
        counts * np.log(np.maximum(counts, 1)) - 2 * (counts + 1) * logs + (counts + 2) * np.log(counts + 2)
    )
    return mean * ((share * logs).sum(axis=1) - np.log(mean)), mean * (share * bent).sum(axis=1) / 2


def pearson(rows: JackknifeRows) -> Floats:
    """Pearson's correlation over the rows in which both numbers are present, in [−1, 1]; shape (t, p, p).

    0 where either number does not vary.
    """
    scaled = standardised(rows.numbers)
    with single_threaded_algebra():
        parts = np.stack([_moments(scaled[group]) for group in rows.groups])
    return np.stack([_correlation(moments) for moments in differences(parts)])


def spearman(rows: JackknifeRows) -> Floats:
    """Pearson's correlation of mid-ranks among the values present in each column; shape (t, p, p)."""
    places = [_places(values) for values in rows.numbers.T]
    found = np.zeros((len(rows.left_out), len(places), len(places)))
    with single_threaded_algebra():
        for t, out in enumerate(rows.left_out if places else ()):
            ranks = [_ranks(place, n_values, out) for place, n_values in places]
            found[t] = _correlation(_moments(np.column_stack(ranks)))
    return found


@dataclass(frozen=True, eq=False)
class Contingency:
    """What the tables of counts of all pairs of columns say.

    Attributes:
        n: rows, shape (t,).
        levels: cells of each column that hold a row, shape (t, d).
        entropy: of each column, in nats, shape (t, d).
        phi2: mean square contingency ``Σ n_ij² / (n_i n_j) − 1``, shape (t, d, d).
        information: mutual information in nats, shape (t, d, d).
        chance: what independent columns with the same margins would show of it on average, shape (t, d, d);
            without a group of rows it is taken to be larger as the rows are fewer.
    """

    n: Floats
    levels: Floats
    entropy: Floats
    phi2: Floats
    information: Floats
    chance: Floats


def contingency(rows: JackknifeRows) -> Contingency:
    """Cross every column with every other, cells by cells."""
    d, out = len(rows.sizes), rows.left_out
    n = np.array([len(rows.cells) - (s.stop - s.start) for s in out], dtype=np.float64)
    margins = [cell_counts(rows, j) for j in range(d)]
    upto = np.arange(len(rows.cells) + 1, dtype=np.float64)
    logs = upto * np.log(np.maximum(upto, 1.0))  # n log n of each count
    entropy = np.stack([np.log(n) - logs[m].sum(axis=1) / n for m in margins], axis=1)
    levels = np.stack([(m > 0).sum(axis=1) for m in margins], axis=1).astype(np.float64)
    found = np.zeros((2, len(out), d, d))
    blocks = list(column_blocks(rows.sizes))
    with single_threaded_algebra():
        for a in blocks:
            for b in (b for b in blocks if b.start >= a.start):
                crossed = _crossed(rows, a, b, margins, logs)
                found[:, :, a, b] = crossed
                found[:, :, b, a] = crossed.transpose(0, 1, 3, 2)
    joint = np.log(n)[:, None, None] - found[1] / n[:, None, None]
    information = np.maximum(entropy[:, :, None] + entropy[:, None, :] - joint, 0.0)
    chance = _by_chance(rows, margins) / n[:, None, None]
    return Contingency(n, levels, entropy, np.maximum(found[0] - 1, 0.0), information, chance)


def cramers_v(counts: Contingency, *, corrected: bool = True) -> Floats:
    """Cramér's V of every pair of columns, ``sqrt(φ² / min(r − 1, k − 1))``, in [0, 1]; shape (t, d, d).

    Corrected for what chance adds: ``φ² − (r − 1)(k − 1)/(n − 1)``, not below 0, and in place of r and k
    ``r − (r − 1)²/(n − 1)`` and ``k − (k − 1)²/(n − 1)``. 0 where a column is constant. Source: Bergsma 2013.
    """
    phi2, free = counts.phi2, counts.levels - 1
    if corrected:
        room = np.maximum(counts.n - 1, 1.0)[:, None]
        phi2 = np.maximum(phi2 - free[:, :, None] * free[:, None, :] / room[:, :, None], 0.0)
        free = free - free**2 / room
    most = np.minimum(free[:, :, None], free[:, None, :])
    return np.sqrt(np.clip(divided(phi2, most, above=1e-9), 0.0, 1.0))


def normalised_information(counts: Contingency, *, corrected: bool = True) -> Floats:
    """``I(A; B) / M`` with ``M = (H(A) + H(B)) / 2`` of every pair of columns, in [0, 1]; shape (t, d, d).

    Corrected for what chance adds, E: ``(I − E) / (M − E)``, not below 0. 0 where both columns are constant.
    Source: Vinh, Epps & Bailey 2010, of which only the way to E differs, see :func:`chance_information`.
    """
    most = (counts.entropy[:, :, None] + counts.entropy[:, None, :]) / 2
    chance = counts.chance if corrected else np.zeros_like(counts.chance)
    return np.clip(divided(counts.information - chance, most - chance, above=1e-9), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class VarianceShares:
    """How much of the variance of numbers lies between labels, over the rows where the number is present.

    Attributes:
        eta2: ``Σ_c n_c (ȳ_c − ȳ)² / Σ (y − ȳ)²``; 0 where the number does not vary; shape (t, q, p).
        levels: labels that occur, shape (t, q, p).
        n: rows, shape (t, 1, p).
    """

    eta2: Floats
    levels: Floats
    n: Floats


def variance_shares(rows: JackknifeRows, labels: Codes) -> VarianceShares:
    """Set every number against every label column.

    Args:
        labels: positions of the label columns among the columns of cells, shape (q,).
    """
    scaled = standardised(rows.numbers)
    found = np.zeros((2, len(rows.left_out), len(labels), scaled.shape[1]))
    chosen = JackknifeRows(rows.cells[:, labels], rows.sizes[labels], scaled, rows.groups)
    totals = list(differences(np.stack([_sums(scaled[group]) for group in rows.groups])))
    with single_threaded_algebra():
        for block in column_blocks(chosen.sizes):
            first = starts(chosen.sizes[block])
            parts = np.stack([_label_sums(chosen, block, group) for group in rows.groups])
            for t, of_labels in enumerate(differences(parts)):
                found[0, t, block] = _between(of_labels, totals[t], first)
                found[1, t, block] = np.add.reduceat(of_labels[0] > 0, first, axis=0, dtype=np.float64)
    return VarianceShares(found[0], found[1], np.stack([total[0] for total in totals])[:, None])


def correlation_ratio(shares: VarianceShares, *, corrected: bool = True) -> Floats:
    """Correlation ratio η of every number on every label column, in [0, 1]; shape (t, q, p).

    Corrected for what chance adds: ``sqrt(1 − (1 − η²)(n − 1)/(n − k))`` with k the labels that occur, 0 if
    the root has no real value. Source: Kelley 1935.
    """
    if not corrected:
        plain: Floats = np.sqrt(shares.eta2)
        return plain
    room = shares.n - shares.levels
    left = np.where(room > 0, (1 - shares.eta2) * divided(shares.n - 1, room), 1.0)
    found: Floats = np.sqrt(np.clip(1 - left, 0.0, 1.0))
    return found


def between_numbers(values: Floats, numeric: Bools) -> Floats:
    """Correlations of the numbers, shape (t, p, p), among all columns; 0 elsewhere; shape (t, d, d)."""
    numbers = np.flatnonzero(numeric)
    found = np.zeros((len(values), len(numeric), len(numeric)))
    found[:, numbers[:, None], numbers] = values
    return found


def mixed(ranked: Floats, ratios: Floats, between_labels: Floats, numeric: Bools) -> Floats:
    """One matrix of what two numbers, a label and a number, and two labels say of each other, (t, d, d).

    Args:
        ranked: of the numbers among all columns, shape (t, d, d). ratios: shape (t, q, p).
        between_labels: shape (t, d, d). numeric: which columns are numbers, shape (d,).
    """
    numbers, labels = np.flatnonzero(numeric), np.flatnonzero(~numeric)
    found = np.where(np.logical_and.outer(~numeric, ~numeric), between_labels, ranked)
    found[:, labels[:, None], numbers] = ratios
    found[:, numbers[:, None], labels] = ratios.transpose(0, 2, 1)
    return found


def _moments(x: Floats) -> Floats:
    """Rows, sums, sums of squares and of products over the rows in which both are present; (4, p, p)."""
    known = (~np.isnan(x)).astype(np.float64)
    x = np.nan_to_num(x)
    if known.all():
        ones = np.ones((x.shape[1], x.shape[1]))
        totals = [x.sum(axis=0)[:, None] * ones, (x * x).sum(axis=0)[:, None] * ones]
        return np.stack([len(x) * ones, *totals, x.T @ x])
    return np.stack([known.T @ known, x.T @ known, (x * x).T @ known, x.T @ x])


def _correlation(moments: Floats) -> Floats:
    n, total, squares, products = moments
    rows = np.maximum(n, 1.0)
    spread = squares / rows - (total / rows) ** 2
    shared = products / rows - total * total.T / rows**2
    spread = np.where(spread > _NO_SPREAD, spread, 0.0)
    return np.clip(divided(shared, np.sqrt(spread * spread.T)), -1.0, 1.0)


def _places(values: Floats) -> tuple[Codes, int]:
    """Position of each value among the different values, −1 where missing, and how many those are."""
    known = ~np.isnan(values)
    different, position = np.unique(values[known], return_inverse=True)
    places = np.full(len(values), -1, dtype=np.int64)
    places[known] = position
    return places, len(different)


def _ranks(places: Codes, n_values: int, out: slice) -> Floats:
    """Mid-ranks over n, centred, of the rows that are not left out; NaN where missing."""
    kept = np.concatenate([places[: out.start], places[out.stop :]])
    held = np.bincount(kept[kept >= 0], minlength=n_values)
    middle = (np.cumsum(held) - held / 2) / max(1, held.sum()) - 0.5
    ranks: Floats = np.append(middle, np.nan)[kept]
    return ranks


def _crossed(rows: JackknifeRows, a: slice, b: slice, margins: list[Counts32], logs: Floats) -> Floats:
    """``Σ n²/(n_i n_j)`` and ``Σ n log n`` of the pairs of two blocks, shape (2, t, a, b)."""
    first, second = (starts(rows.sizes[block]) for block in (a, b))
    parts = np.stack([pair_counts(rows, a, b, group) for group in rows.groups])
    found = []
    for t, counts in enumerate(differences(parts)):
        of_a, of_b = (np.concatenate([m[t] for m in margins[block]]).astype(float) for block in (a, b))
        squares = counts.astype(np.float64)
        squares *= squares * divided(np.ones(len(of_a)), of_a)[:, None]
        squares *= divided(np.ones(len(of_b)), of_b)
        found.append([over_pairs(cells, first, second) for cells in (squares, logs[counts])])
    return np.array(found).transpose(1, 0, 2, 3)


def _by_chance(rows: JackknifeRows, margins: list[Counts32]) -> Floats:
    """n times what chance adds to the information of each pair of columns of the whole table; (d, d)."""
    found = np.zeros((len(margins), len(margins)))
    whole = [m[0].astype(np.float64) for m in margins]
    for a in column_blocks(rows.sizes):
        for b in column_blocks(rows.sizes):
            of_a, of_b = np.concatenate(whole[a]), np.concatenate(whole[b])
            cells = chance_information(of_a, of_b, len(rows.cells))
            found[a, b] = over_pairs(cells, starts(rows.sizes[a]), starts(rows.sizes[b]))
    return found


def _label_sums(rows: JackknifeRows, columns: slice, group: slice) -> Floats:
    """Rows with a number and their sum, in every cell and for every number; shape (2, cells, p)."""
    total = np.zeros((2, int(rows.sizes[columns].sum()), rows.numbers.shape[1]))
    for block in row_blocks(group):
        hot = one_hot(rows.cells[block, columns], rows.sizes[columns]).astype(np.float64)
        numbers = rows.numbers[block]
        total[0] += hot.T @ (~np.isnan(numbers)).astype(np.float64)
        total[1] += hot.T @ np.nan_to_num(numbers)
    return total


def _sums(x: Floats) -> Floats:
    """Rows, sum and sum of squares of each number, shape (3, p)."""
    known = np.nan_to_num(x)
    return np.stack([(~np.isnan(x)).sum(axis=0), known.sum(axis=0), (known * known).sum(axis=0)])


def _between(of_labels: Floats, totals: Floats, first: Codes) -> Floats:
    """η², shape (labels, p)."""
    held, total_of = of_labels
    n, total, squares = totals
    rows = np.maximum(n, 1.0)
    spread = squares - total**2 / rows
    between = np.add.reduceat(divided(total_of**2, held), first, axis=0) - total**2 / rows
    return np.clip(divided(between, np.where(spread > _NO_SPREAD * rows, spread, 0.0)), 0.0, 1.0)


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's tau-b of two variables over the rows where both are present; 0 where it is undefined.

    Args:
        x, y: shape (n,), NaN where missing.
    """
    from scipy.stats import kendalltau

    both = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if len(both) > _MOST_KENDALL:
        both = both[np.linspace(0, len(both) - 1, _MOST_KENDALL).astype(np.intp)]
    x, y = x[both], y[both]
    if len(both) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(kendalltau(x, y).statistic)
