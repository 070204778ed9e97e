"""How numbers were moved or scaled, otherwise in each column and group: learnt from rows that labels lead to.

Who has the labels of one release row alone is its person if anybody is. Where many such pairs of one group
differ by the same share of a column's range, or by the same factor, that is how the group's numbers were
recoded; the weights that follow are those of record linkage (:mod:`learnt_linkage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.core.arrays import Codes, Floats
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
    and of shares and factors those are taken, that tell most.

    Args:
        others: columns that are as they were, one at least; all release rows are compared.
        numbers: of the release first, NaN where there is none, shape (n,) each.
    """
    weights = LinkageWeights.before(others, Blocks.of(others), labels_known=True)
    best, clear = weights.best()
    teaches = shares_below(clear) ** _CLEARER
    groupings = [np.zeros(len(best), np.int64), *(_groups(c) for c in others if c.size <= _MOST)]
    columns, tables = [*others], [*weights.tables]
    for values in numbers:
        wide = _range(values)
        release, people = values[:n_release], values[n_release:]
        found = [
            _moves(_binned(release[best], people[:, None], wide, factors), teaches, groups, factors)
            for factors in (False, True)
            for groups in groupings
        ]
        moves = max(found, key=lambda m: m.evidence)
        column = LinkedColumn.of(np.nan_to_num(values, nan=-1e9), n_release, numeric=True)
        middle = _middles(column, values)
        bins = _binned(middle[None, :], middle[:, None], wide, moves.factors)
        tables.append(moves.weights[:, bins].reshape(-1, column.size).astype(np.float32))
        columns.append(replace(column, people=moves.groups * column.size + column.people))
    return LinkageWeights(columns, Blocks.of(columns), tables)


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
