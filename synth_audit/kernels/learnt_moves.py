"""How numbers were moved or scaled, otherwise in each column and group: learnt from rows that labels lead to.

Who has the labels of one release row alone is its person if anybody is. Where many such pairs of one group
differ by the same share of a column's range, or by the same factor, that is how the group's numbers were
recoded; the weights that follow are those of record linkage (:mod:`learnt_linkage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Positions
from synth_audit.kernels.learnt_linkage import LinkageWeights, excess, shares_below
from synth_audit.kernels.linked_columns import Blocks, LinkedColumn

_BINS = 100
"""Bins of what two numbers differ by: of twice the range, or of factors from exp(−2.5) to exp(2.5)."""

_LARGEST = 2.5
"""Logarithm of a factor beyond which all are one."""

_CLEARER = 4
"""Power of the share of people whose best row stands out less, by which a person's best rows teach."""

_FEWEST, _MOST = 40, 16
"""People of a group at least, the others being one, and labels of a column that makes groups at most."""

_TRIED = 3
"""Other columns of the release in which the numbers of one are looked for."""

_PRIOR = 4.0
"""Pairs that the weights before learning count as, of one group."""


@dataclass(frozen=True, eq=False)
class _Moves:
    """What the numbers of one column differ by.

    Attributes:
        groups: of each person, 0 … k−1, shape (n,). weights: of each bin in each group, shape (k, bins).
        factors: whether numbers differ by factors, not by shares of the range.
    """

    groups: Codes
    weights: Floats
    factors: bool
    evidence: float


def learnt_moves(others: Sequence[LinkedColumn], numbers: Sequence[Floats], n_release: int) -> LinkageWeights:
    """Weights of labels as they are, and of numbers by how they seem to have been moved.

    For each column of numbers, of all columns of at most 16 labels (and of none) that one makes the groups,
    and of shares and factors those are taken, that tell most; or, where that tells more, the ranks of
    another column of the release, in whose distribution the numbers may have been put.

    Args:
        others: columns that are as they were, one at least; all release rows are compared.
        numbers: of the release first, NaN where there is none, shape (n,) each.
    """
    weights = LinkageWeights.before(others, Blocks.of(others), labels_known=True)
    best, clear = weights.best()
    teaches = shares_below(clear) ** _CLEARER
    groupings = [np.zeros(len(best), np.int64), *(_groups(c) for c in others if c.size <= _MOST)]
    columns, tables = [*others], [*weights.tables]
    in_other = _in_others(numbers, n_release, best, teaches)
    for own, others_places in zip(numbers, in_other, strict=True):
        read = [(own, groups, factors) for factors in (False, True) for groups in groupings]
        read += [(places, groupings[0], False) for places in others_places]
        found = [(v, _of_best(v, n_release, best, teaches, g, f)) for v, g, f in read]
        values, moves = max(found, key=lambda x: x[1].evidence)
        column = LinkedColumn.of(np.nan_to_num(values, nan=-1e9), n_release, numeric=True)
        middle = _middles(column, values)
        bins = _binned(middle[None, :], middle[:, None], _range(values), moves.factors)
        tables.append(moves.weights[:, bins].reshape(-1, column.size).astype(np.float32))
        columns.append(replace(column, people=moves.groups * column.size + column.people))
    return LinkageWeights(columns, Blocks.of(columns), tables)


def _of_best(
    values: Floats, n_release: int, best: Positions, teaches: Floats, groups: Codes, factors: bool
) -> _Moves:
    """What best rows differ by, in one way of reading the numbers of the release and of people."""
    release, people = values[:n_release], values[n_release:]
    bins = _binned(release[best], people[:, None], _range(values), factors)
    return _moves(bins, teaches, groups, factors)


