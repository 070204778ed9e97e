"""A variational autoencoder by attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.generators._deep import networks, nn, torch
from synth_audit.generators._deep.attention import AttentionTraining, kept_weights, named
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, GeneratorInfo, Size


@dataclass(frozen=True, kw_only=True)
class AttentionVae(AttentionTraining):
    """Codes of rows by attention, and a variational autoencoder of these codes; all learn together.

    Tokens of a row's columns attend to one another, then those of a column over the rows of a batch; the
    code of the row is a projection of its tokens, and one perceptron for each column rebuilds it: labels by
    cross-entropy, numbers by a mixture of normal densities, with the RMSE of its mean and its likelihood.

    Row attention is the encoder's alone, and the encoder is no part of the model. New rows are made of
    draws from the standard normal prior, which the inner decoder turns into codes, each by itself.

    Attributes:
        latent: dimensions of the prior.
        divergence: weight of ``KL(q(z | row) ‖ N(0, I))``, shared by the columns, beside their mean loss.

    Source: Truda 2023, chapter 4; Somepalli et al. 2021.
    """

    latent: Count = 32
    divergence: Size = 1.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Attention-VAE",
        summary="Variational autoencoder by attention over columns and rows; no privacy guarantee.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 2, "width": 8, "hidden": 8, "mixtures": 2, "latent": 4},
    )

    def learn(self, training: Training) -> Weights:
        """Train all together.

        The loss of a row is that of what is rebuilt, plus ``KL(N(μ, σ²) ‖ N(0, I))`` for each column.

        Source: Truda 2023, section 4.3.2.
        """
        layout = training.layout
        network = training.built(lambda: self._net(layout))
        outer, inner, decoder = network["outer"], network["inner"], network["codes"]
        draws = networks.generator_from(training.rng)
        share = self.divergence / (len(layout.numbers) + len(layout.slices))

        def losses(rows: torch.Tensor) -> torch.Tensor:
            mean, log_variance = inner(outer.encoder(rows)).chunk(2, dim=1)
            code = decoder(networks.drawn_codes(mean, log_variance, draws))
            divergence = networks.divergence(mean, log_variance).sum(dim=1) / 2
            return outer.heads.losses(outer.heads(code), rows) + share * divergence

        training.descend(network, losses, self.learning_rate, self, draws=draws)
        return kept_weights(networks.as_arrays(decoder), outer)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors from draws of the prior."""
        codes = networks.with_weights(self._decoder(), named(weights))
        return self.drawn(codes, self.latent, weights, layout, n, rng)

    def _net(self, layout: RowLayout) -> nn.ModuleDict:
        """An inner encoder and decoder of codes between the encoder of rows and the heads."""
        outer = networks.AttentionAutoencoder(layout, self)
        inner = networks.perceptron(self.width, self.hidden, 2 * self.latent, bend=nn.GELU)
        return nn.ModuleDict({"outer": outer, "inner": inner, "codes": self._decoder()})

    def _decoder(self) -> nn.Sequential:
        """From a draw of the prior to a code."""
        return networks.perceptron(self.latent, self.hidden, self.width, bend=nn.GELU)
