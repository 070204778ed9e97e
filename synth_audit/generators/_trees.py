"""Decision trees as arrays, the numbers they learn from, and those drawn smoothly within a leaf."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from synth_audit.arrays import Bools, Codes, Codes32, Floats, Labels, Positions
from synth_audit.encode.scales import rank_scale
from synth_audit.encode.univariate import ATOM_ROWS, ATOM_SHARE
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table, assemble

_ROUNDING = 1e-9
"""Weights of people are summed in another order by the library than by whoever asks for so many of them."""

FEW = 5
"""Of fewer numbers in a group no spread can be told: another is drawn from anywhere in the column."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree: from an inner node a row goes left where its value is at most the threshold.

    Attributes:
        left, right: the children of each node, −1 at a leaf, shape (nodes,); node 0 is the root.
        column: in which an inner node looks. threshold: what it compares with; both shape (nodes,).
    """

    left: Codes32
    right: Codes32
    column: Codes32
    threshold: Floats

    @classmethod
    def of(cls, grown: Any) -> Self:
        """The arrays of a tree that scikit-learn has grown."""
        inside = grown.tree_
        left, right = inside.children_left.astype(np.int32), inside.children_right.astype(np.int32)
        return cls(left, right, inside.feature.astype(np.int32), inside.threshold.astype(np.float64))

    @classmethod
    def leaf(cls) -> Self:
        """A tree of nothing but its root."""
        nowhere = np.array([-1], dtype=np.int32)
        return cls(nowhere, nowhere, nowhere, np.zeros(1))

    def leaves(self, rows: Floats) -> Positions:
        """The node at which each row ends, shape (n,); values are rounded as they were when it grew.

        Args:
            rows: shape (n, d), finite.
        """
        values = rows.astype(np.float32)
        node = np.zeros(len(rows), dtype=np.intp)
        going = np.arange(len(rows))
        while len(going := going[self.left[node[going]] >= 0]):
            here = node[going]
            left = values[going, self.column[here]] <= self.threshold[here]
            node[going] = np.where(left, self.left[here], self.right[here])
        return node


def grown_tree(
    rows: Floats,
    target: Floats,
    *,
    classes: bool,
    weights: Floats,
    least: float,
    seed: int,
    gain: float = 0.0,
) -> Tree:
    """A tree grown until no split is left that separates the target (Breiman et al. 1984).

    Splits are chosen by Gini's index for classes, by squared error for numbers.

    Args:
        rows: shape (n, d), finite. target: shape (n,).
        weights: of the rows, shape (n,), above 0. least: that the weights of a leaf sum to at least; where
            not even the half of all do, the tree is its root.
        gain: the share of the impurity of all rows that a split must take away.
        seed: settles which of equally good splits is taken.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    total = float(weights.sum())
    if rows.shape[1] == 0 or 2 * least > total or (target == target[0]).all():
        return Tree.leaf()
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    shares = np.bincount(target.astype(np.int64), weights=weights) / total if classes else None
    impurity = float(np.var(target)) if shares is None else 1 - float(shares @ shares)
    grown = kind(
        min_weight_fraction_leaf=min(least / total * (1 - _ROUNDING), 0.5),
        min_impurity_decrease=gain * impurity,
        random_state=seed,
    )
    return Tree.of(grown.fit(rows, target, sample_weight=weights))


def label_order(labels: Codes, k: int, target: Floats, *, classes: bool) -> Floats:
    """The place of each label among the others as a tree for a target shall see them, shape (k,).

    By the mean of a number (Breiman et al. 1984, where the best split of labels is one of this order); for
    classes by the first principal axis of their shares within each label (Coppersmith, Hong & Hosking 1999).

    Args:
        labels: shape (n,), negative where missing. target: shape (n,), codes 0 … for classes.
    """
    known = labels >= 0
    counts = np.bincount(labels[known], minlength=k).astype(np.float64)
    if classes:
        scores = _first_axis(labels[known], k, target[known].astype(np.int64), counts)
    else:
        scores = np.bincount(labels[known], weights=target[known], minlength=k) / np.maximum(counts, 1)
    seen = counts > 0
    scores[~seen] = np.average(scores[seen], weights=counts[seen]) if seen.any() else 0.0
    return np.argsort(np.argsort(scores, kind="stable"), kind="stable").astype(np.float64)


