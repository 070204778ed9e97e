"""A generator of the codes of rows, and its critic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.attention import DecodedCodes, autoencoder, codes_of_rows, drawn_rows
from synth_audit.generators._deep.gan import PENALTY, Critic, steepness
from synth_audit.generators._deep.training import (
    MOMENTS,
    ResidualNet,
    Training,
    Weights,
    as_arrays,
    follow,
    generator_from,
)
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.attention_gan import AttentionGan

_BLOCKS = 2
"""Residual blocks of the generator."""

_STEADY = 1e-3
"""Least deviation of a coordinate of the codes, which are standardised."""


@dataclass(frozen=True)
class CodeGanNetwork:
    """The autoencoder, then a Wasserstein GAN on the codes of train.

    Source: Truda 2023, section 4.3.2; Gulrajani et al. 2017.
    """

    settings: AttentionGan

    def learn(self, training: Training) -> Weights:
        """Train the autoencoder and freeze it, then the GAN by the steps that are left."""
        network = autoencoder(training, self.settings)
        codes = codes_of_rows(network, training)
        made = training.built(lambda: GeneratedCodes(self.settings))
        made.centre.copy_(codes.mean(dim=0))
        made.scale.copy_(codes.std(dim=0, correction=0).clamp(min=_STEADY))
        play(made, (codes - made.centre) / made.scale, self.settings, training)
        return as_arrays(DecodedCodes(made, network.heads))

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors."""
        codes = GeneratedCodes(self.settings)
        return drawn_rows(codes, self.settings.noise, weights, layout, self.settings, n, rng)


class GeneratedCodes(nn.Module):
    """Standardised codes from a residual net, brought back to their scale."""

    def __init__(self, settings: AttentionGan) -> None:
        super().__init__()
        width = settings.width
        self.net = ResidualNet(settings.noise, width, settings.gan_hidden, _BLOCKS)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, noise) to (n, width)."""
        codes: torch.Tensor = self.centre + self.scale * self.net(x)
        return codes


def play(made: GeneratedCodes, real: torch.Tensor, gan: AttentionGan, training: Training) -> None:
    """Teach the critic ``E[c(made)] − E[c(real)]`` with a gradient penalty, the generator ``−E[c(made)]``.

    Args:
        real: standardised codes, shape (n, width).

    Raises:
        PluginError: a loss is not a number any more.

    Source: Gulrajani et al. 2017.
    """
    critic = training.built(lambda: Critic(gan.width, gan.gan_hidden, dropout=0.0))
    draws = generator_from(training.rng)
    of_made, of_critic = (
        torch.optim.Adam(network.parameters(), lr=gan.gan_rate, betas=MOMENTS)
        for network in (made.net, critic)
    )

    def judged(codes: torch.Tensor) -> torch.Tensor:
        return critic(codes, critic.kept(len(codes), draws).to(codes.device))

    def codes(n: int) -> torch.Tensor:
        return made.net(torch.randn((n, gan.noise), generator=draws).to(real.device))

    parts = {"made": made, "critic": critic, "of_made": of_made, "of_critic": of_critic, "draws": draws}
    for step in training.taken("codes", parts, gan, real, steps=range(gan.steps, training.steps)):
        for _ in range(gan.critic_steps):
            batch = real[torch.as_tensor(training.sample(), device=real.device)]
            with torch.no_grad():
                false = codes(len(batch))
            apart = judged(false).mean() - judged(batch).mean()
            follow(of_critic, apart + PENALTY * steepness(judged, batch, false, draws))
        training.done(step, follow(of_made, -judged(codes(len(batch))).mean()))
