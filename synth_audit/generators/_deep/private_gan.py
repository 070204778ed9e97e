"""GANs whose critic sees real rows by clipped and noised gradients alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.gan import REACH, Conditions, activated, settled
from synth_audit.generators._deep.lazily import functional, networks, nn, torch
from synth_audit.generators._deep.network_model import ProtectedNetwork, RowsToLearn, bought
from synth_audit.generators._deep.training import Training, changing_parts
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, FitContext, Rate, Share, Size

BLOCKS = 2
"""Residual blocks of a generator."""

_NEAR = 1e-3
"""Rows that are nearer to one another are taken to be as far apart as this."""

_COUNTS = "counts"


@dataclass(frozen=True, kw_only=True)
class GanTraining(ProtectedNetwork):
    """How generator and critic are built and trained.

    A method that has more makes settings of them: ``penalty``, the weight of the critic's Lipschitz penalty,
    and ``weight_clip``, the largest absolute weight of the critic.

    Attributes:
        steps: of the critic, each on a Poisson sample of the rows; all are bought beforehand.
        critic_steps: of these, how many for each step of the generator.
        sampling_rate: chance of each row to be in a batch of the critic.
        batch: rows made for a step of the generator.
        noise: dimensions of the generator's input.
        hidden: width of the layers of generator and critic.
        learning_rate, generator_rate: of the critic's and the generator's Adam.
        clip: the largest norm C of one row's gradient.
        dropout: of the critic.
        margins: share of ε that buys how often the values of each column occur: numbers become ranks, and
            what is drawn is set right by them. 0 for none, as published: numbers lie between their bounds.
    """

    steps: Count = 600
    critic_steps: Count = 3
    sampling_rate: Rate = 0.03
    batch: Count = 500
    noise: Count = 64
    hidden: Count = 128
    learning_rate: Size = 1e-3
    generator_rate: Size = 1e-3
    clip: Size = 1.0
    dropout: Share = 0.5
    margins: Share = 0.2
    penalty = 0.0
    weight_clip = math.inf

    def buy(self, context: FitContext, n_rows: int, layout: RowLayout) -> Any:
        """The steps of the critic."""
        what, rate = "training of the critic", self.sampling_rate
        return bought(context, n_rows, count=self.steps, rate=rate, what=what)

    def teach(self, rows: RowsToLearn, bought: Any) -> Weights:
        """Let critic and generator play."""
        return rows.bought_training("train", bought, self.clip).run(self.learn)

    def generator(self, layout: RowLayout, conditions: Conditions | None) -> nn.Module:
        """From noise and what is asked for to the scores of a row, each row by itself."""
        if conditions is None or not conditions.width:
            return networks.ResidualNet(self.noise, layout.width, self.hidden, BLOCKS)
        return networks.AskedNet(self.noise, conditions.width, layout.width, self.hidden, BLOCKS)

    def learn(self, training: Training, conditions: Conditions | None = None) -> Weights:
        """The generator's weights, and the counts of labels; ``training``'s steps are the critic's.

        Args:
            conditions: how often a label is asked for; not counted on rows without protection. None for a
                generator that is not asked.
        """
        generator = training.built(lambda: self.generator(training.layout, conditions))
        weights = PrivateTraining(training, self, generator, conditions).run()
        if conditions is None:
            return weights
        return {**weights, _COUNTS: conditions.counts.astype(np.float32)}

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors, asked for by labels as often as the conditions have them."""
        learnt = dict(weights)
        counts = learnt.pop(_COUNTS, None)
        conditions = None if counts is None else Conditions.kept(counts, layout)
        given = None if conditions is None else conditions.asked(n, rng)
        network = networks.with_weights(self.generator(layout, conditions), learnt)
        return settled(networks.drawn_in_blocks(network, n, self.noise, rng, given), layout, rng, REACH)


