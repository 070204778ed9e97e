"""Predictive models by name, and how well predictions fit the truth in all bootstrap resamples at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Codes, Counts8, Floats, Integers, Target
from synth_audit.execution.executor import single_threaded
from synth_audit.stats.roc import resampled_auroc

ModelName = Literal["random_forest", "logistic", "gradient_boosting", "knn"]

TREES = 100
"""Trees of a forest, as scikit-learn's default."""

NEIGHBOURS = 20
"""Neighbours of kNN: enough different shares of votes for a ranking, few enough to be near."""

SEEDED: frozenset[ModelName] = frozenset({"random_forest"})
"""The models that draw at random; the others give the same for every seed."""

_TRIED = 1 / 3
"""Share of the features tried at each split of a regression tree: half the time of all of them, and better
where no single column says it all. Source: Breiman 2001."""

_BOOSTING = {"max_iter": 50, "max_leaf_nodes": 15, "early_stopping": False, "random_state": 0}
"""Small trees, and few: on 5,000 rows of Adult as good as the library's own in half of the time."""

Score = Callable[[Floats, npt.NDArray[Any], Floats], Floats]
"""Predictions, truths, shape (m,), and how often each row counts, shape (d, m), to scores, shape (d,)."""

_BLOCK = 2**21
"""Weights held at a time: 16 MiB."""

