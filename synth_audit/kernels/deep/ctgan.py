"""A conditional Wasserstein GAN of row vectors, trained by sampling."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.core.arrays import Floats, Floats32, Positions
from synth_audit.kernels.deep.adversarial import PENALTY, Critic, activated, settled, steepness
from synth_audit.kernels.deep.training import (
    Loop,
    Weights,
    as_arrays,
    averaged,
    built,
    drawn_in_blocks,
    generator_from,
    one_thread,
    refuse_lost,
    with_weights,
)
from synth_audit.kernels.row_layout import RowLayout

_DECAY = 1e-6
"""Decay of the generator's weights."""

_MOMENTS = 0.5, 0.9
"""Of Adam."""


@dataclass(frozen=True)
class GanSettings:
    """A generator and a critic.

    Attributes:
        noise: dimensions of the generator's input. hidden: width of two layers each.
        learning_rate: of both Adams. pack: rows that the critic judges together.
        averaging: decay of the running mean of the generator's weights that is kept, in [0, 1); 0 for the
            last weights.
    """

    noise: int
    hidden: int
    learning_rate: float
    pack: int
    averaging: float


@dataclass(frozen=True, eq=False)
class Conditions:
    """How often each label of each column occurs, for training by sampling.

    Attributes:
        starts: first position of each column of labels in the condition vector, and its end, length c + 1.
        counts: of each label, shape (width,).
    """

    starts: tuple[int, ...]
    counts: Floats

    @classmethod
    def of(cls, rows: Floats32, layout: RowLayout) -> Conditions:
        """Counted in train."""
        spans = [layout.slices[i] for i in layout.choices]
        starts = tuple(np.cumsum([0, *(stop - start for start, stop in spans)]).tolist())
        counts = [rows[:, start:stop].sum(axis=0, dtype=np.float64) for start, stop in spans]
        return cls(starts, np.concatenate([np.zeros(0), *counts]))

    @property
    def width(self) -> int:
        """Labels of all columns."""
        return self.starts[-1]

    def chosen(self, n: int, rng: np.random.Generator, *, logs: bool) -> tuple[Positions, Positions]:
        """A column for each of ``n`` rows, all alike, and one of its labels, by their counts or the logarithm
        of these, so that rare labels are learnt; shapes (n,)."""
        column = rng.integers(0, len(self.starts) - 1, n)
        label = np.empty(n, dtype=np.intp)
        for j, (start, stop) in enumerate(pairwise(self.starts)):
            here = column == j
            weights = self.counts[start:stop]
            weights = np.log1p(weights) if logs else weights
            label[here] = rng.choice(stop - start, int(here.sum()), p=weights / weights.sum())
        return column, label

    def vectors(self, column: Positions, label: Positions) -> Floats32:
        """One-hot conditions, shape (n, width)."""
        made = np.zeros((len(column), self.width), dtype=np.float32)
        made[np.arange(len(column)), np.array(self.starts)[column] + label] = 1
        return made


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