class PrivateTraining:
    """One run of training."""

    def __init__(
        self, training: Training, settings: GanTraining, generator: nn.Module, conditions: Conditions | None
    ) -> None:
        self.training, self.settings = training, settings
        self.layout, self.device, self.rng = training.layout, training.device, training.rng
        self.draws, self.generator = networks.generator_from(self.rng), generator
        self.conditions = conditions if conditions is not None and conditions.width else None
        width = self.layout.width + (0 if self.conditions is None else self.conditions.width)
        self.critic = training.built(lambda: networks.Critic(width, settings.hidden, settings.dropout))
        self.of_generator = networks.adam(generator, settings.generator_rate)
        self.of_critic = networks.adam(self.critic, settings.learning_rate)

    def run(self) -> Weights:
        """So many steps of the critic, then one of the generator, and again."""
        training, turn = self.training, self.settings.critic_steps
        for step in training.taken("critic", changing_parts(self), self.settings):
            lost = self._teach_critic(training.batch())
            # Under a budget the generator's loss is judged: it follows from noised gradients alone.
            judged = lost if training.noise is None else 0.0
            if (step + 1) % turn == 0 or step + 1 == training.steps:
                judged += self._teach_generator()
            training.done(step, lost, judged)
        return networks.as_arrays(self.generator)

    def _teach_critic(self, real: torch.Tensor) -> float:
        if self.conditions is not None:
            asked = self._own_labels(real)
            real = torch.cat([real, asked], dim=1)
        else:
            asked = real.new_zeros((len(real), 0))
        with torch.no_grad():
            made = torch.cat([self._made(asked)[1], asked], dim=1)
        pairs = (real, made, self.critic.kept(len(real), self.draws).to(self.device))

        def losses(*pairs: torch.Tensor) -> torch.Tensor:
            return pair_losses(self.critic, self.settings.penalty, *pairs)

        lost = self.training.gradient(self.critic, losses, *pairs)
        self.of_critic.step()
        if (most := self.settings.weight_clip) < math.inf:
            with torch.no_grad():
                for w in self.critic.parameters():
                    w.clamp_(-most, most)
        return lost

    def _teach_generator(self) -> float:
        size = self.settings.batch
        asked = torch.zeros((size, 0), device=self.device)
        if self.conditions is not None:
            column, label = self.conditions.chosen(size, self.rng, logs=True)
            asked = torch.as_tensor(self.conditions.vectors(column, label), device=self.device)
        scores, rows = self._made(asked)
        lost = -self.critic.judged(torch.cat([rows, asked], dim=1), self.draws).mean()
        if self.conditions is not None:
            lost = lost + self._missed(scores, asked, self.conditions)
        return networks.follow(self.of_generator, lost)

    def _missed(self, scores: torch.Tensor, asked: torch.Tensor, conditions: Conditions) -> torch.Tensor:
        """Mean cross-entropy of the labels that were asked for."""
        lost = scores.new_zeros(())
        for (start, stop), place in zip(pairwise(conditions.starts), self.layout.choices, strict=True):
            chances = functional.log_softmax(scores[:, slice(*self.layout.slices[place])], dim=1)
            lost = lost - (chances * asked[:, start:stop]).sum()
        return lost / len(scores)

    def _made(self, asked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores and rows, one for each row that is asked for."""
        noise = networks.normal((len(asked), self.settings.noise), self.draws, self.device)
        scores: torch.Tensor = self.generator(torch.cat([noise, asked], dim=1))
        return scores, activated(scores, self.layout, self.draws, REACH)

    def _own_labels(self, real: torch.Tensor) -> torch.Tensor:
        """What each real row answers: its label in a column chosen at random, one-hot among all labels."""
        assert self.conditions is not None
        starts = self.conditions.starts
        column = self.rng.integers(0, len(starts) - 1, len(real))
        of_column = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        here = torch.as_tensor(column[:, None] == of_column[None, :], device=self.device)
        labels = [real[:, slice(*self.layout.slices[place])] for place in self.layout.choices]
        return torch.cat(labels, dim=1) * here


def pair_losses(
    critic: networks.Critic, penalty: float, real: torch.Tensor, made: torch.Tensor, kept: torch.Tensor
) -> torch.Tensor:
    """Of each real row and the row made for it, shape (b,), with ``d = c(made) − c(real)``:
    ``d + penalty · max(0, |d| / ‖made − real‖ − 1)²``.

    Args:
        real, made: shape (b, width). kept: of dropout, the same for both rows, shape (b, 2, hidden).
    """
    apart: torch.Tensor = (critic(made, kept) - critic(real, kept))[:, 0]
    if not penalty:
        return apart
    steep = apart.abs() / (made - real).norm(dim=1).clamp(min=_NEAR)
    return apart + penalty * (steep - 1).clamp(min=0).square()
