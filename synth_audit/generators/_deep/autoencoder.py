"""Autoencoders of row vectors: the private one whose codes are drawn, and the variational one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.gan import REACH
from synth_audit.generators._deep.training import (
    GradientNoise,
    Loop,
    ResidualNet,
    Weights,
    as_arrays,
    built,
    drawn_in_blocks,
    generator_from,
    mean_gradient,
    one_thread,
    private_gradient,
    probed,
    refuse_lost,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout


@dataclass(frozen=True)
class AutoencoderSettings:
    """Encoder and decoder.

    Attributes:
        latent: dimensions of the code, each in (−1, 1). hidden: width of one layer each.
        learning_rate: of Adam.
    """

    latent: int
    hidden: int
    learning_rate: float


class Autoencoder(nn.Module):
    """A hidden layer on either side of the code; each row by itself."""

    def __init__(self, width: int, settings: AutoencoderSettings) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(width, settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, settings.latent),
            nn.Tanh(),
        )
        self.decoder = decoder_of(width, settings)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (…, width) to the scores of what is rebuilt, (…, width)."""
        rebuilt: torch.Tensor = self.decoder(self.encoder(x))
        return rebuilt


class DecodedNet(nn.Module):
    """A generator of codes, and a decoder that stays as it is."""

    def __init__(self, codes: ResidualNet, decoder: nn.Sequential) -> None:
        super().__init__()
        self.codes = codes
        self.decoder = decoder.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, noise) to scores of rows, (n, width)."""
        scores: torch.Tensor = self.decoder(torch.tanh(self.codes(x)))
        return scores


def decoder_of(width: int, settings: AutoencoderSettings) -> nn.Sequential:
    """From a code to the scores of a row."""
    return nn.Sequential(
        nn.Linear(settings.latent, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, width)
    )


def rebuilding_losses(network: Autoencoder, layout: RowLayout, rows: torch.Tensor) -> torch.Tensor:
    """Of each row: squared error of ``reach · tanh`` of its numbers, plus cross-entropy of its labels."""
    scores, where = network(rows), list(layout.numbers)
    loss: torch.Tensor = (REACH * torch.tanh(scores[:, where]) - rows[:, where]).square().sum(dim=1)
    for start, stop in layout.slices:
        chances = functional.log_softmax(scores[:, start:stop], dim=1)
        loss = loss - (chances * rows[:, start:stop]).sum(dim=1)
    return loss


def fitted_decoder(
    rows: Floats32,
    layout: RowLayout,
    settings: AutoencoderSettings,
    loop: Loop,
    noise: GradientNoise | None,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train encoder and decoder on rows of shape (n, width); the decoder's weights.

    Args:
        noise: on the gradients of both; None for training without protection.

    Raises:
        PluginError: the loss is not a number any more.
    """
    with one_thread() if noise is None else nullcontext():  # nothing repeats where noise is secret
        network = built(lambda: Autoencoder(layout.width, settings), rng).to(device)
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        data = torch.as_tensor(rows, device=device)

        def losses(rows: torch.Tensor) -> torch.Tensor:
            return rebuilding_losses(network, layout, rows)

        parts = {"network": network, "optimiser": optimiser}
        for step in loop.taken("autoencoder", parts, settings, layout, data):
            batch = data[torch.as_tensor(loop.sample(), device=device)]
            if noise is None:
                lost = mean_gradient(network, losses, batch)
            else:
                lost = private_gradient(network, losses, noise, batch)
            optimiser.step()
            refuse_lost(lost if noise is None else probed(network, layout.width), step + 1)
            loop.told(step + 1, lost)
        return as_arrays(network.decoder)


_STEADY = 0.01, 1.0
"""Between these lies the deviation of a number around what is decoded."""

_REBUILT = 2.0
"""Weight of what is rebuilt beside the divergence from the prior."""

_DECAY = 1e-5
"""Decay of the weights."""


@dataclass(frozen=True)
class VaeSettings:
    """An encoder, a decoder and how they are trained.

    Attributes:
        latent: dimensions of the code. hidden: width of two layers each. learning_rate: of Adam.
        regularised: weights decay.
    """

    latent: int
    hidden: int
    learning_rate: float
    regularised: bool = True


class VariationalDecoder(nn.Module):
    """From a code to a row vector's scores, and a deviation for each number."""

    def __init__(self, layout: RowLayout, settings: VaeSettings) -> None:
        super().__init__()
        self.layers = _layers(settings.latent, settings.hidden, layout.width)
        self.deviations = nn.Parameter(torch.full((len(layout.numbers),), 0.1))

    def forward(self, code: torch.Tensor) -> torch.Tensor:
        """Shape (n, latent) to (n, width)."""
        out: torch.Tensor = self.layers(code)
        return out


class VariationalAutoencoder(nn.Module):
    """Encoder, with mean and log-variance side by side, and decoder."""

    def __init__(self, layout: RowLayout, settings: VaeSettings) -> None:
        super().__init__()
        self.encoder = _layers(layout.width, settings.hidden, 2 * settings.latent)
        self.decoder = VariationalDecoder(layout, settings)


Watch = Callable[[int, VariationalAutoencoder], bool]
"""Looks at a network in training; True ends it."""


def fitted(
    rows: Floats32,
    layout: RowLayout,
    settings: VaeSettings,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
    watch: Watch | None = None,
) -> Weights:
    """Train on rows of shape (n, width); the decoder's weights.

    The loss of a row is ``2 · rebuilt + KL(N(μ, σ²) ‖ N(0, I))``; rebuilt is the negative log-likelihood of
    its numbers around ``tanh`` of their scores, with a learnt deviation each, and of its labels by the
    softmax of their scores.

    Args:
        watch: called after each step with the number of steps and the network, to look at it; training ends
            where it returns True.

    Raises:
        PluginError: the loss is not a number any more.

    Source: Xu et al. 2019, section 4.4 and supplement.
    """
    with one_thread():
        network = built(lambda: VariationalAutoencoder(layout, settings), rng).to(device)
        decay = _DECAY if settings.regularised else 0.0
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, weight_decay=decay)
        data, draws = torch.as_tensor(rows, device=device), generator_from(rng)
        parts = {"network": network, "optimiser": optimiser, "draws": draws}
        for step in loop.taken("network", parts, settings, layout, data):
            batch = data[torch.as_tensor(loop.sample(), device=device)]
            loss = mean_loss(network, layout, settings, batch, draws)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                network.decoder.deviations.clamp_(*_STEADY)
            lost = float(loss.detach())
            refuse_lost(lost, step + 1)
            loop.told(step + 1, lost)
            if watch is not None and watch(step + 1, network):
                break
        return as_arrays(network.decoder)


def mean_loss(
    network: VariationalAutoencoder,
    layout: RowLayout,
    settings: VaeSettings,
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


def drawn(
    weights: Weights, layout: RowLayout, settings: VaeSettings, n: int, rng: np.random.Generator
) -> Floats32:
    """``n`` row vectors from codes of the prior: numbers with their deviation, labels by their chances."""
    with one_thread(), torch.no_grad():
        decoder = with_weights(VariationalDecoder(layout, settings), weights)
        scores = drawn_in_blocks(decoder, n, settings.latent, rng)
    made = scores.copy()
    where = list(layout.numbers)
    noise = rng.standard_normal((n, len(where))) * np.asarray(weights["deviations"], dtype=np.float64)
    made[:, where] = np.tanh(scores[:, where]) + noise
    for start, stop in layout.slices:
        made[:, start:stop] += rng.gumbel(size=(n, stop - start))
    return made


def _layers(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out)
    )
