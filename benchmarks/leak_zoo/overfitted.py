"""Generators that repeat the people they learned from: ordinary methods at settings that overfit.

Each draws rows from the training set alone, without a planted leak. Every person may be given away, so such a
case has share 0: nobody knows how many are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from leaks import smote
from sklearn.mixture import GaussianMixture
from tables import Dealt
from values import Rng, Rows, between, number_columns, rounded_like

Draw = Callable[[Dealt, int, Rng], Rows]
"""Draws so many rows, from train alone."""

BANDWIDTH = 0.1
"""Of a standard deviation. Silverman's rule gives 0.4 for 2,000 rows of six numbers."""
LIKE_ONE_OF_TWO = 0.2
"""The α of mixup's weights ~ Beta(α, α), by Zhang et al. 2018: most mixtures lie near one of the two rows."""
ROWS_EACH = 20
"""Training rows for each component of the mixture: fewer than a covariance of 15 columns has entries."""


def resampled(dealt: Dealt, n: int, rng: Rng) -> Rows:
    return dealt.train.sample(n, replace=True, random_state=rng).reset_index(drop=True)


def jittered(width: float, redrawn: float) -> Draw:
    """A training row, each number moved by a normal of ``width`` standard deviations, and this share of the
    labels drawn anew from the column."""

    def draw(dealt: Dealt, n: int, rng: Rng) -> Rows:
        train, made = dealt.train, resampled(dealt, n, rng)
        for c in train:
            if c in number_columns(train):
                moved = made[c].to_numpy() + rng.normal(scale=width * train[c].std(), size=n)
                made[c] = rounded_like(moved, train[c])
            else:
                other = train[c].sample(n, replace=True, random_state=rng).to_numpy()
                made[c] = made[c].where(rng.random(n) >= redrawn, other)
        return made

    return draw


def smote_of(neighbours: int) -> Draw:
    """A point between a training row and one of its nearest others."""
    return lambda dealt, n, rng: smote(resampled(dealt, n, rng), dealt, rng, neighbours)


def mixup(dealt: Dealt, n: int, rng: Rng) -> Rows:
    """A convex mixture of two training rows, each label that of the heavier row (Zhang et al. 2018)."""
    weight = rng.beta(LIKE_ONE_OF_TWO, LIKE_ONE_OF_TWO, n)
    return between(resampled(dealt, n, rng), resampled(dealt, n, rng), weight, dealt.train)


def gaussian_mixture(dealt: Dealt, n: int, rng: Rng) -> Rows:
    """A mixture of Gaussians of all columns, labels as numbers in their order."""
    train, numbers = dealt.train, number_columns(dealt.train)
    labels = {c: train[c].astype("category").cat for c in train.columns.difference(numbers)}
    coded = train.assign(**{c: label.codes for c, label in labels.items()}).astype(float)
    spread = coded.std().replace(0, 1)
    model = GaussianMixture(
        max(1, len(train) // ROWS_EACH), reg_covar=1e-4, random_state=int(rng.integers(2**31))
    )
    drawn, _ = model.fit(coded / spread).sample(n)
    made = pd.DataFrame(drawn[rng.permutation(n)], columns=train.columns) * spread
    for c in numbers:
        made[c] = rounded_like(made[c].to_numpy(), train[c])
    for c, label in labels.items():
        code = np.clip(np.rint(made[c]), 0, len(label.categories) - 1).astype(int)
        made[c] = label.categories[code]
    return made


DRAWS: dict[str, Draw] = {
    "density": jittered(BANDWIDTH, 0.0),
    "smote_1": smote_of(1),
    "smote_5": smote_of(5),
    "mixup": mixup,
    "bootstrap": jittered(0.01, 0.05),
    "gaussian_mixture": gaussian_mixture,
}

GENERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"cart_{leaf}": ("cart", {"minimum_leaf": leaf, "smooth": False}) for leaf in (1, 2, 5)},
    "tvae_long": ("tvae", {"epochs": 3_000, "regularised": False}),
    "ctgan_long": ("ctgan", {"epochs": 3_000, "averaging": 0.0}),
}
"""Generators of the package; networks see every row ten times as often as by default."""

KINDS = (*GENERATORS, *DRAWS)


def release_of(dealt: Dealt, kind: str, n: int, rng: Rng) -> Rows:
    """So many rows of a kind in ``DRAWS``, with train's types."""
    return DRAWS[kind](dealt, n, rng).astype(dealt.train.dtypes)
