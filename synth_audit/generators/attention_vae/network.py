"""A variational autoencoder of the codes of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.attention import AttentionAutoencoder, DecodedCodes, drawn_rows, perceptron
from synth_audit.generators._deep.training import Training, Weights, as_arrays, descend, generator_from
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.attention_vae import AttentionVae


@dataclass(frozen=True)
class VariationalNetwork:
    """Encoder, inner encoder and decoder, and heads.

    Source: Truda 2023, section 4.3.2.
    """

    settings: AttentionVae

    def learn(self, training: Training) -> Weights:
        """Train all together."""
        settings = self.settings
        network = training.built(lambda: AttentionVariational(training.layout, settings))
        draws = generator_from(training.rng)

        def losses(batch: torch.Tensor) -> torch.Tensor:
            return network.losses(batch, draws)

        descend(network, losses, training, settings.learning_rate, settings, draws=draws)
        return as_arrays(DecodedCodes(network.codes, network.outer.heads))

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors from draws of the prior."""
        codes, latent = _inner_decoder(self.settings), self.settings.latent
        return drawn_rows(codes, latent, weights, layout, self.settings, n, rng)


class AttentionVariational(nn.Module):
    """An inner encoder and decoder between the encoder and the heads."""

    def __init__(self, layout: RowLayout, settings: AttentionVae) -> None:
        super().__init__()
        self.outer = AttentionAutoencoder(layout, settings)
        self.inner = perceptron(settings.width, settings.hidden, 2 * settings.latent)
        self.codes = _inner_decoder(settings)
        self.share = settings.divergence / (len(layout.numbers) + len(layout.slices))

    def losses(self, rows: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """Of each row, shape (n,): of what is rebuilt, plus ``KL(N(μ, σ²) ‖ N(0, I))`` for each column."""
        mean, log_variance = self.inner(self.outer.encoder(rows)).chunk(2, dim=1)
        unit = torch.randn(mean.shape, generator=draws).to(rows.device)
        code = self.codes(mean + torch.exp(log_variance / 2) * unit)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1) / 2
        return self.outer.heads.losses(self.outer.heads(code), rows) + self.share * divergence


def _inner_decoder(settings: AttentionVae) -> nn.Sequential:
    """From a draw of the prior to a code."""
    return perceptron(settings.latent, settings.hidden, settings.width)
