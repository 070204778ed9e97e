"""A mixture of normal densities for the codes of rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.attention import DecodedCodes, autoencoder, codes_of_rows, drawn_rows
from synth_audit.generators._deep.training import Training, Weights, as_arrays
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.attention_ae import AttentionAe

_ROWS_EACH = 50
"""A component of the mixture of codes is fitted for so many rows."""

_STEADY = 1e-3
"""Added to the variances of a component, of standardised codes."""


@dataclass(frozen=True)
class MixtureNetwork:
    """The autoencoder, then a mixture of the codes of train.

    Source: Truda 2023, section 4.3.1; Ghosh et al. 2020 for codes drawn afterwards.
    """

    settings: AttentionAe

    def learn(self, training: Training) -> Weights:
        """Train the autoencoder, then fit the mixture."""
        network = autoencoder(training, self.settings)
        codes = codes_of_rows(network, training).cpu().numpy()
        components = min(self.settings.components, 1 + len(codes) // _ROWS_EACH)
        mixture = _mixture(codes, components, training.rng)
        return as_arrays(DecodedCodes(mixture, network.heads.cpu()))

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors."""
        mixture = MixtureCodes(len(weights["codes.ends"]), self.settings.width)
        return drawn_rows(mixture, 1 + self.settings.width, weights, layout, self.settings, n, rng)


class MixtureCodes(nn.Module):
    """Codes from a mixture of normal densities: the first input picks the component, the others its place."""

    def __init__(self, components: int, width: int) -> None:
        super().__init__()
        self.register_buffer("ends", torch.ones(components))
        self.register_buffer("means", torch.zeros(components, width))
        self.register_buffer("factors", torch.zeros(components, width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, 1 + width) to (n, width)."""
        chosen = torch.searchsorted(self.ends, torch.special.ndtr(x[:, 0])).clamp(max=len(self.ends) - 1)
        return self.means[chosen] + torch.einsum("nde,ne->nd", self.factors[chosen], x[:, 1:])


def _mixture(codes: Floats32, components: int, rng: np.random.Generator) -> MixtureCodes:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    centre, scale = codes.mean(axis=0), np.maximum(codes.std(axis=0), _STEADY)
    if len(codes) == 1:
        codes = np.repeat(codes, 2, axis=0)
    mixture = GaussianMixture(components, reg_covar=_STEADY, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that is nearly there will do
        mixture.fit(((codes - centre) / scale).astype(np.float64))
    made = MixtureCodes(components, codes.shape[1])
    made.ends.copy_(torch.as_tensor(mixture.weights_.cumsum()))
    made.means.copy_(torch.as_tensor(centre + scale * mixture.means_))
    factors = np.linalg.cholesky(mixture.covariances_)
    made.factors.copy_(torch.as_tensor(scale[:, None] * factors))
    return made
