"""Predictive models by name, and their scores on held-out real rows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
ModelName = Literal["random_forest", "logistic", "gradient_boosting"]


def class_scores(name: ModelName, x: Floats, y: Codes, x_test: Floats, n_classes: int, seed: int) -> Floats:
    """Fit a classifier and score test rows.

    Args:
        x, y: training features, shape (n, d), and classes 0 … n_classes − 1, shape (n,).
        x_test: shape (m, d).

    Returns:
        Probability of every class, shape (m, n_classes); a class absent from ``y`` has probability 0, and
        data of a single class give that class probability 1 everywhere.
    """
    scores = np.zeros((len(x_test), n_classes))
    present = np.unique(y)
    if len(present) == 1:
        scores[:, present[0]] = 1.0
        return scores
    model = _one_thread(_classifier(name, seed).fit(x, y))
    scores[:, model.classes_] = model.predict_proba(x_test)
    return scores


def predicted_values(name: ModelName, x: Floats, y: Floats, x_test: Floats, seed: int) -> Floats:
    """Fit a regression (``logistic`` stands for its linear counterpart) and predict, shape (m,)."""
    predicted: Floats = _one_thread(_regressor(name, seed).fit(x, y)).predict(x_test)
    return predicted


def auroc(scores: Floats, y: Codes, weights: Floats | None = None) -> float:
    """Area under the ROC curve from scores; several classes: mean over one-against-rest curves.

    ``AUROC = P(score of a member > score of a non-member) + ½ P(tie)``; NaN without both sides.

    Args:
        scores: shape (m, n_classes). y: shape (m,). weights: how often each row counts, shape (m,).
    """
    weights = np.ones(len(y)) if weights is None else weights
    sides = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    areas = [_binary_auroc(scores[:, k], y == k, weights) for k in sides]
    known = [a for a in areas if np.isfinite(a)]
    return float(np.mean(known)) if known else float("nan")


def accuracy(scores: Floats, y: Codes, weights: Floats | None = None) -> float:
    """Share of rows whose most probable class is the true one."""
    return float(np.average(scores.argmax(axis=1) == y, weights=weights))


def f1(scores: Floats, y: Codes, weights: Floats | None = None) -> float:
    """``F1 = 2·TP / (2·TP + FP + FN)``, mean over the classes that occur in ``y`` (macro average)."""
    weights = np.ones(len(y)) if weights is None else weights
    guess = scores.argmax(axis=1)
    each = []
    for k in np.unique(y[weights > 0]):
        hit = weights[(guess == k) & (y == k)].sum()
        wrong = weights[(guess == k) != (y == k)].sum()
        each.append(2 * hit / (2 * hit + wrong))
    return float(np.mean(each))


def r_squared(predicted: Floats, y: Floats, weights: Floats | None = None) -> float:
    """``R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)²``; NaN when ``y`` does not vary."""
    mean = np.average(y, weights=weights)
    spread = float(np.average((y - mean) ** 2, weights=weights))
    if spread == 0:
        return float("nan")
    return 1.0 - float(np.average((y - predicted) ** 2, weights=weights)) / spread


def _binary_auroc(scores: Floats, member: npt.NDArray[np.bool_], weights: Floats) -> float:
    inside, outside = weights[member].sum(), weights[~member].sum()
    if not inside or not outside:
        return float("nan")
    levels, level = np.unique(scores, return_inverse=True)
    of_members = np.bincount(level, weights * member, len(levels))
    of_others = np.bincount(level, weights * ~member, len(levels))
    below = np.cumsum(of_others) - of_others
    return float(np.sum(of_members * (below + 0.5 * of_others)) / (inside * outside))


def _one_thread(model: Any) -> Any:
    """A forest's trees are the same for any number of threads, but threads add their votes in the order
    in which they finish, and so the last digits of a prediction would differ from run to run."""
    if hasattr(model, "n_jobs"):
        model.n_jobs = 1
    return model


def _classifier(name: ModelName, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    match name:
        case "random_forest":
            return RandomForestClassifier(n_estimators=100, min_samples_leaf=2, n_jobs=-1, random_state=seed)
        case "gradient_boosting":
            return HistGradientBoostingClassifier(random_state=seed)
        case "logistic":
            return LogisticRegression(max_iter=2000)


def _regressor(name: ModelName, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge

    match name:
        case "random_forest":
            return RandomForestRegressor(n_estimators=100, min_samples_leaf=2, n_jobs=-1, random_state=seed)
        case "gradient_boosting":
            return HistGradientBoostingRegressor(random_state=seed)
        case "logistic":
            return Ridge(alpha=1.0)
