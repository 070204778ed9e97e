"""Models that tell rows of two tables apart, and what they may use of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.encode.codes import by_frequency, codes
from synth_audit.execution.executor import single_threaded, single_threaded_algebra
from synth_audit.execution.seeds import as_int_seed
from synth_audit.stats.regression import SMALLEST, Scaling
from synth_audit.stats.roc import PlacementValues
from synth_audit.table.kind import NumberPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

ROWS_PER_TERM, MOST_TERMS, MOST_LABELS = 10, 400, 64
"""Labels get terms of their own, the frequent ones first, as long as there are so many rows for each term, no
more terms than that in all, and no more labels than that of one column; the others of a column are joined."""

_RIDGE = 1e-6
"""Penalty on squared coefficients, per row, so that a maximum exists where a term tells without fail."""

_MOST_STEPS, _CLOSE = 200, 1e-12
"""Steps of Newton's method, and the gradient at which it ends."""


SMALLEST_LEAF, LEAVES, MOST_BINS = 20, 15, 255
"""Rows in a leaf, leaves of a tree, and values it tells apart; fewer where no leaf could hold so few rows."""

SHUFFLED_ROWS = 10_000
"""Rows scored in each fold to learn what its columns give away, whatever their number."""


def labels_that_fit(counts: Sequence[int], room: int, most: int) -> int:
    """The largest number of labels, at most ``most``, that every column can keep in ``room``; at least 1.

    Args:
        counts: labels of each column, of which it keeps all if it has no more.
    """
    kept = most
    while kept > 1 and sum(min(n, kept) for n in counts) > room:
        kept -= 1
    return max(kept, 1)


@dataclass(frozen=True, eq=False)
class PropensityFit:
    """Fitted probabilities that a row is of the second table.

    Attributes:
        scores: ŝ in (0, 1), shape (N,). second: whether a row is of the second table, shape (N,).
        axes: uncorrelated directions of the design with variance 1, shape (N, d); d is its rank.
    """

    scores: Floats
    second: Bools
    axes: Floats

    @classmethod
    def of(cls, design: Floats, second: Bools) -> PropensityFit:
        """Fit ``logit P(second) = β₀ + βᵀx`` by maximum likelihood.

        Directions in which the design does not vary are left out, so that collinear terms count once.

        Args:
            design: standardised terms, shape (N, p). second: shape (N,), of both kinds.
        """
        with single_threaded_algebra():
            axes = _uncorrelated(design)
            return cls(_maximum_likelihood(axes, second), second, axes)

    @property
    def rank(self) -> int:
        """d: terms that say something of their own, the constant not among them."""
        return int(self.axes.shape[1])

    @property
    def share(self) -> float:
        """c: share of rows of the second table."""
        return float(self.second.mean())

    @property
    def squared_error(self) -> float:
        """``pMSE = mean (ŝ − c)²``: 0 where nothing tells the tables apart, at most c (1 − c)."""
        return float(np.mean((self.scores - self.share) ** 2))

    @property
    def expected(self) -> float:
        """``c (1 − c) d / N``: pMSE in expectation for two samples of one population.

        Source: TableDiffusion thesis, equation 6.3.
        """
        return self.share * (1 - self.share) * self.rank / len(self.second)

    @property
    def expected_resampled(self) -> float:
        """``d (1 − c)² c / N``: pMSE in expectation where the second table is drawn from rows of the first.

        Less than :attr:`expected` by the factor 1 − c, for only one of the tables varies.
        Source: Snoke et al. 2018, with their k − 1 for d.
        """
        return self.expected * (1 - self.share)

    def standard_error(self) -> float:
        """Of pMSE: by the delta method for fitted coefficients and rows, or under the null if that is more.

        With ``g = mean 2 (ŝ − c) ŝ (1 − ŝ) x`` and H the information of one row, a row counts
        ``(ŝ − c)² + (y − ŝ) gᵀH⁻¹x``. Under the null ``N pMSE / (c (1 − c))`` is χ² with d degrees of freedom
        and variance 2d, where the delta method finds about 4d, and next to nothing if pMSE came out small.
        """
        n, c = len(self.scores), self.share
        with single_threaded_algebra():
            x = np.column_stack([np.ones(n), self.axes])
            moving = self.scores * (1 - self.scores)
            information = (x.T * moving) @ x / n + _RIDGE * np.eye(x.shape[1])
            slope = 2 * ((self.scores - c) * moving) @ x / n
            effect = x @ np.linalg.solve(information, slope)
        rows = (self.scores - c) ** 2 + (self.second - self.scores) * effect
        null = 2 * self.rank * (c * (1 - c) / n) ** 2
        return float(np.sqrt(max(np.var(rows) / n, null)))


