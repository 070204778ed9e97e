"""How strongly the columns of a table hang together, with the jackknife of each measure.

Every function returns replicates: the measure of the whole table first, then that of the table without each
of its groups of rows, t = 1 + g in all. Counts and sums of the groups are subtracted, so that replicates cost
little more than the measure itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Codes, Counts32, Floats
from synth_audit.kernels import _left_out as sums
from synth_audit.kernels._chance import chance_information
from synth_audit.kernels._left_out import JackknifeRows, differences, divided, rows_apart, starts
from synth_audit.kernels.parallel import single_threaded_algebra

__all__ = [
    "Contingency",
    "JackknifeRows",
    "VarianceShares",
    "between_numbers",
    "contingency",
    "correlation_ratio",
    "cramers_v",
    "mixed",
    "normalised_information",
    "pearson",
    "rows_apart",
    "spearman",
    "variance_shares",
]

_NO_SPREAD = 1e-12
"""Variance, in units of the column's own, that is nothing but rounding."""


def pearson(rows: JackknifeRows) -> Floats:
    """Pearson's correlation over the rows in which both numbers are present, in [−1, 1]; shape (t, p, p).

    0 where either number does not vary.
    """
    scaled = sums.standardised(rows.numbers)
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
    n = np.array([len(rows.cells) - _rows_of(s) for s in out], dtype=np.float64)
    margins = [sums.margins(rows, j) for j in range(d)]
    logs = _times_log(len(rows.cells))
    entropy = np.stack([np.log(n) - logs[m].sum(axis=1) / n for m in margins], axis=1)
    levels = np.stack([(m > 0).sum(axis=1) for m in margins], axis=1).astype(np.float64)
    found = np.zeros((2, len(out), d, d))
    blocks = list(sums.column_blocks(rows.sizes))
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
    Source: Vinh, Epps & Bailey 2010, of which only the way to E differs, see ``_chance.py``.
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
    scaled = sums.standardised(rows.numbers)
    found = np.zeros((2, len(rows.left_out), len(labels), scaled.shape[1]))
    chosen = JackknifeRows(rows.cells[:, labels], rows.sizes[labels], scaled, rows.groups)
    totals = list(differences(np.stack([_sums(scaled[group]) for group in rows.groups])))
    with single_threaded_algebra():
        for block in sums.column_blocks(chosen.sizes):
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
    parts = np.stack([sums.counts(rows, a, b, group) for group in rows.groups])
    found = []
    for t, counts in enumerate(differences(parts)):
        of_a, of_b = (_inverse(np.concatenate([m[t] for m in margins[block]])) for block in (a, b))
        squares = counts.astype(np.float64)
        squares *= squares * of_a[:, None]
        squares *= of_b
        found.append([sums.over_pairs(cells, first, second) for cells in (squares, logs[counts])])
    return np.array(found).transpose(1, 0, 2, 3)


def _by_chance(rows: JackknifeRows, margins: list[Counts32]) -> Floats:
    """n times what chance adds to the information of each pair of columns of the whole table; (d, d)."""
    found = np.zeros((len(margins), len(margins)))
    whole = [m[0].astype(np.float64) for m in margins]
    for a in sums.column_blocks(rows.sizes):
        for b in sums.column_blocks(rows.sizes):
            of_a, of_b = np.concatenate(whole[a]), np.concatenate(whole[b])
            cells = chance_information(of_a, of_b, len(rows.cells))
            found[a, b] = sums.over_pairs(cells, starts(rows.sizes[a]), starts(rows.sizes[b]))
    return found


def _label_sums(rows: JackknifeRows, columns: slice, group: slice) -> Floats:
    """Rows with a number and their sum, in every cell and for every number; shape (2, cells, p)."""
    total = np.zeros((2, int(rows.sizes[columns].sum()), rows.numbers.shape[1]))
    for block in sums.row_blocks(group):
        hot = sums.one_hot(rows.cells[block, columns], rows.sizes[columns]).astype(np.float64)
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


def _times_log(most: int) -> Floats:
    """``n log n`` of 0 … most."""
    n = np.arange(most + 1, dtype=np.float64)
    return n * np.log(np.maximum(n, 1.0))


def _inverse(counts: Counts32) -> Floats:
    return divided(np.ones(len(counts)), counts.astype(np.float64))


def _rows_of(group: slice) -> int:
    return int(group.stop - group.start)
