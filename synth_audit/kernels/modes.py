"""Modes of a column of numbers, by a variational Gaussian mixture."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats, Positions

MOST = 10
"""Modes that are tried."""

_CONCENTRATION = 0.001
"""Prior weight of each: small, so that modes which are not needed die out."""

_LEAST_WEIGHT = 0.005
"""A mode of less weight is left out."""

_ROWS = 20_000
"""Values that a mixture is fitted to at most."""


@dataclass(frozen=True)
class Modes:
    """Normal modes, each of shape (k,), k ≥ 1; weights sum to 1."""

    means: Floats
    deviations: Floats
    weights: Floats

    @classmethod
    def of(cls, values: Floats, rng: np.random.Generator) -> Modes:
        """Of finite numbers, at least two of which differ; few different values have no more modes.

        Source: Xu et al. 2019, section 4.2.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import BayesianGaussianMixture

        if len(values) > _ROWS:
            values = rng.choice(values, _ROWS, replace=False)
        centre, scale = values.mean(), values.std()
        mixture = BayesianGaussianMixture(
            n_components=min(MOST, len(np.unique(values))),
            weight_concentration_prior_type="dirichlet_process",
            weight_concentration_prior=_CONCENTRATION,
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that is nearly there will do
            mixture.fit(((values - centre) / scale)[:, None])
        kept = mixture.weights_ > _LEAST_WEIGHT
        deviations = np.sqrt(mixture.covariances_[kept, 0, 0]) * scale
        weights = mixture.weights_[kept]
        return cls(mixture.means_[kept, 0] * scale + centre, deviations, weights / weights.sum())

    def drawn(self, values: Floats, rng: np.random.Generator) -> Positions:
        """A mode for each value, by its share of the density there, shape (n,)."""
        z = (values[:, None] - self.means) / self.deviations
        logs = np.log(self.weights) - np.log(self.deviations) - z**2 / 2
        shares = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
        chosen: Positions = (rng.random(len(values))[:, None] * shares[:, -1:] > shares).sum(axis=1)
        return chosen
