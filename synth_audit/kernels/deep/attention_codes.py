"""Three ways to draw codes for the heads of an attention autoencoder, and the training of each.

Each is a network from standard normal inputs to codes; no real row is an input of it or of the heads.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import nn

from synth_audit.core.arrays import Floats32
from synth_audit.kernels.deep.adversarial import Critic
from synth_audit.kernels.deep.attention import (
    AttentionAutoencoder,
    AttentionSettings,
    AttentionVariational,
    ColumnHeads,
    inner_decoder,
)
from synth_audit.kernels.deep.code_gan import CodeGanSettings, GeneratedCodes, play
from synth_audit.kernels.deep.descent import descend
from synth_audit.kernels.deep.training import (
    Loop,
    Weights,
    as_arrays,
    built,
    drawn_in_blocks,
    generator_from,
    one_thread,
    with_weights,
)
from synth_audit.kernels.row_layout import RowLayout

_ROWS_EACH = 50
"""A component of the mixture of codes is fitted for so many rows."""

_STEADY = 1e-3
"""Added to the variances of a component, of standardised codes."""


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


class DecodedCodes(nn.Module):
    """Codes, and what the heads tell of them."""

    def __init__(self, codes: nn.Module, heads: ColumnHeads) -> None:
        super().__init__()
        self.codes, self.heads = codes, heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, inputs) to what the heads tell."""
        told: torch.Tensor = self.heads(self.codes(x))
        return told


def fitted_mixture(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    components: int,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train the autoencoder, then fit a mixture of at most so many densities to the codes of train.

    Raises:
        PluginError: the loss is not a number any more.

    Source: Truda 2023, section 4.3.1; Ghosh et al. 2020 for codes drawn afterwards.
    """
    with one_thread():
        network = _autoencoder(rows, layout, settings, loop, range(loop.steps), rng, device)
        codes = _codes(network, rows, len(loop.sample()), rng, device).cpu().numpy()
        mixture = _mixture(codes, min(components, 1 + len(codes) // _ROWS_EACH), rng)
        return as_arrays(DecodedCodes(mixture, network.heads.cpu()))


def fitted_variational(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    latent: int,
    divergence: float,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train encoder, inner encoder and decoder, and heads together.

    Args:
        latent: dimensions between the inner two. divergence: weight of the divergence from the prior.

    Raises:
        PluginError: the loss is not a number any more.

    Source: Truda 2023, section 4.3.2.
    """
    with one_thread():
        network = built(lambda: AttentionVariational(layout, settings, latent, divergence), rng).to(device)
        data, draws = torch.as_tensor(rows, device=device), generator_from(rng)
        known = settings, layout, divergence

        def losses(batch: torch.Tensor) -> torch.Tensor:
            return network.losses(batch, draws)

        descend(network, losses, data, loop, settings.learning_rate, None, *known, draws=draws)
        return as_arrays(DecodedCodes(network.codes, network.outer.heads))


def fitted_adversarial(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    gan: CodeGanSettings,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train the autoencoder and freeze it, then a Wasserstein GAN on the codes of train.

    Args:
        loop: its last ``gan.steps`` steps are the generator's.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Truda 2023, section 4.3.2; Gulrajani et al. 2017.
    """
    with one_thread():
        before = loop.steps - gan.steps
        network = _autoencoder(rows, layout, settings, loop, range(before), rng, device)
        codes = _codes(network, rows, len(loop.sample()), rng, device)
        made = built(lambda: GeneratedCodes(gan, settings.width), rng).to(device)
        made.centre.copy_(codes.mean(dim=0))
        made.scale.copy_(codes.std(dim=0, correction=0).clamp(min=_STEADY))
        critic = built(lambda: Critic(settings.width, gan.hidden, dropout=0.0), rng).to(device)
        play(made, critic, (codes - made.centre) / made.scale, gan, loop, generator_from(rng))
        return as_arrays(DecodedCodes(made, network.heads))


def drawn_from_mixture(
    weights: Weights, layout: RowLayout, settings: AttentionSettings, n: int, rng: np.random.Generator
) -> Floats32:
    """``n`` row vectors."""
    mixture = MixtureCodes(len(weights["codes.ends"]), settings.width)
    return _drawn(mixture, 1 + settings.width, weights, layout, settings, n, rng)


def drawn_from_prior(
    weights: Weights,
    layout: RowLayout,
    settings: AttentionSettings,
    latent: int,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    """``n`` row vectors."""
    return _drawn(inner_decoder(settings, latent), latent, weights, layout, settings, n, rng)


def drawn_by_generator(
    weights: Weights,
    layout: RowLayout,
    settings: AttentionSettings,
    gan: CodeGanSettings,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    """``n`` row vectors."""
    return _drawn(GeneratedCodes(gan, settings.width), gan.noise, weights, layout, settings, n, rng)


def _autoencoder(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    loop: Loop,
    steps: range,
    rng: np.random.Generator,
    device: str,
) -> AttentionAutoencoder:
    network: AttentionAutoencoder = built(lambda: AttentionAutoencoder(layout, settings), rng).to(device)
    data = torch.as_tensor(rows, device=device)
    descend(network, network.losses, data, loop, settings.learning_rate, steps, settings, layout)
    network.eval().requires_grad_(False)
    return network


def _codes(
    network: AttentionAutoencoder, rows: Floats32, size: int, rng: np.random.Generator, device: str
) -> torch.Tensor:
    """Codes of rows among others of train, as in training; shape (n, width)."""
    order = np.array_split(rng.permutation(len(rows)), max(1, len(rows) // size))
    with torch.no_grad():
        return torch.cat([network.encoder(torch.as_tensor(rows[some], device=device)) for some in order])


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


def _drawn(
    codes: nn.Module,
    inputs: int,
    weights: Weights,
    layout: RowLayout,
    settings: AttentionSettings,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    with one_thread(), torch.no_grad():
        network = with_weights(DecodedCodes(codes, ColumnHeads(layout, settings)), weights)
        told = drawn_in_blocks(network, n, inputs, rng)
        return network.heads.drawn(told, rng)
