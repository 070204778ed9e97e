"""Predictive models by name: fitted on one table, asked about another, the same to the last bit each time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from synth_audit.core.arrays import Floats, Integers, Target
from synth_audit.kernels.parallel import single_threaded

ModelName = Literal["random_forest", "logistic", "gradient_boosting", "knn"]

TREES = 100
"""Trees of a forest, as scikit-learn's default."""

NEIGHBOURS = 20
"""Neighbours of kNN: enough different shares of votes for a ranking, few enough to be near."""

SEEDED: frozenset[ModelName] = frozenset({"random_forest"})
"""The models that draw at random; the others give the same for every seed."""


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
        if self.model is None:
            scores[:, self.present] = 1.0
            return scores
        with single_threaded():
            scores[:, self.present] = self.model.predict_proba(x)
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
    model = _classifier(name, seed, len(x)) if n_classes else _regressor(name, seed, len(x))
    with single_threaded(), warnings.catch_warnings():
        _tolerate_slow_convergence()
        model.fit(x, y)
    if name == "random_forest":
        # A forest's trees are the same for any number of threads, but threads add their votes in the order
        # in which they finish, and so the last digits of a prediction would differ from run to run.
        model.n_jobs = 1
    return Predictor(n_classes, present, model)


def _tolerate_slow_convergence() -> None:
    """A fit that would gain another digit by more steps is good enough to be scored."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)


def _classifier(name: ModelName, seed: int, n: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    match name:
        case "random_forest":
            return RandomForestClassifier(
                n_estimators=TREES, min_samples_leaf=2, n_jobs=-1, random_state=seed
            )
        case "gradient_boosting":
            return HistGradientBoostingClassifier(**_BOOSTING)
        case "logistic":
            return LogisticRegression(max_iter=500)
        case "knn":
            return KNeighborsClassifier(min(NEIGHBOURS, n), algorithm="brute")


def _regressor(name: ModelName, seed: int, n: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor

    match name:
        case "random_forest":
            return RandomForestRegressor(
                n_estimators=TREES, min_samples_leaf=2, max_features=_TRIED, n_jobs=-1, random_state=seed
            )
        case "gradient_boosting":
            return HistGradientBoostingRegressor(**_BOOSTING)
        case "logistic":
            return Ridge(alpha=1.0)
        case "knn":
            return KNeighborsRegressor(min(NEIGHBOURS, n), algorithm="brute")


_TRIED = 1 / 3
"""Share of the features tried at each split of a regression tree: half the time of all of them, and better
where no single column says it all. Source: Breiman 2001."""

_BOOSTING = {"max_iter": 50, "max_leaf_nodes": 15, "early_stopping": False, "random_state": 0}
"""Small trees, and few: on 5,000 rows of Adult as good as the library's own in half of the time."""
