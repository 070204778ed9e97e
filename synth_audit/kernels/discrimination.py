"""Trees that tell rows of two tables apart, scored on rows they were not grown on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.seeds import as_int_seed
from synth_audit.kernels.parallel import single_threaded
from synth_audit.kernels.roc import PlacementValues

SMALLEST_LEAF, LEAVES, MOST_BINS = 20, 15, 255
"""Rows in a leaf, leaves of a tree, and values it tells apart; fewer where no leaf could hold so few rows."""

SHUFFLED_ROWS = 10_000
"""Rows scored in each fold to learn what its columns give away, whatever their number."""


@dataclass(frozen=True, eq=False)
class TreeFeatures:
    """What trees may use: order numbers of values and of labels, a missing one among them.

    Attributes:
        values: shape (rows of all tables, d). discrete: which columns have no order, shape (d,).
        bins: values of a column that trees tell apart; labels beyond so many are joined.
    """

    values: Floats
    discrete: Bools
    bins: int


@dataclass(frozen=True, eq=False)
class Discriminated:
    """What trees made of two tables.

    Attributes:
        folds: placement values of held-out rows, fold by fold, the second table's being the members.
        lost: for each column, what they lose when its values are shuffled, in a part of the held-out
            rows; by fold.
    """

    folds: tuple[PlacementValues, ...]
    lost: tuple[tuple[PlacementValues, ...], ...]


def discriminate(
    features: TreeFeatures, n_first: int, n_folds: int, n_trees: int, rng: np.random.Generator
) -> Discriminated:
    """Cross-fit gradient-boosted trees on the rows of two tables, of which ``n_first`` are the first's.

    Folds hold equal parts of either table. Twins of a held-out row may be among the rows that its trees were
    grown on: copies of the first table then score below ½, since each row's twin has the other answer.

    Args:
        n_folds: at least 2, and at most half of the rows of the smaller table.
    """
    second = np.arange(len(features.values)) >= n_first
    sizes = n_first, len(second) - n_first
    fold = np.concatenate([rng.permutation(n) % n_folds for n in sizes])
    found, lost = [], []
    for k in range(n_folds):
        model = _grown(features, second, fold != k, n_trees, as_int_seed(rng))
        held_out = [np.flatnonzero((fold == k) & side) for side in (~second, second)]
        [whole] = _placement_values(model, features.values[np.concatenate(held_out)][None], len(held_out[0]))
        found.append(whole)
        lost.append(_lost(model, features.values, held_out, rng))
    return Discriminated(tuple(found), tuple(zip(*lost, strict=True)))


def _grown(features: TreeFeatures, second: Bools, rows: Bools, n_trees: int, seed: int) -> Any:
    """Boosted trees grown on some of the rows, with one thread: sums in parts would depend on how many."""
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,  # here, since a code location must not load it
    )

    model = HistGradientBoostingClassifier(
        max_iter=n_trees,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=SMALLEST_LEAF,
        max_bins=features.bins,
        categorical_features=features.discrete,
        early_stopping=False,
        random_state=seed,
    )
    with single_threaded():
        return model.fit(features.values[rows], second[rows])


def _placement_values(model: Any, versions: Floats, n_first: int) -> tuple[PlacementValues, ...]:
    """Of held-out rows, ``n_first`` of the first table first, in each version; shape (versions, rows, d)."""
    with single_threaded():
        scores = model.decision_function(versions.reshape(-1, versions.shape[2]))
    by_version = scores.reshape(len(versions), -1)
    return tuple(PlacementValues.of(s[n_first:], s[:n_first]) for s in by_version)


def _lost(
    model: Any, values: Floats, held_out: Sequence[Positions], rng: np.random.Generator
) -> tuple[PlacementValues, ...]:
    """For each column, what the placement values of some held-out rows lose when it is shuffled."""
    n, d = sum(map(len, held_out)), values.shape[1]
    part = min(1.0, SHUFFLED_ROWS / (n * d))
    drawn = [rng.permutation(rows)[: max(2, round(part * len(rows)))] for rows in held_out]
    test = values[np.concatenate(drawn)]
    versions = np.repeat(test[None], 1 + d, axis=0)
    for j in range(d):
        versions[1 + j, :, j] = rng.permutation(test[:, j])
    whole, *shuffled = _placement_values(model, versions, len(drawn[0]))
    return tuple(whole.less(one) for one in shuffled)