def fitted(
    rows: Floats32,
    layout: RowLayout,
    settings: GanSettings,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train on rows of shape (n, width): the generator's weights, and the counts of labels.

    In each step a column of labels and one of its labels are drawn for every row of the batch, the generator
    is asked for rows that have them, and the critic is shown those beside real rows that do. Its loss is
    ``E[critic(made)] − E[critic(real)] + 10 (‖∇ critic(between)‖ − 1)²``; the generator's is
    ``−E[critic(made)]`` plus the cross-entropy of the labels that it was asked for.

    Args:
        loop: ``sample`` says how many rows a batch has; which, the conditions say.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Xu et al. 2019, sections 4.3 and 4.4; Lin et al. 2018 for packs; Gulrajani et al. 2017; Yazıcı et
        al. 2019 for the running mean of weights.
    """
    with one_thread():
        return _CtganTraining(rows, layout, settings, rng, device).run(loop)


class _CtganTraining:
    """One run of training; its state lives no longer than :func:`fitted`."""

    def __init__(
        self,
        rows: Floats32,
        layout: RowLayout,
        settings: GanSettings,
        rng: np.random.Generator,
        device: str,
    ) -> None:
        self.layout, self.settings, self.rng, self.device = layout, settings, rng, device
        self.conditions = Conditions.of(rows, layout)
        self.rows, self.draws = torch.as_tensor(rows, device=device), generator_from(rng)
        self.having = _rows_by_label(rows, layout)
        width = self.conditions.width
        self.generator = built(
            lambda: RowGenerator(settings.noise + width, layout.width, settings.hidden), rng
        ).to(device)
        self.mean = deepcopy(self.generator)
        packed = settings.pack * (layout.width + width)
        self.critic = built(lambda: Critic(packed, settings.hidden), rng).to(device)
        adam = {"lr": settings.learning_rate, "betas": _MOMENTS}
        self.of_generator = torch.optim.Adam(self.generator.parameters(), weight_decay=_DECAY, **adam)
        self.of_critic = torch.optim.Adam(self.critic.parameters(), **adam)

    def run(self, loop: Loop) -> Weights:
        """Critic and generator in turn."""
        parts = {
            "generator": self.generator,
            "mean": self.mean,
            "critic": self.critic,
            "of_generator": self.of_generator,
            "of_critic": self.of_critic,
            "draws": self.draws,
            "rng": self.rng,
        }
        for step in loop.taken("critic", parts, self.settings, self.layout, self.rows):
            size = max(1, len(loop.sample()) // self.settings.pack) * self.settings.pack
            self._teach_critic(size)
            loss = self._teach_generator(size)
            averaged(self.mean, self.generator, self.settings.averaging, step)
            refuse_lost(loss, step + 1)
            loop.told(step + 1, loss)
        kept = {"counts": self.conditions.counts.astype(np.float32)}
        return {**as_arrays(self.mean), **kept}

    def _teach_critic(self, size: int) -> None:
        column, label, asked = self._asked(size)
        with torch.no_grad():
            made = torch.cat([self._made(asked), asked], dim=1)
        order = self.rng.permutation(size)  # packs of real rows hold other conditions than those made
        real = torch.cat([self._real(column[order], label[order]), asked[torch.as_tensor(order)]], dim=1)
        loss = self._judged(made).mean() - self._judged(real).mean()
        penalty = steepness(self._judged, real, made, self.draws, self.settings.pack)
        self.of_critic.zero_grad()
        (loss + PENALTY * penalty).backward()
        self.of_critic.step()

    def _teach_generator(self, size: int) -> float:
        column, label, asked = self._asked(size)
        scores = self._scores(asked)
        made = torch.cat([activated(scores, self.layout, self.draws), asked], dim=1)
        loss = -self._judged(made).mean()
        if self.conditions.width:
            loss = loss + self._missed(scores, column, label)
        self.of_generator.zero_grad()
        loss.backward()
        self.of_generator.step()
        return float(loss.detach())

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


def drawn(
    weights: Weights, layout: RowLayout, settings: GanSettings, n: int, rng: np.random.Generator
) -> Floats32:
    """``n`` row vectors, asked for by labels as often as train has them."""
    kept = dict(weights)
    counts = kept.pop("counts")
    conditions = Conditions.of(np.zeros((0, layout.width), dtype=np.float32), layout)
    conditions = Conditions(conditions.starts, counts.astype(np.float64))
    given = None
    if conditions.width:
        given = conditions.vectors(*conditions.chosen(n, rng, logs=False))
    with one_thread(), torch.no_grad():
        width = settings.noise + conditions.width
        network = with_weights(RowGenerator(width, layout.width, settings.hidden), kept)
        scores = drawn_in_blocks(network, n, settings.noise, rng, given)
    return settled(scores, layout, rng)


def _rows_by_label(rows: Floats32, layout: RowLayout) -> list[list[Positions]]:
    """Of each column of labels, the rows that have each of its labels."""
    spans: Sequence[tuple[int, int]] = [layout.slices[i] for i in layout.choices]
    return [[np.flatnonzero(rows[:, place]) for place in range(start, stop)] for start, stop in spans]
