"""Conditional generator, critic, and how they take turns."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats32, Positions
from synth_audit.generators._deep.gan import PENALTY, Conditions, Critic, activated, settled, steepness
from synth_audit.generators._deep.training import (
    MOMENTS,
    Training,
    Weights,
    as_arrays,
    averaged,
    drawn_in_blocks,
    follow,
    generator_from,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.ctgan import Ctgan

_DECAY = 1e-6
"""Decay of the generator's weights."""


@dataclass(frozen=True)
class CtganNetwork:
    """A generator that is asked for labels, and a critic.

    In each step a column of labels and one of its labels are drawn for every row of the batch. The generator
    is asked for rows that have them, and the critic is shown those beside real rows that do. Its loss is
    ``E[critic(made)] − E[critic(real)] + 10 (‖∇ critic(between)‖ − 1)²``. The generator's is
    ``−E[critic(made)]`` plus the cross-entropy of the labels that it was asked for.

    Source: Xu et al. 2019, sections 4.3 and 4.4; Lin et al. 2018 for packs; Gulrajani et al. 2017; Yazıcı et
        al. 2019 for the running mean of weights.
    """

    settings: Ctgan

    def learn(self, training: Training) -> Weights:
        """The generator's weights, and the counts of labels.

        ``training.sample`` says how many rows a batch has; which, the conditions say.
        """
        return CtganTraining(training, self.settings).run()

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors, asked for by labels as often as train has them."""
        kept = dict(weights)
        conditions = Conditions.kept(kept.pop("counts"), layout)
        given, noise = conditions.asked(n, rng), self.settings.noise
        network = RowGenerator(noise + conditions.width, layout.width, self.settings.hidden)
        return settled(drawn_in_blocks(with_weights(network, kept), n, noise, rng, given), layout, rng)


class CtganTraining:
    """One run of training."""

    def __init__(self, training: Training, settings: Ctgan) -> None:
        self.training, self.settings, self.layout = training, settings, training.layout
        self.rng, self.device, self.rows = training.rng, training.device, training.rows
        self.conditions = Conditions.of(training.vectors, self.layout)
        self.draws = generator_from(self.rng)
        self.having = _rows_by_label(training.vectors, self.layout)
        width, hidden = self.conditions.width, settings.hidden
        self.generator = training.built(
            lambda: RowGenerator(settings.noise + width, self.layout.width, hidden)
        )
        self.mean = deepcopy(self.generator)
        self.critic = training.built(lambda: Critic(settings.pack * (self.layout.width + width), hidden))
        adam = {"lr": settings.learning_rate, "betas": MOMENTS}
        self.of_generator = torch.optim.Adam(self.generator.parameters(), weight_decay=_DECAY, **adam)
        self.of_critic = torch.optim.Adam(self.critic.parameters(), **adam)

    def run(self) -> Weights:
        """A step of the critic, then one of the generator, and again."""
        parts = {
            "generator": self.generator,
            "mean": self.mean,
            "critic": self.critic,
            "of_generator": self.of_generator,
            "of_critic": self.of_critic,
            "draws": self.draws,
            "rng": self.rng,
        }
        pack = self.settings.pack
        for step in self.training.taken("critic", parts, self.settings):
            size = max(1, len(self.training.sample()) // pack) * pack
            self._teach_critic(size)
            lost = self._teach_generator(size)
            averaged(self.mean, self.generator, self.settings.averaging, step)
            self.training.done(step, lost)
        return {**as_arrays(self.mean), "counts": self.conditions.counts.astype(np.float32)}

    def _teach_critic(self, size: int) -> None:
        column, label, asked = self._asked(size)
        with torch.no_grad():
            made = torch.cat([self._made(asked), asked], dim=1)
        order = self.rng.permutation(size)  # packs of real rows hold other conditions than those made
        real = torch.cat([self._real(column[order], label[order]), asked[torch.as_tensor(order)]], dim=1)
        loss = self._judged(made).mean() - self._judged(real).mean()
        penalty = steepness(self._judged, real, made, self.draws, self.settings.pack)
        follow(self.of_critic, loss + PENALTY * penalty)

    def _teach_generator(self, size: int) -> float:
        column, label, asked = self._asked(size)
        scores = self._scores(asked)
        made = torch.cat([activated(scores, self.layout, self.draws), asked], dim=1)
        loss = -self._judged(made).mean()
        if self.conditions.width:
            loss = loss + self._missed(scores, column, label)
        return follow(self.of_generator, loss)

    def _judged(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores of packs; rows that follow one another are one pack."""
        packs = rows.reshape(len(rows) // self.settings.pack, -1)
        return self.critic(packs, self.critic.kept(len(packs), self.draws).to(self.device))

    def _asked(self, size: int) -> tuple[Positions, Positions, torch.Tensor]:
        """What is asked for, and as vectors."""
        if not self.conditions.width:
            nothing = np.zeros(size, dtype=np.intp)
            return nothing, nothing, torch.zeros((size, 0), device=self.device)
        column, label = self.conditions.chosen(size, self.rng, logs=True)
        vectors = self.conditions.vectors(column, label)
        return column, label, torch.as_tensor(vectors, device=self.device)

    def _real(self, column: Positions, label: Positions) -> torch.Tensor:
        """Real rows that have the labels."""
        if not self.having:
            found = self.rng.integers(0, len(self.rows), len(column))
        else:
            groups = (self.having[j][k] for j, k in zip(column, label, strict=True))
            found = np.array([group[self.rng.integers(len(group))] for group in groups])
        return self.rows[torch.as_tensor(found, device=self.device)]

    def _scores(self, asked: torch.Tensor) -> torch.Tensor:
        noise = torch.randn((len(asked), self.settings.noise), generator=self.draws).to(self.device)
        scores: torch.Tensor = self.generator(torch.cat([noise, asked], dim=1))
        return scores

    def _made(self, asked: torch.Tensor) -> torch.Tensor:
        return activated(self._scores(asked), self.layout, self.draws)

    def _missed(self, scores: torch.Tensor, column: Positions, label: Positions) -> torch.Tensor:
        """Mean cross-entropy of the labels that were asked for."""
        lost = scores.new_zeros(())
        for j, place in enumerate(self.layout.choices):
            here = np.flatnonzero(column == j)
            start, stop = self.layout.slices[place]
            asked = torch.as_tensor(label[here], device=self.device)
            lost = lost + functional.cross_entropy(scores[here, start:stop], asked, reduction="sum")
        return lost / len(scores)


class RowGenerator(nn.Module):
    """Two residual layers ``[ReLU(BatchNorm(W x + b)), x]`` and a linear one."""

    def __init__(self, width: int, out: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.ModuleList([nn.Linear(width, hidden), nn.Linear(width + hidden, hidden)])
        self.norm = nn.ModuleList([nn.BatchNorm1d(hidden), nn.BatchNorm1d(hidden)])
        self.out = nn.Linear(width + 2 * hidden, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, width) to (n, out)."""
        for linear, norm in zip(self.linear, self.norm, strict=True):
            x = torch.cat([torch.relu(norm(linear(x))), x], dim=1)
        out: torch.Tensor = self.out(x)
        return out


def _rows_by_label(rows: Floats32, layout: RowLayout) -> list[list[Positions]]:
    """Of each column of labels, the rows that have each of its labels."""
    spans = [layout.slices[i] for i in layout.choices]
    return [[np.flatnonzero(rows[:, place]) for place in range(start, stop)] for start, stop in spans]
