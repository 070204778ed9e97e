"""Decision trees as arrays: grown by scikit-learn, descended and saved without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.core.arrays import Codes, Codes32, Floats, Positions

_ROUNDING = 1e-9
"""Weights of people are summed in another order by the library than by whoever asks for so many of them."""


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
    def of(cls, grown: Any) -> Tree:
        """The arrays of a tree that scikit-learn has grown."""
        inside = grown.tree_
        left, right = inside.children_left.astype(np.int32), inside.children_right.astype(np.int32)
        return cls(left, right, inside.feature.astype(np.int32), inside.threshold.astype(np.float64))

    @classmethod
    def leaf(cls) -> Tree:
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

    def arrays(self, name: str) -> dict[str, Codes32 | Floats]:
        """To be saved, each under a name that starts with ``name``; :meth:`from_arrays` reads them."""
        return {f"{name}.{field}": getattr(self, field) for field in ("left", "right", "column", "threshold")}

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, Any]) -> Tree:
        """What :meth:`arrays` named."""
        return cls(*(arrays[f"{name}.{field}"] for field in ("left", "right", "column", "threshold")))


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