def _in_others(
    numbers: Sequence[Floats], n_release: int, best: Positions, teaches: Floats
) -> list[list[Floats]]:
    """Ranks of the release in other columns, and below them those of people in each, or from the other end.

    Others are the columns in which best rows have more, or less, than the next best where people have more;
    the own one is among them where it is less.
    """
    release, people = (
        np.column_stack([_ranks(x[rows]) for x in numbers])
        for rows in (slice(n_release), slice(n_release, None))
    )
    mine, theirs = (np.nan_to_num(x - 0.5) for x in (people, release))
    more = theirs[best[:, 0]] - theirs[best[:, 1:]].mean(axis=1)
    together = (mine * teaches[:, None]).T @ more / np.sqrt((more**2).mean(axis=0) + 1e-9)
    np.fill_diagonal(together, np.minimum(np.diagonal(together), 0.0))
    return [
        [
            np.concatenate([release[:, j], people[:, i] if of[j] > 0 else 1 - people[:, i]])
            for j in np.argsort(-np.abs(of))[:_TRIED]
        ]
        for i, of in enumerate(together)
    ]


def _ranks(values: Floats) -> Floats:
    """Places among one another, from 0 to 1; NaN stays."""
    order = np.sort(values[np.isfinite(values)])
    low, high = (np.searchsorted(order, values, side) for side in ("left", "right"))
    return np.where(np.isfinite(values), (low + high) / (2 * max(1, len(order))), np.nan)


def _range(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max() - known.min()) or 1.0 if len(known) else 1.0


def _groups(column: LinkedColumn) -> Codes:
    counts = np.bincount(column.people, minlength=column.size)
    kept = np.where(counts[column.people] >= _FEWEST, column.people, -1)
    return np.unique(kept, return_inverse=True)[1].astype(np.int64)


def _binned(release: Floats, people: Floats, wide: float, factors: bool) -> Codes:
    """What numbers differ by, as bins; the last is for those that cannot be compared."""
    with np.errstate(all="ignore"):
        if factors:
            share = np.log(release / people) / _LARGEST
            share = np.where((release == 0) & (people == 0), 0.0, share)
            share = np.where((release == 0) != (people == 0), np.nan, share)
        else:
            share = (release - people) / wide
    place = np.clip(np.nan_to_num(share + 1, nan=0.0) / 2 * _BINS, 0, _BINS - 1).astype(np.int64)
    return np.where(np.isnan(share), _BINS, place)


def _moves(bins: Codes, teaches: Floats, groups: Codes, factors: bool) -> _Moves:
    """What best rows differ by more often than the next best, in each group; bins of shape (n, some)."""
    size = int(groups.max()) + 1
    cells = groups[:, None] * (_BINS + 1) + bins
    counted = []
    for some in (cells[:, :1], cells[:, 1:]):
        weigh = np.broadcast_to(teaches[:, None], some.shape)
        counts = np.bincount(some.ravel(), weigh.ravel(), size * (_BINS + 1)).reshape(size, -1)[:, :_BINS]
        # A half of what lies beside: a number that was rounded may fall there.
        beside = np.pad(counts, ((0, 0), (1, 1)))
        counted.append(counts + (beside[:, :-2] + beside[:, 2:]) / 2)
    first, usual = counted[0], counted[1] / max(1, bins.shape[1] - 1)
    beyond = excess(first, usual)
    expected = (usual + 0.5 / _BINS) / (usual + 0.5 / _BINS).sum(axis=1, keepdims=True)
    share = (beyond + _PRIOR * expected) / (beyond.sum(axis=1, keepdims=True) + _PRIOR)
    weights = np.log(share / expected)
    return _Moves(
        groups, np.pad(np.clip(weights, -4, 7), ((0, 0), (0, 1))), factors, float((beyond * weights).sum())
    )


def _middles(column: LinkedColumn, values: Floats) -> Floats:
    """The mean number of each cell, NaN where it has none, shape (k,)."""
    cells = np.concatenate([column.release, column.people])
    known = np.isfinite(values)
    counts = np.bincount(cells[known], minlength=column.size)
    with np.errstate(invalid="ignore"):
        middles: Floats = np.bincount(cells[known], values[known], column.size) / counts
    return middles
