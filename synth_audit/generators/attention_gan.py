"""A GAN of the codes of an autoencoder by attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.generators._deep import networks, torch
from synth_audit.generators._deep.attention import AttentionTraining, codes_of_rows, kept_weights, named
from synth_audit.generators._deep.gan import BLOCKS, PENALTY, steepness
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, GeneratorInfo, Size

_STEADY = 1e-3
"""Least deviation of a coordinate of the codes, which are standardised."""

_CENTRE, _SCALE = "centre", "scale"
"""Names of the weights by which standardised codes are brought back to their scale."""


@dataclass(frozen=True, kw_only=True)
class AttentionGan(AttentionTraining):
    """An autoencoder by attention is trained and frozen; a Wasserstein GAN learns the codes of train.

    Tokens of a row's columns attend to one another, then those of a column over the rows of a batch; the
    code of the row is a projection of its tokens, and one perceptron for each column rebuilds it: labels by
    cross-entropy, numbers by a mixture of normal densities, with the RMSE of its mean and its likelihood.

    Row attention is the encoder's alone, and the encoder is no part of the model. New rows are made of
    codes that the GAN's generator makes of noise, and each becomes a row by itself.

    Attributes:
        gan_steps: of the generator, after those of the autoencoder.
        critic_steps: of the critic for each of them.
        noise: dimensions of the generator's input.
        gan_hidden: width of generator and critic.
        gan_rate: of both their Adams.

    Source: Truda 2023, chapter 4; Somepalli et al. 2021; Gulrajani et al. 2017.
    """

    gan_steps: Count = 2000
    critic_steps: Count = 3
    noise: Count = 32
    gan_hidden: Count = 128
    gan_rate: Size = 5e-4
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Attention-GAN",
        summary="GAN of the codes of an autoencoder by attention; no privacy guarantee.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 2, "width": 8, "hidden": 8, "mixtures": 2, "gan_steps": 2, "gan_hidden": 8},
    )

    @property
    def all_steps(self) -> int:
        """Those of the autoencoder, then those of the GAN's generator."""
        return self.steps + self.gan_steps

    def learn(self, training: Training) -> Weights:
        """Train the autoencoder and freeze it, then the GAN by the steps that are left."""
        network = self.autoencoder(training)
        codes = codes_of_rows(network, training)
        made = training.built(self._net)
        centre, scale = codes.mean(dim=0), codes.std(dim=0, correction=0).clamp(min=_STEADY)
        self.play(made, (codes - centre) / scale, training)
        scales = {_CENTRE: centre.cpu().numpy(), _SCALE: scale.cpu().numpy()}
        return kept_weights({**networks.as_arrays(made), **scales}, network)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors."""
        learnt = dict(named(weights))
        centre, scale = (torch.as_tensor(learnt.pop(name)) for name in (_CENTRE, _SCALE))
        net = networks.with_weights(self._net(), learnt)
        return self.drawn(lambda x: centre + scale * net(x), self.noise, weights, layout, n, rng)

    def play(self, made: networks.ResidualNet, real: torch.Tensor, training: Training) -> None:
        """Teach the critic ``E[c(made)] − E[c(real)]`` with a gradient penalty, the net ``−E[c(made)]``.

        Args:
            real: standardised codes, shape (n, width).

        Raises:
            PluginError: a loss is not a number any more.

        Source: Truda 2023, section 4.3.2; Gulrajani et al. 2017.
        """
        critic = training.built(lambda: networks.Critic(self.width, self.gan_hidden, dropout=0.0))
        draws = networks.generator_from(training.rng)
        of_made, of_critic = (networks.adam(network, self.gan_rate) for network in (made, critic))

        def judged(codes: torch.Tensor) -> torch.Tensor:
            return critic.judged(codes, draws)

        def codes(n: int) -> torch.Tensor:
            return made(networks.normal((n, self.noise), draws, real.device))

        parts = {"made": made, "critic": critic, "of_made": of_made, "of_critic": of_critic, "draws": draws}
        for step in training.taken("codes", parts, self, real, steps=range(self.steps, training.steps)):
            for _ in range(self.critic_steps):
                batch = real[torch.as_tensor(training.sample(), device=real.device)]
                with torch.no_grad():
                    false = codes(len(batch))
                apart = judged(false).mean() - judged(batch).mean()
                networks.follow(of_critic, apart + PENALTY * steepness(judged, batch, false, draws))
            training.done(step, networks.follow(of_made, -judged(codes(len(batch))).mean()))

    def _net(self) -> networks.ResidualNet:
        """From noise to a standardised code."""
        return networks.ResidualNet(self.noise, self.width, self.gan_hidden, BLOCKS)
