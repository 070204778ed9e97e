"""Autoencoder of rows, and a generator of its codes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from synth_audit.generators._deep.gan import REACH, Conditions
from synth_audit.generators._deep.private_gan import BLOCKS, PrivateGan
from synth_audit.generators._deep.training import ResidualNet, Training, Weights, as_arrays, with_weights
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.dp_auto_gan import DpAutoGan


@dataclass(frozen=True)
class AutoGan(PrivateGan):
    """A generator whose codes are decoded.

    Attributes:
        decoder: its weights, which stay as they are; None where those of the whole generator follow.
    """

    settings: DpAutoGan
    decoder: Weights | None = None

    def generator(self, layout: RowLayout, conditions: Conditions | None) -> nn.Module:
        """From noise to the scores of a row, by a code."""
        codes = ResidualNet(self.settings.noise, self.settings.latent, self.settings.hidden, BLOCKS)
        made = DecodedNet(codes, decoder_of(layout.width, self.settings))
        if self.decoder is not None:
            with_weights(made.decoder, self.decoder)
        return made

    def learn_decoder(self, training: Training) -> Weights:
        """Train encoder and decoder; the decoder's weights.

        Raises:
            PluginError: the loss is not a number any more.
        """
        layout, settings = training.layout, self.settings
        network = training.built(lambda: Autoencoder(layout.width, settings))
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.autoencoder_rate)

        def losses(rows: torch.Tensor) -> torch.Tensor:
            return rebuilding_losses(network, layout, rows)

        parts = {"network": network, "optimiser": optimiser}
        for step in training.taken("autoencoder", parts, settings):
            lost = training.gradient(network, losses, training.batch())
            optimiser.step()
            training.done_in_noise(step, lost, network)
        return as_arrays(network.decoder)


class Autoencoder(nn.Module):
    """A hidden layer on either side of the code; each row by itself."""

    def __init__(self, width: int, settings: DpAutoGan) -> None:
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


def decoder_of(width: int, settings: DpAutoGan) -> nn.Sequential:
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