_FLAT = 1e-12
"""A resample that varies by less than this part of the sample's variance holds one value and rounding."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """A fitted model.

    Attributes:
        n_classes: classes 0 … n_classes − 1 of the target, or 0 for a number.
        present: the classes that the model was trained on.
        model: None where there was a single one, which is then always predicted.
    """

    n_classes: int
    present: Integers
    model: Any

    def predict(self, x: Floats) -> Floats:
        """What the model says of rows, shape (m, d).

        Returns:
            Probability of every class, shape (m, n_classes), 0 for a class that nobody was trained on; of a
            number its value, shape (m,).
        """
        if not self.n_classes:
            with single_threaded():
                return np.asarray(self.model.predict(x), dtype=np.float64)
        scores = np.zeros((len(x), self.n_classes))
        with single_threaded():
            scores[:, self.present] = 1.0 if self.model is None else self.model.predict_proba(x)
        return scores


def fit(name: ModelName, x: Floats, y: Target, n_classes: int, seed: int) -> Predictor:
    """Fit a model.

    Linear algebra and boosting are held to one thread, since their sums depend on how many there are.

    Args:
        name: ``logistic`` is ridge regression where the target is a number.
        x: training features of about unit scale, shape (n, d), n ≥ 1.
        y: classes 0 … n_classes − 1, or numbers of about unit scale if ``n_classes`` is 0; shape (n,).
        seed: used by the models of :data:`SEEDED` only.
    """
    present = np.unique(y).astype(np.int64) if n_classes else np.empty(0, dtype=np.int64)
    if len(present) == 1:
        return Predictor(n_classes, present, None)
    model = _model(name, seed, len(x), classes=bool(n_classes))
    from sklearn.exceptions import ConvergenceWarning

    with single_threaded(), warnings.catch_warnings():
        # A fit that would gain another digit by more steps is good enough to be scored.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y)
    if name == "random_forest":
        # A forest's trees are the same for any number of threads, but threads add their votes in the order
        # in which they finish, and so the last digits of a prediction would differ from run to run.
        model.n_jobs = 1
    return Predictor(n_classes, present, model)


def _model(name: ModelName, seed: int, n: int, *, classes: bool) -> Any:
    """An untrained model of n rows, of classes or of numbers."""
    from sklearn import ensemble, neighbors
    from sklearn.linear_model import LogisticRegression, Ridge

    match name:
        case "random_forest":
            forest = ensemble.RandomForestClassifier if classes else ensemble.RandomForestRegressor
            tried = {} if classes else {"max_features": _TRIED}
            return forest(n_estimators=TREES, min_samples_leaf=2, n_jobs=-1, random_state=seed, **tried)
        case "gradient_boosting":
            boosted = (
                ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
            )
            return boosted(**_BOOSTING)
        case "logistic":
            return LogisticRegression(max_iter=500) if classes else Ridge(alpha=1.0)
        case "knn":
            near = neighbors.KNeighborsClassifier if classes else neighbors.KNeighborsRegressor
            return near(min(NEIGHBOURS, n), algorithm="brute")


def resampled_counts(m: int, n_draws: int, rng: np.random.Generator) -> Counts8:
    """How often each of m rows counts: once in the first line, then in ``n_draws`` bootstrap resamples.

    Returns:
        shape (1 + n_draws, m). A byte is enough: a count beyond 255 has probability 1e-500.
    """
    counts = np.ones((1 + n_draws, m), dtype=np.uint8)
    step = max(1, _BLOCK // m)
    for start in range(1, 1 + n_draws, step):
        size = min(step, 1 + n_draws - start)
        counts[start : start + size] = rng.multinomial(m, np.full(m, 1 / m), size)
    return counts


def scored(score: Score, predicted: Floats, y: npt.NDArray[Any], counts: Counts8) -> Floats:
    """The score of every resample, shape (d,); NaN where it is not defined."""
    step = max(1, _BLOCK // max(1, counts.shape[1]))
    blocks = [counts[i : i + step].astype(np.float64) for i in range(0, len(counts), step)]
    return np.concatenate([score(predicted, y, block) for block in blocks])


def one_against_rest_auroc(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Area under the ROC curve from scores; several classes: mean over one-against-rest curves.

    ``AUROC = P(score of a member > score of a non-member) + ½ P(tie)``. A class without members, or without
    others, has no curve; NaN where no class has one.

    Args:
        scores: shape (m, n_classes). y: shape (m,). weights: how often each row counts, shape (d, m).

    Returns:
        shape (d,), each in [0, 1].
    """
    areas = np.stack([resampled_auroc(scores[:, k], y == k, weights) for k in sides(scores.shape[1])])
    known = np.isfinite(areas)
    counts = known.sum(axis=0)
    return np.asarray(
        np.where(counts, np.where(known, areas, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)
    )


def sides(n_classes: int) -> range:
    """The classes whose curves count: of two, whose curves are each other's mirror, the second."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def accuracy(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Share of rows whose most probable class is the true one, shape (d,)."""
    table = _confusion(scores, y, weights)
    return np.asarray(np.einsum("dkk->d", table) / weights.sum(axis=1))


def hard_label_auroc(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Area under the ROC curve from the most probable class alone: ``(TPR + TNR) / 2`` against the rest.

    Its curve has one corner; of two classes it is the balanced accuracy. Several classes: the mean, as of
    :func:`one_against_rest_auroc`; a class without members, or without others, has no curve.
    """
    table, every = _confusion(scores, y, weights), weights.sum(axis=1)[:, None]
    hit, members, named = np.einsum("dkk->dk", table), table.sum(axis=2), table.sum(axis=1)
    others = every - members
    there = (members > 0) & (others > 0)
    spared = every - members - named + hit
    areas = (hit / np.where(there, members, 1.0) + spared / np.where(there, others, 1.0)) / 2
    counted = there[:, sides(scores.shape[1])]
    known = counted.sum(axis=1)
    total = np.where(counted, areas[:, sides(scores.shape[1])], 0.0).sum(axis=1)
    return np.asarray(np.where(known, total / np.maximum(known, 1), np.nan))


def f1(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """``F1 = 2·TP / (2·TP + FP + FN)``, mean over the classes that occur in ``y`` (macro average)."""
    table = _confusion(scores, y, weights)
    hit, members, named = np.einsum("dkk->dk", table), table.sum(axis=2), table.sum(axis=1)
    there = members > 0
    each = np.where(there, 2 * hit / np.maximum(members + named, 1.0), 0.0)
    return np.asarray(each.sum(axis=1) / there.sum(axis=1))


def _confusion(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Weight of the rows of each class, and among them of each most probable class, shape (d, k, k)."""
    k = max(scores.shape[1], int(y.max(initial=0)) + 1)
    cells = np.eye(k * k)[y * k + scores.argmax(axis=1)]
    return np.asarray((weights @ cells).reshape(len(weights), k, k))


def r_squared(predicted: Floats, y: Floats, weights: Floats) -> Floats:
    """``R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)²``, at most 1; NaN where ``y`` does not vary."""
    n = weights.sum(axis=1)
    means = np.einsum("dm,m->d", weights, y) / n
    around = np.einsum("dm,dm->d", weights, (y - means[:, None]) ** 2)
    missed = np.einsum("dm,m->d", weights, (y - predicted) ** 2)
    varies = around > _FLAT * n * np.var(y)
    return np.where(varies, 1.0 - missed / np.where(varies, around, 1.0), np.nan)
