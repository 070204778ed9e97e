"""A variational autoencoder for mixed tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.generators._deep import functional, networks, torch
from synth_audit.generators._deep.gan import settled
from synth_audit.generators._deep.network_model import OpenNetwork
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, GeneratorInfo, Size

_STEADY = 0.01, 1.0
"""Between these lies the deviation of a number around what is decoded."""

_REBUILT = 2.0
"""Weight of what is rebuilt beside the divergence from the prior."""

_DECAY = 1e-5
"""Decay of the weights."""

_DEVIATIONS = "deviations"
"""Name of these among the weights of a model."""


@dataclass(frozen=True, kw_only=True)
class Tvae(OpenNetwork):
    """Codes of rows by a variational autoencoder; new rows are decoded from new codes.

    Numbers are normalised within their modes; the loss of a row is twice its negative log-likelihood given
    the code, plus ``KL(q(code | row) ‖ N(0, I))``. Labels are drawn by their chances.

    Attributes:
        epochs: times that every row is seen.
        batch: rows of a step; an eighth of the table where that is less, but 50 at least.
        latent: dimensions of the code.
        hidden: width of the two layers of encoder and decoder.
        learning_rate: of Adam.
        regularised: let weights decay; off, training overfits sooner.

    Source: Xu et al. 2019.
    """

    epochs: Count = 300
    batch: Count = 500
    latent: Count = 128
    hidden: Count = 128
    learning_rate: Size = 1e-3
    regularised: bool = True
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="TVAE",
        summary="Variational autoencoder with mode-specific normalisation; no privacy guarantee.",
        cost="minutes",
        source="Xu et al. 2019",
        trial={"epochs": 2, "hidden": 16, "latent": 8},
    )

    def learn(
        self, training: Training, watch: Callable[[int, networks.VariationalAutoencoder], bool] | None = None
    ) -> Weights:
        """The decoder's weights, and the deviations of numbers.

        Args:
            watch: called after each step with the number of steps and the network, to look at it; training
                ends where it returns True.

        Source: Xu et al. 2019, section 4.4 and supplement.
        """
        layout = training.layout
        network = training.built(lambda: networks.VariationalAutoencoder(layout, self.hidden, self.latent))
        decay = _DECAY if self.regularised else 0.0
        optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate, weight_decay=decay)
        draws = networks.generator_from(training.rng)
        parts = {"network": network, "optimiser": optimiser, "draws": draws}
        for step in training.taken("network", parts, self):
            lost = networks.follow(optimiser, mean_loss(network, layout, training.batch(), draws))
            with torch.no_grad():
                network.deviations.clamp_(*_STEADY)
            training.done(step, lost)
            if watch is not None and watch(step + 1, network):
                break
        return weights_of(network)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors: codes of the prior, numbers with their deviation, labels by their chances."""
        learnt = dict(weights)
        deviations = np.asarray(learnt.pop(_DEVIATIONS), dtype=np.float64)
        decoder = networks.VariationalAutoencoder(layout, self.hidden, self.latent).decoder
        scores = networks.drawn_in_blocks(networks.with_weights(decoder, learnt), n, self.latent, rng)
        where = list(layout.numbers)
        noise = rng.standard_normal((n, len(where))) * deviations
        made = settled(scores, layout, rng)
        made[:, where] = np.tanh(scores[:, where]) + noise
        return made


def weights_of(network: networks.VariationalAutoencoder) -> Weights:
    """What rows are drawn with: the decoder, and a deviation for each number."""
    deviations = network.deviations.detach().cpu().numpy().copy()
    return {**networks.as_arrays(network.decoder), _DEVIATIONS: deviations}


def mean_loss(
    network: networks.VariationalAutoencoder, layout: RowLayout, batch: torch.Tensor, draws: torch.Generator
) -> torch.Tensor:
    """``2 · rebuilt + KL(N(μ, σ²) ‖ N(0, I))``, averaged over the rows of a batch.

    Rebuilt is the negative log-likelihood of a row's numbers around ``tanh`` of their scores, with a learnt
    deviation each, and of its labels by the softmax of their scores.
    """
    mean, log_variance = network.encoder(batch).chunk(2, dim=1)
    scores = network.decoder(networks.drawn_codes(mean, log_variance, draws))
    rebuilt = batch.new_zeros(())
    if layout.numbers:
        where, deviations = list(layout.numbers), network.deviations
        off = batch[:, where] - torch.tanh(scores[:, where])
        rebuilt = rebuilt + (off.square() / (2 * deviations**2) + deviations.log()).sum()
    for start, stop in layout.slices:
        label = batch[:, start:stop].argmax(dim=1)
        rebuilt = rebuilt + functional.cross_entropy(scores[:, start:stop], label, reduction="sum")
    divergence = networks.divergence(mean, log_variance).sum() / 2
    return (_REBUILT * rebuilt + divergence) / len(batch)