def _uncorrelated(design: Floats) -> Floats:
    """The design in its principal axes, each of variance 1, without those in which it does not vary."""
    sizes, axes = np.linalg.eigh(design.T @ design / max(len(design), 1))
    kept = sizes > SMALLEST * max(float(sizes[-1]), 1.0)
    return np.asarray(design @ (axes[:, kept] / np.sqrt(sizes[kept])))


def _maximum_likelihood(axes: Floats, second: Bools) -> Floats:
    """Fitted probabilities, shape (N,), with one thread, since sums in parts would depend on how many."""
    from sklearn.linear_model import LogisticRegression  # here, since a code location must not load it

    if not axes.shape[1]:
        return np.full(len(second), second.mean())
    n = len(second)
    model = LogisticRegression(C=1 / (_RIDGE * n), solver="newton-cholesky", tol=_CLOSE, max_iter=_MOST_STEPS)
    # Of all libraries, not only numpy's: the solver brings one of its own.
    with single_threaded():
        return np.asarray(model.fit(axes, second).predict_proba(axes)[:, 1])


def propensity_terms(tables: Sequence[Table], columns: Sequence[Column]) -> Floats:
    """What the model may use: numbers, indicators of labels and of missing values, shape (rows of all, p).

    Numbers are standardised on all rows, missing read as the mean; columns without spread are 0.
    """
    values, labelled = [], []
    for column in columns:
        part = column.kind.part
        if isinstance(part, NumberPart):
            values.append(np.concatenate([part.read(t.column(column.name)) for t in tables]))
        else:
            labelled.append(_by_frequency(tables, column))
    n = sum(t.n_rows for t in tables)
    gaps = [np.isnan(v) for v in values if np.isnan(v).any()]
    room = min(MOST_TERMS, n // ROWS_PER_TERM) - len(values) - len(gaps)
    # Of each column one label has no term, since it follows from the others.
    most = labels_that_fit([int(c.max(initial=0)) for c in labelled], room, MOST_LABELS)
    blocks = [np.column_stack(values)] if values else []
    blocks += [np.column_stack(gaps).astype(np.float64)] if gaps else []
    blocks += [_indicators(c, most) for c in labelled]
    design = np.hstack(blocks)
    return Scaling.of(design).apply(design)


def _by_frequency(tables: Sequence[Table], column: Column) -> Codes:
    """Labels of all rows numbered from 0, the most frequent first, missing among them; shape (n,)."""
    joint = np.concatenate(codes(tables, column))
    return by_frequency([joint], joint)[0]


def _indicators(ranked: Codes, most: int) -> Floats:
    """1 where a row holds the k-th most frequent label, k < ``most``, shape (n, ≤ most)."""
    kept = np.arange(min(most, int(ranked.max(initial=0)) + 1))
    return np.asarray(ranked[:, None] == kept, dtype=np.float64)


def tree_features(tables: Sequence[Table], columns: Sequence[Column]) -> TreeFeatures:
    """Numbers by their rank, since trees see nothing else; labels by their frequency."""
    bins = min(MOST_BINS, max(2 * SMALLEST_LEAF, sum(t.n_rows for t in tables) // SMALLEST_LEAF))
    values, discrete = [], []
    for column in columns:
        part = column.kind.part
        discrete.append(not isinstance(part, NumberPart))
        if isinstance(part, NumberPart):
            values.append(_ranks(np.concatenate([part.read(t.column(column.name)) for t in tables])))
        else:
            ranked = _by_frequency(tables, column)
            values.append(np.minimum(ranked, bins - 1).astype(np.float64))
    return TreeFeatures(np.column_stack(values), np.array(discrete), bins)


def _ranks(values: Floats) -> Floats:
    """0 … from low to high, and −1 for missing: trees refuse a column that has nothing else."""
    known = ~np.isnan(values)
    ranks = np.full(len(values), -1.0)
    ranks[known] = np.unique(values[known], return_inverse=True)[1]
    return ranks


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