def _first_axis(labels: Codes, k: int, target: Codes, counts: Floats) -> Floats:
    n_classes = int(target.max(initial=0)) + 1
    table = np.bincount(labels * n_classes + target, minlength=k * n_classes).reshape(k, n_classes)
    shares = table / np.maximum(counts, 1)[:, None]
    centred = shares - table.sum(axis=0) / max(counts.sum(), 1.0)
    axes = np.linalg.eigh(centred.T @ (centred * counts[:, None]))[1]
    axis = axes[:, -1]
    scores: Floats = centred @ (axis * np.sign(axis[np.abs(axis).argmax()]))
    return scores


def rare_numbers(numbers: Floats, weights: Floats, fewest: float) -> Bools:
    """Which values fewer people than ``fewest`` have, shape (n,).

    Args:
        numbers: shape (n,), without NaN. weights: of the rows, shape (n,); those of one person sum to 1 at
            most.
    """
    _, place = np.unique(numbers, return_inverse=True)
    rare: Bools = np.bincount(place, weights=weights)[place] < fewest
    return rare


def once_for_each_person(numbers: Floats, weights: Floats, fewest: float) -> Floats:
    """Each value as often as people have it, for a density in which none of few people is a peak.

    The rows of one person then count once where they agree. A value that fewer people than ``fewest`` have
    occurs less often than :func:`.univariate.kde_margin` asks of what it gives a probability
    of its own, which would be drawn exactly.

    Args:
        numbers, weights: see :func:`rare_numbers`.
    """
    values, place = np.unique(numbers, return_inverse=True)
    people = np.bincount(place, weights=weights)
    times = np.ceil(people - 1e-9).astype(np.intp)
    rare = people < fewest
    peaks = rare & (times >= ATOM_ROWS) & ((times >= ATOM_SHARE * times.sum()) | (rare.sum() == 1))
    if peaks.any():
        times[rare] = np.minimum(times[rare], ATOM_ROWS - 1)
    return np.repeat(values, times)


def bandwidths(levels: Floats, group: Positions, least: float) -> Floats:
    """Half the width of the window from which a level is drawn in the place of each, shape (n,).

    √3 h, that of a uniform kernel of standard deviation ``h = 1.06 min(s, IQR / 1.34) m^(−1/5)`` (Silverman
    1986) of the m levels of a group. A kernel over a fixed number of people, of whom somebody is one in
    twenty, would tell who is among them.

    Args:
        levels: in [0, 1], shape (n,). group: shape (n,), in which each lies. least: of all windows.
    """
    found = np.empty(len(levels))
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        found[rows] = 1.0 if len(rows) < FEW else np.sqrt(3) * _silverman(levels[rows])
    return np.clip(found, least, 1.0)


def _silverman(levels: Floats) -> float:
    low, high = np.quantile(levels, [0.25, 0.75])
    spreads = [s for s in (float(np.std(levels)), float(high - low) / 1.34) if s > 0]
    return 1.06 * min(spreads, default=0.0) * float(len(levels) ** -0.2)


def smoothed(levels: Floats, widths: Floats, uniform: Floats) -> Floats:
    """A level from the window around each, reflected at 0 and 1, shape (n,).

    Args:
        widths: of :func:`bandwidths`, at most 1. uniform: in [0, 1), shape (n,).
    """
    moved = np.abs(levels + widths * (2 * uniform - 1))
    inside: Floats = 1 - np.abs(1 - moved)
    return inside


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """What the numbers of all columns stand for.

    Attributes:
        schema: of the table that is drawn.
        labels: of each column by code 0, 1, …; None for a column of numbers.
    """

    schema: Schema = field(repr=False)
    labels: tuple[Labels | None, ...] = field(repr=False)

    @classmethod
    def of(cls, train: Table) -> "tuple[CodedColumns, Floats]":
        """The columns of train and their values, shape (n, d), NaN where missing.

        Dates are microseconds. Labels of equal frequency are numbered by their texts.
        """
        scales = [rank_scale(train, c, None, own_order=True) for c in train.schema]
        values = np.column_stack([scale.of(train) for scale in scales])
        return cls(train.schema, tuple(scale.labels for scale in scales)), values

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """How many labels each column has; None for numbers."""
        return tuple(None if labels is None else len(labels) for labels in self.labels)

    def table(self, values: Floats) -> Table:
        """Rows of a table from the numbers of all columns, shape (n, d)."""
        return assemble(
            self.schema,
            {c.name: _read(values[:, j], self.labels[j]) for j, c in enumerate(self.schema)},
        )


def _read(values: Floats, labels: Labels | None) -> Floats | Labels:
    if labels is None:
        return values
    missing = np.isnan(values)
    texts: Labels = np.array([*labels, None], dtype=object)
    return texts[np.where(missing, len(labels), values).astype(np.intp)]
