"""GANs whose critic sees real rows by clipped and noised gradients alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.families import GanTraining
from synth_audit.generators._deep.gan import REACH, Conditions, Critic, activated, settled
from synth_audit.generators._deep.training import (
    MOMENTS,
    ResidualNet,
    Training,
    Weights,
    as_arrays,
    drawn_in_blocks,
    follow,
    generator_from,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout

BLOCKS = 2
"""Residual blocks of a generator."""

_NEAR = 1e-3
"""Rows that are nearer to one another are taken to be as far apart as this."""

_COUNTS = "counts"


@dataclass(frozen=True)
class PrivateGan:
    """Generator and critic.

    Attributes:
        conditions: how often a label is asked for; not counted on rows without protection. None for a
            generator that is not asked.

    Source: Xie et al. 2018; Petzka et al. 2018 for the penalty.
    """

    settings: GanTraining
    conditions: Conditions | None = None

    def generator(self, layout: RowLayout, conditions: Conditions | None) -> nn.Module:
        """From noise and what is asked for to the scores of a row, each row by itself."""
        return plain_generator(self.settings.noise, self.settings.hidden, layout, conditions)

    def learn(self, training: Training) -> Weights:
        """The generator's weights, and the counts of labels; ``training``'s steps are the critic's."""
        generator = training.built(lambda: self.generator(training.layout, self.conditions))
        weights = PrivateTraining(training, self.settings, generator, self.conditions).run()
        if self.conditions is None:
            return weights
        return {**weights, _COUNTS: self.conditions.counts.astype(np.float32)}

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors, asked for by labels as often as the conditions have them."""
        learnt = dict(weights)
        counts = learnt.pop(_COUNTS, None)
        conditions = None if counts is None else Conditions.kept(counts, layout)
        given = None if conditions is None else conditions.asked(n, rng)
        network = with_weights(self.generator(layout, conditions), learnt)
        scores = drawn_in_blocks(network, n, self.settings.noise, rng, given)
        return settled(scores, layout, rng, REACH)


class PrivateTraining:
    """One run of training."""

    def __init__(
        self, training: Training, settings: GanTraining, generator: nn.Module, conditions: Conditions | None
    ) -> None:
        self.training, self.settings, self.form = training, settings, settings.form
        self.layout, self.device, self.rng = training.layout, training.device, training.rng
        self.draws, self.generator = generator_from(self.rng), generator
        self.conditions = conditions if conditions is not None and conditions.width else None
        width = self.layout.width + (0 if self.conditions is None else self.conditions.width)
        self.critic = training.built(lambda: Critic(width, settings.hidden, settings.dropout))
        learnt = [w for w in generator.parameters() if w.requires_grad]
        self.of_generator = torch.optim.Adam(learnt, lr=settings.generator_rate, betas=MOMENTS)
        critic = self.critic.parameters()
        self.of_critic = torch.optim.Adam(critic, lr=settings.learning_rate, betas=MOMENTS)

    def run(self) -> Weights:
        """So many steps of the critic, then one of the generator, and again."""
        parts = {
            "generator": self.generator,
            "critic": self.critic,
            "of_generator": self.of_generator,
            "of_critic": self.of_critic,
            "draws": self.draws,
            "rng": self.rng,
        }
        training, turn = self.training, self.settings.critic_steps
        for step in training.taken("critic", parts, self.settings):
            lost = self._teach_critic(training.batch())
            # Under a budget the generator's loss is judged: it follows from noised gradients alone.
            judged = lost if training.noise is None else 0.0
            if (step + 1) % turn == 0 or step + 1 == training.steps:
                judged += self._teach_generator()
            training.done(step, lost, judged)
        return as_arrays(self.generator)

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
            return pair_losses(self.critic, self.form.penalty, *pairs)

        lost = self.training.gradient(self.critic, losses, *pairs)
        self.of_critic.step()
        if (most := self.form.weight_clip) is not None:
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
        kept = self.critic.kept(size, self.draws).to(self.device)
        lost = -self.critic(torch.cat([rows, asked], dim=1), kept).mean()
        if self.conditions is not None:
            lost = lost + _missed(scores, asked, self.layout, self.conditions)
        return follow(self.of_generator, lost)

    def _made(self, asked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores and rows, one for each row that is asked for."""
        noise = torch.randn((len(asked), self.settings.noise), generator=self.draws).to(self.device)
        scores: torch.Tensor = self.generator(torch.cat([noise, asked], dim=1))
        return scores, activated(scores, self.layout, self.draws, REACH)

    def _own_labels(self, real: torch.Tensor) -> torch.Tensor:
        """What each real row answers: its label in a column chosen at random, one-hot among all labels."""
        assert self.conditions is not None
        starts = self.conditions.starts
        column = self.rng.integers(0, len(starts) - 1, len(real))
        of_column = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        here = torch.as_tensor(column[:, None] == of_column[None, :], device=self.device)
        return _labels(real, self.layout) * here


def plain_generator(
    noise: int, hidden: int, layout: RowLayout, conditions: Conditions | None = None
) -> nn.Module:
    """A generator of nothing but residual blocks, and what it hears of the conditions."""
    if conditions is None or not conditions.width:
        return ResidualNet(noise, layout.width, hidden, BLOCKS)
    return AskedNet(noise, conditions.width, layout.width, hidden, BLOCKS)


class AskedNet(nn.Module):
    """A residual net that hears what it is asked for in as many dimensions as its layers are wide: with ten
    thousand labels it would have a hundred million weights else."""

    def __init__(self, noise: int, asked: int, out: int, hidden: int, blocks: int) -> None:
        super().__init__()
        self.noise = noise
        self.heard = nn.Linear(asked, hidden)
        self.made = ResidualNet(noise + hidden, out, hidden, blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, noise + asked) to (n, out)."""
        heard = self.heard(x[:, self.noise :])
        out: torch.Tensor = self.made(torch.cat([x[:, : self.noise], heard], dim=1))
        return out


def pair_losses(
    critic: Critic, penalty: float, real: torch.Tensor, made: torch.Tensor, kept: torch.Tensor
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


def _labels(rows: torch.Tensor, layout: RowLayout) -> torch.Tensor:
    """The coordinates of labels alone, side by side."""
    return torch.cat([rows[:, slice(*layout.slices[place])] for place in layout.choices], dim=1)


def _missed(
    scores: torch.Tensor, asked: torch.Tensor, layout: RowLayout, conditions: Conditions
) -> torch.Tensor:
    """Mean cross-entropy of the labels that were asked for."""
    lost = scores.new_zeros(())
    for (start, stop), place in zip(pairwise(conditions.starts), layout.choices, strict=True):
        chances = functional.log_softmax(scores[:, slice(*layout.slices[place])], dim=1)
        lost = lost - (chances * asked[:, start:stop]).sum()
    return lost / len(scores)
