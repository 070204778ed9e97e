"""An autoencoder by attention, and a mixture of its codes."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.generators._deep import torch
from synth_audit.generators._deep.attention import AttentionTraining, codes_of_rows, kept_weights, named
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, GeneratorInfo

_ROWS_EACH = 50
"""A component of the mixture of codes is fitted for so many rows."""

_STEADY = 1e-3
"""Added to the variances of a component, of standardised codes."""


@dataclass(frozen=True, kw_only=True)
class AttentionAe(AttentionTraining):
    """Rows are rebuilt from codes by attention; new codes come from a mixture of normal densities.

    Tokens of a row's columns attend to one another, then those of a column over the rows of a batch; the
    code of the row is a projection of its tokens, and one perceptron for each column rebuilds it: labels by
    cross-entropy, numbers by a mixture of normal densities, with the RMSE of its mean and its likelihood.

    Row attention is the encoder's alone, and the encoder is no part of the model. New rows are made of
    codes from a mixture of normal densities that was fitted to the codes of train, each by itself.
    As published the autoencoder only rebuilds real rows, which would be no release.

    Attributes:
        components: normal densities of the codes; fewer where there are fewer than 50 rows for each.

    Source: Truda 2023, chapter 4; Somepalli et al. 2021; Ghosh et al. 2020 for codes drawn afterwards.
    """

    components: Count = 10
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Attention-AE",
        summary="Autoencoder by attention over columns and rows; no privacy guarantee.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 2, "width": 8, "hidden": 8, "mixtures": 2},
    )

    def learn(self, training: Training) -> Weights:
        """Train the autoencoder, then fit the mixture to the codes of train."""
        network = self.autoencoder(training)
        codes = codes_of_rows(network, training).cpu().numpy()
        components = min(self.components, 1 + len(codes) // _ROWS_EACH)
        return kept_weights(fitted_mixture(codes, components, training.rng), network)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors."""
        mixture = named(weights)
        return self.drawn(lambda x: mixture_codes(mixture, x), 1 + self.width, weights, layout, n, rng)


def mixture_codes(mixture: Weights, x: "torch.Tensor") -> "torch.Tensor":
    """Codes from a mixture of normal densities: the first input picks the component, the others its place.

    Args:
        mixture: ``ends`` of the components' shares of 1, ``means`` and ``factors`` of their covariances.
        x: shape (n, 1 + width).
    """
    ends, means, factors = (torch.as_tensor(mixture[name]) for name in ("ends", "means", "factors"))
    chosen = torch.searchsorted(ends, torch.special.ndtr(x[:, 0])).clamp(max=len(ends) - 1)
    return means[chosen] + torch.einsum("nde,ne->nd", factors[chosen], x[:, 1:])


def fitted_mixture(codes: Floats32, components: int, rng: np.random.Generator) -> Weights:
    """The mixture of so many components that :func:`mixture_codes` draws from.

    Source: Truda 2023, section 4.3.1; Ghosh et al. 2020 for codes drawn afterwards.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    centre, scale = codes.mean(axis=0), np.maximum(codes.std(axis=0), _STEADY)
    if len(codes) == 1:
        codes = np.repeat(codes, 2, axis=0)
    mixture = GaussianMixture(components, reg_covar=_STEADY, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that is nearly there will do
        mixture.fit(((codes - centre) / scale).astype(np.float64))
    found = {
        "ends": mixture.weights_.cumsum(),
        "means": centre + scale * mixture.means_,
        "factors": scale[:, None] * np.linalg.cholesky(mixture.covariances_),
    }
    return {name: array.astype(np.float32) for name, array in found.items()}
