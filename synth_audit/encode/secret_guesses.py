"""Guesses at a secret column: when one counts as right, and what can be guessed without the release."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Floats32
from synth_audit.neighbours.gower import MISSING, Mixed
from synth_audit.table.kind import GuessRule

_CENTRES = (0.05, 0.01, 0.0)
"""Tails left out of the central range, tried in turn until a range is left."""

_BINS = 20
"""Parts of equal weight into which a model cuts a number; a value as common as a part gets its own."""

_MOST_CLASSES = 64
"""Rarer labels are not told apart by the model, so that its memory does not grow with them."""

_BEYOND = 1e6
"""Numbers further than this from train's range are alike to the model."""


@dataclass(frozen=True)
class GuessTolerance:
    """When a guess at a number is right: ``|guess − s| ≤ tolerance · max(C, min(|s|, |s − M|))``.

    s is the secret, M the median of train and C the range of train's central 90 % (of 98 % or all of it where
    the narrower has no length). So a guess is right within the tolerance of the usual range or, far from
    it, relative to the secret. C is not the whole range, or one outlier would make every guess right; |s|
    counts no more than |s − M|, or every guess at a year would be. No sign enters: −100 is no guess at 900.

    Attributes:
        tolerance: relative, in [0, 1).
        centre, median: C and M, in the secret's unit.
    """

    tolerance: float
    centre: float
    median: float

    @classmethod
    def from_train(cls, values: Floats, tolerance: float) -> GuessTolerance:
        """Measure the present values of train, shape (n,), at least one of them."""
        known = values[~np.isnan(values)]
        ranges = [_length(*np.quantile(known, [tail, 1 - tail], method="nearest")) for tail in _CENTRES]
        return cls(tolerance, next((x for x in ranges if x > 0), 0.0), _median(known))

    def right(self, guesses: Floats, secrets: Floats) -> Bools:
        """Which guesses are right, shape (n,); a missing guess is wrong."""
        with np.errstate(over="ignore"):  # infinitely far is far
            outlying = np.minimum(np.abs(secrets), np.abs(secrets - self.median))
            allowed = self.tolerance * np.maximum(self.centre, outlying)
            # A hair more, since 1.15 − 1.1 is a little above 0.05.
            close: Bools = np.abs(guesses - secrets) <= allowed * (1 + 1e-9)
        return close

    def typical(self, values: Floats) -> float:
        """The guess of one who knows the population only: the median of the present values."""
        return _median(values[~np.isnan(values)])

    def classes(self, values: Floats) -> tuple[Codes, Floats]:
        """Part of each present value among up to 20 of equal weight, shape (n,), and each part's median."""
        edges = np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS, method="lower"))
        # The sum of both places is one of its own for values equal to an edge.
        places = np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right")
        used, part = np.unique(places, return_inverse=True)
        medians = [_median(values[part == i]) for i in range(len(used))]
        return part.astype(np.int64), np.array(medians)


@dataclass(frozen=True)
class Equality:
    """When a guess at a label, given by its code, is right: it is the same; a missing one (NaN) never is."""

    def right(self, guesses: Floats, secrets: Floats) -> Bools:
        """Which guesses are right, shape (n,)."""
        same: Bools = guesses == secrets
        return same

    def typical(self, values: Floats) -> float:
        """The guess of one who knows the population only: the commonest label."""
        return float(self.classes(values[~np.isnan(values)])[1][0])

    def classes(self, values: Floats) -> tuple[Codes, Floats]:
        """Rank of each present label by how common it is, shape (n,), and the label of each rank.

        The rarest share the last rank.
        """
        used, position, counts = np.unique(values, return_inverse=True, return_counts=True)
        by_count = np.argsort(-counts, kind="stable")
        rank = np.empty(len(used), dtype=np.int64)
        rank[by_count] = np.arange(len(used))
        return np.minimum(rank[position], _MOST_CLASSES - 1), used[by_count[:_MOST_CLASSES]]


def predicted(
    judge: GuessRule,
    known: Mixed,
    secrets: Floats,
    unknown: Mixed,
    n_trees: int,
    seed: int,
    *,
    randomised: bool = False,
) -> Floats:
    """Guesses of a forest that learnt the secret from people whom the generator never saw.

    A number is predicted as the median of the most probable of its parts, so that a value which many
    share can be hit exactly. One thread, so that votes add up in one order.

    Args:
        known: n rows without the secret; secrets: theirs, none missing, shape (n,).
        unknown: m rows of the same preparation.
        randomised: whether trees try one random split of each column that they look at (Geurts et al. 2006)
            instead of all, which takes a third of the time.

    Returns:
        shape (m,).
    """
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    classes, guess = judge.classes(secrets)
    if len(guess) == 1:
        return np.repeat(guess, len(unknown))
    forest_of = ExtraTreesClassifier if randomised else RandomForestClassifier
    forest = forest_of(n_trees, min_samples_leaf=5, max_depth=12, random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        # A secret of many labels in few rows is what it is: no mistaken regression.
        warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
        forest.fit(forest_features(known), classes)
    guesses: Floats = guess[forest.predict(forest_features(unknown))]
    return guesses


def forest_features(rows: Mixed) -> Floats32:
    """One column per column, for trees; they ask for order only, so missing numbers stand at one end."""
    numbers = np.where(rows.numbers == MISSING, -2 * _BEYOND, np.clip(rows.numbers, -_BEYOND, _BEYOND))
    return np.hstack([numbers, rows.labels]).astype(np.float32)


def _median(values: Floats) -> float:
    """A middle value that occurs, so that a number which many share can be hit exactly."""
    return float(np.quantile(values, 0.5, method="nearest"))


def _length(low: float, high: float) -> float:
    """``high − low``, finite also where the numbers are as far apart as can be."""
    return float(min(high / 2 - low / 2, np.finfo(np.float64).max / 2)) * 2
