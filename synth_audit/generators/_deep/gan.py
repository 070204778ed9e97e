"""GANs of row vectors: the conditional one trained by sampling, and those whose critic is private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.generators._deep.training import (
    GradientNoise,
    Loop,
    ResidualNet,
    Weights,
    as_arrays,
    averaged,
    built,
    drawn_in_blocks,
    generator_from,
    mean_gradient,
    one_thread,
    private_gradient,
    refuse_lost,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout

_TEMPERATURE = 0.2
"""Of the Gumbel softmax of slices."""

_LEAK = 0.2
"""Of the critic's layers."""

_HIDDEN_LAYERS = 2

PENALTY = 10.0
"""Weight of the squared distance of the critic's gradient norm from 1."""

REACH = 1.25
"""Of numbers that have a range and no modes: many of a column can then lie at its end, as zeros often do."""


class Critic(nn.Module):
    """Three layers with leaks and dropout: a score for each row, which no other row takes part in.

    What dropout keeps is handed in, so that a row's score can be differentiated by itself.
    """

    def __init__(self, width: int, hidden: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.hidden, self.dropout = hidden, dropout
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise((width, hidden, hidden)))
        self.out = nn.Linear(hidden, 1)

    def kept(self, n: int, draws: torch.Generator) -> torch.Tensor:
        """Which units count, and how much, in each layer for each of ``n`` rows; shape (n, 2, hidden)."""
        share = 1 - self.dropout
        return torch.empty((n, _HIDDEN_LAYERS, self.hidden)).bernoulli_(share, generator=draws) / share

    def forward(self, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        """Shape (…, width), and of ``kept`` (…, 2, hidden), to (…, 1)."""
        for i, layer in enumerate(self.layers):
            x = functional.leaky_relu(layer(x), _LEAK) * kept[..., i, :]
        out: torch.Tensor = self.out(x)
        return out


def activated(
    scores: torch.Tensor, layout: RowLayout, draws: torch.Generator, reach: float = 1.0
) -> torch.Tensor:
    """``reach · tanh`` of numbers, cut off at ±1, and the Gumbel softmax of slices; each row by itself.

    Args:
        reach: above 1, so many numbers can lie at an end of their range; the cut is not differentiated.
    """
    made = scores.clone()
    where = list(layout.numbers)
    numbers = reach * torch.tanh(scores[:, where])
    made[:, where] = numbers + (numbers.clamp(-1, 1) - numbers).detach()
    uniform = torch.rand(scores.shape, generator=draws).clamp(1e-9, 1 - 1e-7).to(scores.device)
    gumbel = -torch.log(-torch.log(uniform))
    for start, stop in layout.slices:
        noisy = (scores[:, start:stop] + gumbel[:, start:stop]) / _TEMPERATURE
        made[:, start:stop] = functional.softmax(noisy, dim=1)
    return made


def steepness(
    judged: Callable[[torch.Tensor], torch.Tensor],
    real: torch.Tensor,
    made: torch.Tensor,
    draws: torch.Generator,
    pack: int = 1,
) -> torch.Tensor:
    """``E[(‖∇ critic‖ − 1)²]`` at points between real and made packs.

    Args:
        judged: scores of packs from rows. pack: rows that follow one another and are judged together.

    Source: Gulrajani et al. 2017.
    """
    share = torch.rand((len(real) // pack, 1, 1), generator=draws).to(real.device)
    share = share.expand(-1, pack, real.shape[1]).reshape(real.shape)
    between = (share * real + (1 - share) * made).requires_grad_()
    [slope] = torch.autograd.grad(judged(between).sum(), between, create_graph=True)
    norms: torch.Tensor = slope.reshape(len(slope) // pack, -1).norm(dim=1)
    return (norms - 1).square().mean()


def settled(scores: Floats32, layout: RowLayout, rng: np.random.Generator, reach: float = 1.0) -> Floats32:
    """``reach · tanh`` of numbers, and of each slice scores of which the largest is drawn by its chance.

    What lies beyond ±1 is cut off where it is read, if it is: the order of such numbers tells their ranks.
    """
    made = scores.copy()
    where = list(layout.numbers)
    made[:, where] = reach * np.tanh(scores[:, where])
    for start, stop in layout.slices:
        made[:, start:stop] += rng.gumbel(size=(len(scores), stop - start))
    return made


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


def fit_ctgan(
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


def draw_ctgan(
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


def fit_private_gan(
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


def draw_private_gan(
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
