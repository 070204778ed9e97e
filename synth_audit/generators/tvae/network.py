"""Variational autoencoder of row vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.gan import settled
from synth_audit.generators._deep.training import (
    Training,
    Weights,
    as_arrays,
    drawn_in_blocks,
    follow,
    generator_from,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.tvae import Tvae

_STEADY = 0.01, 1.0
"""Between these lies the deviation of a number around what is decoded."""

_REBUILT = 2.0
"""Weight of what is rebuilt beside the divergence from the prior."""

_DECAY = 1e-5
"""Decay of the weights."""


@dataclass(frozen=True)
class TvaeNetwork:
    """Encoder and decoder.

    The loss of a row is ``2 · rebuilt + KL(N(μ, σ²) ‖ N(0, I))``. Rebuilt is the negative log-likelihood of
    its numbers around ``tanh`` of their scores, with a learnt deviation each, and of its labels by the
    softmax of their scores.

    Attributes:
        watch: called after each step with the number of steps and the network, to look at it; training ends
            where it returns True.

    Source: Xu et al. 2019, section 4.4 and supplement.
    """

    settings: Tvae
    watch: Callable[[int, VariationalAutoencoder], bool] | None = None

    def learn(self, training: Training) -> Weights:
        """The decoder's weights."""
        settings = self.settings
        network = training.built(lambda: VariationalAutoencoder(training.layout, settings))
        decay = _DECAY if settings.regularised else 0.0
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, weight_decay=decay)
        draws = generator_from(training.rng)
        parts = {"network": network, "optimiser": optimiser, "draws": draws}
        for step in training.taken("network", parts, settings):
            lost = follow(optimiser, mean_loss(network, training.layout, training.batch(), draws))
            with torch.no_grad():
                network.decoder.deviations.clamp_(*_STEADY)
            training.done(step, lost)
            if self.watch is not None and self.watch(step + 1, network):
                break
        return as_arrays(network.decoder)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors: codes of the prior, numbers with their deviation, labels by their chances."""
        decoder = with_weights(VariationalDecoder(layout, self.settings), weights)
        scores = drawn_in_blocks(decoder, n, self.settings.latent, rng)
        where = list(layout.numbers)
        noise = rng.standard_normal((n, len(where))) * np.asarray(weights["deviations"], dtype=np.float64)
        made = settled(scores, layout, rng)
        made[:, where] = np.tanh(scores[:, where]) + noise
        return made


class VariationalDecoder(nn.Module):
    """From a code to a row vector's scores, and a deviation for each number."""

    def __init__(self, layout: RowLayout, settings: Tvae) -> None:
        super().__init__()
        self.layers = _layers(settings.latent, settings.hidden, layout.width)
        self.deviations = nn.Parameter(torch.full((len(layout.numbers),), 0.1))

    def forward(self, code: torch.Tensor) -> torch.Tensor:
        """Shape (n, latent) to (n, width)."""
        out: torch.Tensor = self.layers(code)
        return out


class VariationalAutoencoder(nn.Module):
    """Encoder, with mean and log-variance side by side, and decoder."""

    def __init__(self, layout: RowLayout, settings: Tvae) -> None:
        super().__init__()
        self.encoder = _layers(layout.width, settings.hidden, 2 * settings.latent)
        self.decoder = VariationalDecoder(layout, settings)


def mean_loss(
    network: VariationalAutoencoder,
    layout: RowLayout,
    batch: torch.Tensor,
    draws: torch.Generator,
) -> torch.Tensor:
    """The loss of a batch, averaged over its rows."""
    mean, log_variance = network.encoder(batch).chunk(2, dim=1)
    unit = torch.randn(mean.shape, generator=draws).to(batch.device)
    scores = network.decoder(mean + torch.exp(log_variance / 2) * unit)
    rebuilt = batch.new_zeros(())
    if layout.numbers:
        where, deviations = list(layout.numbers), network.decoder.deviations
        off = batch[:, where] - torch.tanh(scores[:, where])
        rebuilt = rebuilt + (off.square() / (2 * deviations**2) + deviations.log()).sum()
    for start, stop in layout.slices:
        label = batch[:, start:stop].argmax(dim=1)
        rebuilt = rebuilt + functional.cross_entropy(scores[:, start:stop], label, reduction="sum")
    divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum() / 2
    return (_REBUILT * rebuilt + divergence) / len(batch)


def _layers(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out)
    )
