"""An autoencoder of row vectors, and a generator that draws its codes.

Encoder and decoder are noised together. To noise the decoder alone because it alone is released, as has been
published, protects nobody: its inputs come from an encoder that all real rows have shaped without noise, so
that one row moves the gradients of all others.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.core.arrays import Floats32
from synth_audit.kernels.deep.adversarial import REACH
from synth_audit.kernels.deep.gradients import GradientNoise
from synth_audit.kernels.deep.layer_gradients import mean_gradient, private_gradient
from synth_audit.kernels.deep.networks import ResidualNet
from synth_audit.kernels.deep.training import (
    Loop,
    Weights,
    as_arrays,
    built,
    one_thread,
    probed,
    refuse_lost,
)
from synth_audit.kernels.row_layout import RowLayout


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
