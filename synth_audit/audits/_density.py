"""Trees that tell rows of two tables apart, and where a release is denser than the population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Floats32, Positions
from synth_audit.execution.executor import over_blocks, single_threaded
from synth_audit.execution.seeds import as_int_seed
from synth_audit.neighbours.search import Nearest
from synth_audit.stats.roc import PlacementValues

_TOUCHING = 1e-9
"""Added to every distance, as little as distances are rounded to, so that a copy has a finite logarithm."""

SMALLEST_LEAF, LEAVES, MOST_BINS = 20, 15, 255
"""Rows in a leaf, leaves of a tree, and values it tells apart; fewer where no leaf could hold so few rows."""

SHUFFLED_ROWS = 10_000
"""Rows scored in each fold to learn what its columns give away, whatever their number."""


def log_density_ratio(to_synthetic: Nearest, to_reference: Nearest, n_columns: int) -> Floats:
    """How much denser the release is around each record than the population, in log units up to a constant.

    The nearest-neighbour estimate of a density is ``k / (n r^d)`` with r the distance to the nearest of n
    rows, k the rows at that distance and d the number of columns, so
    ``log ratio = log k_s − log k_r + d · (log r_r − log r_s)``. Counting k keeps it an estimate where records
    repeat and r is 0 in both tables. The constant log n_r − log n_s is left out: it moves no rank.
    On Adult with a blurred copy of train this tells members better than more neighbours do, and much better
    than kernels on principal components, which smooth the copies away.
    Source: van Breugel et al. 2023 (DOMIAS), with Loftsgaarden & Quesenberry 1965 as density.

    Args:
        to_synthetic, to_reference: neighbours of the same n records. n_columns: d ≥ 1.

    Returns:
        Shape (n,), higher for likelier members; rounded to nine decimals.
    """
    counts = np.log(to_synthetic.ties) - np.log(to_reference.ties)
    distances = np.log(to_reference.first + _TOUCHING) - np.log(to_synthetic.first + _TOUCHING)
    ratio: Floats = np.round(counts + n_columns * distances, 9)
    return ratio


def tree_share(
    queries: Floats32, synthetic: Floats32, reference: Floats32, n_trees: int, seed: int
) -> Floats:
    """Share of synthetic among the rows that land where a query lands, over randomised trees.

    Extremely randomised trees, grown without resampling until each leaf is pure: a record that the release
    copied lands on its copy in every tree, where a bootstrap would leave out a third of the copies.
    Under equal densities the expectation is ``n_s / (n_s + n_r)``. Source: Geurts et al. 2006.

    Each tree is asked as soon as it has grown and then forgotten, since a hundred of them take ten times the
    room of the rows; they are those of a forest with this seed.

    Args:
        queries, synthetic, reference: finite, row by row in memory: looking again for every tree whether they
            are takes a tenth of its time.

    Returns:
        Shape (n,), in [0, 1], to nine decimals.
    """
    from sklearn.tree import ExtraTreeClassifier  # here, since a code location must not load it

    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n_trees)  # as forests draw them
    made = np.repeat([1, 0], [len(synthetic), len(reference)])
    rows = np.concatenate([synthetic, reference])

    def votes(block: slice) -> Floats:
        tree = ExtraTreeClassifier(random_state=int(seeds[block.start])).fit(rows, made, check_input=False)
        found: Floats = tree.predict_proba(queries, check_input=False)[:, 1]
        return found

    total = np.zeros(len(queries))
    for some in over_blocks(n_trees, 1, votes):
        total += some
    share: Floats = np.round(total / n_trees, 9)
    return share


def log_frequency_ratio(of_synthetic: Codes, of_reference: Codes) -> Floats:
    """How much more often the release holds what a record holds than the population without it does.

    ``log((n_s + ½) / N_s) − log((n_r − 1 + ½) / (N_r − 1))`` with n the rows that agree with the record:
    the density ratio on columns of which one only asks whether they agree. The halves keep it finite where
    nobody does (Haldane 1956).

    Args:
        of_synthetic, of_reference: numbers ≥ 0 that rows share exactly when they agree, shape (N_s,) and
            (N_r,); the records are the rows of the reference, at least two.

    Returns:
        Shape (N_r,), higher for likelier members; rounded to nine decimals.
    """
    size = 1 + max(int(of_synthetic.max(initial=0)), int(of_reference.max(initial=0)))
    made, real = (np.bincount(x, minlength=size)[of_reference] for x in (of_synthetic, of_reference))
    scale = np.log((len(of_reference) - 1) / len(of_synthetic))
    ratio: Floats = np.round(np.log(made + 0.5) - np.log(real - 0.5) + scale, 9)
    return ratio


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
    from sklearn.ensemble import HistGradientBoostingClassifier

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
