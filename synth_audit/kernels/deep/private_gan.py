"""A GAN of row vectors whose critic alone sees real rows, by gradients clipped row by row and noised.

Whatever is done with the critic afterwards costs nothing, so the generator is trained on it freely. Each real
row is judged beside a row made for it alone: together they are one loss, and one gradient that is clipped.
No layer mixes the rows of a batch, and none may: a row would then move the gradients of all others.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.core.arrays import Floats32
from synth_audit.kernels.deep.adversarial import REACH, Critic, activated, settled
from synth_audit.kernels.deep.ctgan import Conditions
from synth_audit.kernels.deep.gradients import GradientNoise
from synth_audit.kernels.deep.layer_gradients import mean_gradient, private_gradient
from synth_audit.kernels.deep.networks import ResidualNet
from synth_audit.kernels.deep.training import (
    Loop,
    Weights,
    as_arrays,
    built,
    drawn_in_blocks,
    generator_from,
    one_thread,
    refuse_lost,
    with_weights,
)
from synth_audit.kernels.row_layout import RowLayout

_MOMENTS = 0.5, 0.9
"""Of both Adams."""

_NEAR = 1e-3
"""Rows that are nearer to one another are taken to be as far apart as this."""


@dataclass(frozen=True)
class PrivateGanSettings:
    """A generator, a critic, and how they take turns.

    Attributes:
        noise: dimensions of the generator's input.
        critic_rate, generator_rate: learning rates.
        batch: rows made for one step of the generator; public.
        critic_steps: steps of the critic for each of the generator.
        dropout: of the critic.
        penalty: weight of how much steeper than 1 the critic is between a pair, squared; 0 for none.
        weight_clip: the largest absolute weight of the critic; None for any.
    """

    noise: int
    critic_rate: float
    generator_rate: float
    batch: int
    critic_steps: int
    hidden: int
    dropout: float
    penalty: float
    weight_clip: float | None


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


def fitted(
    rows: Floats32,
    layout: RowLayout,
    settings: PrivateGanSettings,
    network: nn.Module,
    conditions: Conditions | None,
    loop: Loop,
    noise: GradientNoise | None,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train on rows of shape (n, width); the generator's weights.

    Args:
        network: the generator, from noise and what is asked for to the scores of a row, each row by itself.
        conditions: how often a label is asked for; not counted on rows without protection. None for a
            generator that is not asked.
        loop: its steps are the critic's.
        noise: None for training without protection.
        rng: its seed must be secret where ``noise`` protects.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Xie et al. 2018; Petzka et al. 2018 for the penalty.
    """
    with one_thread() if noise is None else nullcontext():  # nothing repeats where noise is secret
        return _PrivateTraining(rows, layout, settings, network, conditions, noise, rng, device).run(loop)


def drawn(
    weights: Weights,
    layout: RowLayout,
    noise: int,
    network: nn.Module,
    conditions: Conditions | None,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    """``n`` row vectors, asked for by labels as often as the conditions have them."""
    given = None
    if conditions is not None and conditions.width:
        given = conditions.vectors(*conditions.chosen(n, rng, logs=False))
    with one_thread(), torch.no_grad():
        scores = drawn_in_blocks(with_weights(network, weights), n, noise, rng, given)
    return settled(scores, layout, rng, REACH)


class _PrivateTraining:
    """One run of training; its state lives no longer than :func:`fitted`."""

    def __init__(
        self,
        rows: Floats32,
        layout: RowLayout,
        settings: PrivateGanSettings,
        network: nn.Module,
        conditions: Conditions | None,
        noise: GradientNoise | None,
        rng: np.random.Generator,
        device: str,
    ) -> None:
        self.layout, self.settings, self.noise, self.device = layout, settings, noise, device
        self.rng, self.draws = rng, generator_from(rng)
        self.rows = torch.as_tensor(rows, device=device)
        self.conditions = conditions if conditions is not None and conditions.width else None
        asked = 0 if self.conditions is None else self.conditions.width
        width, hidden = layout.width + asked, settings.hidden
        self.generator = network.to(device)
        self.critic = built(lambda: Critic(width, hidden, settings.dropout), rng).to(device)
        learnt = [w for w in network.parameters() if w.requires_grad]
        self.of_generator = torch.optim.Adam(learnt, lr=settings.generator_rate, betas=_MOMENTS)
        critic = self.critic.parameters()
        self.of_critic = torch.optim.Adam(critic, lr=settings.critic_rate, betas=_MOMENTS)

    def run(self, loop: Loop) -> Weights:
        """So many steps of the critic, then one of the generator, and again."""
        parts = {
            "generator": self.generator,
            "critic": self.critic,
            "of_generator": self.of_generator,
            "of_critic": self.of_critic,
            "draws": self.draws,
            "rng": self.rng,
        }
        for step in loop.taken("critic", parts, self.settings, self.layout, self.rows):
            batch = self.rows[torch.as_tensor(loop.sample(), device=self.device)]
            lost = self._teach_critic(batch)
            if self.noise is None:  # else the generator's loss tells, of noised gradients alone
                refuse_lost(lost, step + 1)
            if (step + 1) % self.settings.critic_steps == 0 or step + 1 == loop.steps:
                refuse_lost(self._teach_generator(), step + 1)
            loop.told(step + 1, lost)
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
            return pair_losses(self.critic, self.settings.penalty, *pairs)

        if self.noise is None:
            lost = mean_gradient(self.critic, losses, *pairs)
        else:
            lost = private_gradient(self.critic, losses, self.noise, *pairs)
        self.of_critic.step()
        if self.settings.weight_clip is not None:
            with torch.no_grad():
                for w in self.critic.parameters():
                    w.clamp_(-self.settings.weight_clip, self.settings.weight_clip)
        return lost

    def _teach_generator(self) -> float:
        size, asked, lost = self.settings.batch, self.rows.new_zeros((self.settings.batch, 0)), None
        if self.conditions is not None:
            column, label = self.conditions.chosen(size, self.rng, logs=True)
            asked = torch.as_tensor(self.conditions.vectors(column, label), device=self.device)
        scores, rows = self._made(asked)
        kept = self.critic.kept(size, self.draws).to(self.device)
        lost = -self.critic(torch.cat([rows, asked], dim=1), kept).mean()
        if self.conditions is not None:
            lost = lost + _missed(scores, asked, self.layout, self.conditions)
        self.of_generator.zero_grad()
        lost.backward()
        self.of_generator.step()
        return float(lost.detach())

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
