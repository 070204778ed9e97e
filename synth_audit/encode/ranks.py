"""Columns as numbers whose ranks carry their dependence, and orders of labels and variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Codes, Floats, Labels
from synth_audit.encode.codes import Vocabulary
from synth_audit.table.table import Table

MAX_ROWS = 20_000
"""Kendall's tau is estimated from at most this many evenly spaced rows."""
TREES = 200
"""Trees of the forest that importance is taken from."""
PSEUDO_ROWS = 5
"""Weight of the overall mean in the mean of one category."""


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's tau-b of two variables over the rows where both are present; 0 where it is undefined.

    Args:
        x, y: shape (n,), NaN where missing.
    """
    from scipy.stats import kendalltau

    both = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if len(both) > MAX_ROWS:
        both = both[np.linspace(0, len(both) - 1, MAX_ROWS).astype(np.intp)]
    x, y = x[both], y[both]
    if len(both) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(kendalltau(x, y).statistic)


def sensitive_first(values: Floats, sensitive: Sequence[int], root: int, threshold: float) -> tuple[int, ...]:
    """Order of the columns for a C-vine, first column in the last trees, last column the first root.

    S (sensitive, as given) · K = {k ∉ S : max_{j ∈ S} |τ_kj| > threshold} by that maximum, falling ·
    the rest as they stand · root. Source: TVineSynth, Algorithm 1.

    Args:
        values: shape (n, d), NaN where missing.
        sensitive: columns whose dependence truncation shall cut first; the root is left out of them.
        root: the response.
        threshold: ρ*, in [0, 1].
    """
    first = [j for j in sensitive if j != root]
    others = [k for k in range(values.shape[1]) if k != root and k not in first]
    closeness = {
        k: max((abs(kendall(values[:, k], values[:, j])) for j in first), default=0.0) for k in others
    }
    near = sorted((k for k in others if closeness[k] > threshold), key=lambda k: -closeness[k])
    return (*first, *near, *(k for k in others if k not in near), root)


def least_important_first(
    values: Floats, root: int, *, is_class: bool, rng: np.random.Generator
) -> tuple[int, ...]:
    """Order of the columns for a C-vine by rising importance for the root, which is last.

    Importance is the mean decrease of impurity in a random forest of ``TREES`` trees that predicts the root
    from the others; missing values count as the column's median, and rows without a root are left out. Equal
    columns keep their order. Source: TVineSynth, appendix.

    Args:
        values: shape (n, d), NaN where missing.
        root: the response, with at least two values. is_class: whether it holds codes of classes.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    others = [k for k in range(values.shape[1]) if k != root]
    if not others:
        return (root,)
    there = ~np.isnan(values[:, root])
    filled = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)[there]
    forest = (RandomForestClassifier if is_class else RandomForestRegressor)(
        TREES, random_state=int(rng.integers(2**31)), n_jobs=1
    )
    importance = forest.fit(filled[:, others], filled[:, root]).feature_importances_
    # Rounded, so that the order of summation decides nothing.
    return (*(others[i] for i in np.argsort(np.round(importance, 9), kind="stable")), root)


def central(values: Floats, candidates: Sequence[int]) -> int:
    """The candidate with the largest sum of |τ| to the other candidates; the first of several equals.

    Args:
        values: shape (n, d), NaN where missing.
    """
    totals = dict.fromkeys(candidates, 0.0)
    for i, a in enumerate(candidates):
        for b in candidates[i + 1 :]:
            tau = abs(kendall(values[:, a], values[:, b]))
            totals[a] += tau
            totals[b] += tau
    return max(candidates, key=lambda k: totals[k])


def order_by_response(codes: Codes, n_categories: int, response: Floats) -> Codes:
    """The categories sorted by the mean rank of the response in each, shape (k,).

    One pair copula has one direction: on this scale it can carry the whole effect of a nominal variable
    on the response. Means are shrunk by ``PSEUDO_ROWS``, so that a rare category does not land at an end by
    chance; equal means keep the given order.

    Args:
        codes: shape (n,), −1 where missing.
        response: shape (n,), NaN where missing.
    """
    from scipy.stats import rankdata

    both = (codes >= 0) & ~np.isnan(response)
    ranks = rankdata(response[both])
    overall = float(ranks.mean()) if len(ranks) else 0.0
    sums = np.bincount(codes[both], weights=ranks, minlength=n_categories)
    counts = np.bincount(codes[both], minlength=n_categories)
    return np.argsort((sums + PSEUDO_ROWS * overall) / (counts + PSEUDO_ROWS), kind="stable")


@dataclass(frozen=True, eq=False)
class NumberScale:
    """Numbers as they are."""

    name: str
    labels: Labels | None = None

    def of(self, table: Table) -> Floats:
        """The numbers, shape (n,), NaN where missing."""
        return table.numbers(self.name)


@dataclass(frozen=True, eq=False)
class LabelScale:
    """Labels as their place in an order that train fixes."""

    vocabulary: Vocabulary

    @classmethod
    def sorted_by(cls, train: Table, name: str, response: Floats | None) -> LabelScale:
        """By the mean rank of a response, shape (n,), in each label; without one by falling frequency."""
        known = Vocabulary.of(name, train, exact=True)
        if response is None:
            return cls(known.by_frequency(train))
        return cls(known.reordered(order_by_response(known.places(train), len(known.labels), response)))

    @classmethod
    def alphabetic(cls, train: Table, name: str) -> LabelScale:
        """By their texts."""
        return cls(Vocabulary.of(name, train, exact=True))

    @property
    def labels(self) -> Labels:
        """Of train, in that order, shape (k,)."""
        return self.vocabulary.array

    def of(self, table: Table) -> Floats:
        """Places, shape (n,), NaN where missing or a label that train lacks."""
        places = self.vocabulary.places(table)
        unknown = (places < 0) | (places == len(self.vocabulary.labels))
        return np.where(unknown, np.nan, places.astype(np.float64))
