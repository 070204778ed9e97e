"""What GANs of row vectors share, and those whose critic sees real rows by clipped and noised gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.generators._deep import functional, networks, nn, torch
from synth_audit.generators._deep.network_model import NetworkGenerator, ProtectedNetwork
from synth_audit.generators._deep.training import Training, changing_parts
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, Rate, Share, Size

_TEMPERATURE = 0.2
"""Of the Gumbel softmax of slices."""

PENALTY = 10.0
"""Weight of the squared distance of the critic's gradient norm from 1."""

REACH = 1.25
"""Of numbers that have a range and no modes: many of a column can then lie at its end, as zeros often do."""

BLOCKS = 2
"""Residual blocks of a generator."""

_NEAR = 1e-3
"""Rows that are nearer to one another are taken to be as far apart as this."""

Wanted: TypeAlias = tuple[Positions, Positions]
"""Of each row the column, and its label, that it is asked for; shapes (n,)."""

_COUNTS = "counts"
"""Name of the counts of labels among the weights of a model."""


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
    gumbel = networks.gumbel(scores, draws)
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

    @classmethod
    def kept(cls, counts: Floats32, layout: RowLayout) -> Conditions:
        """With counts that were kept among the weights of a model."""
        if not len(counts):
            return NOT_ASKED
        nobody = np.zeros((0, layout.width), dtype=np.float32)
        return cls(cls.of(nobody, layout).starts, counts.astype(np.float64))

    @property
    def width(self) -> int:
        """Labels of all columns."""
        return self.starts[-1]

    def chosen(self, n: int, rng: np.random.Generator, *, logs: bool) -> Wanted:
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

    def asked(self, n: int, rng: np.random.Generator) -> Floats32 | None:
        """Vectors for rows that are to be drawn, by the counts; None where there is nothing to ask for."""
        return self.vectors(*self.chosen(n, rng, logs=False)) if self.width else None


NOT_ASKED = Conditions((0,), np.zeros(0))
"""Of a generator that is asked for nothing."""


class AskedGan(NetworkGenerator):
    """A GAN whose generator may be asked for labels.

    Attributes:
        noise: dimensions of the generator's input. reach: of its numbers, see :func:`activated`.
    """

    noise: int
    reach: ClassVar[float] = REACH

    def generator(self, layout: RowLayout, conditions: Conditions) -> nn.Module:
        """From noise and what is asked for to the scores of a row."""
        raise NotImplementedError

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors, asked for by labels as often as the conditions have them."""
        learnt = dict(weights)
        conditions = Conditions.kept(learnt.pop(_COUNTS), layout)
        given = conditions.asked(n, rng)
        network = networks.with_weights(self.generator(layout, conditions), learnt)
        return settled(networks.drawn_in_blocks(network, n, self.noise, rng, given), layout, rng, self.reach)


class GanRun:
    """One run of training: a generator of rows that are asked for, and a critic that judges packs of them."""

    generator: nn.Module
    critic: networks.Critic
    of_generator: torch.optim.Optimizer
    pack = 1

    def __init__(self, training: Training, settings: AskedGan, conditions: Conditions) -> None:
        self.training, self.conditions = training, conditions
        self.layout, self.device, self.rng = training.layout, training.device, training.rng
        self.noise, self.reach = settings.noise, settings.reach
        self.draws = networks.generator_from(self.rng)

    def weights(self, network: nn.Module) -> Weights:
        """Those of a generator, and the counts of labels."""
        return {**networks.as_arrays(network), _COUNTS: self.conditions.counts.astype(np.float32)}

    def asked(self, size: int) -> tuple[Wanted, torch.Tensor]:
        """What so many rows are asked for, and as vectors."""
        if not self.conditions.width:
            nothing = np.zeros(size, dtype=np.intp)
            return (nothing, nothing), torch.zeros((size, 0), device=self.device)
        wanted = self.conditions.chosen(size, self.rng, logs=True)
        return wanted, torch.as_tensor(self.conditions.vectors(*wanted), device=self.device)

    def scores(self, asked: torch.Tensor) -> torch.Tensor:
        """Of made rows."""
        noise = networks.normal((len(asked), self.noise), self.draws, self.device)
        return self.generator(torch.cat([noise, asked], dim=1))

    def rows(self, scores: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
        """Made rows, and behind each what was asked for."""
        return torch.cat([activated(scores, self.layout, self.draws, self.reach), asked], dim=1)

    def judged(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores of packs; rows that follow one another are one pack."""
        return self.critic.judged(rows.reshape(len(rows) // self.pack, -1), self.draws)

    def teach_generator(self, size: int) -> float:
        """Take a step on so many made rows, whose loss is returned."""
        wanted, asked = self.asked(size)
        scores = self.scores(asked)
        loss = -self.judged(self.rows(scores, asked)).mean()
        if self.conditions.width:
            loss = loss + self._missed(scores, wanted)
        return networks.follow(self.of_generator, loss)

    def _missed(self, scores: torch.Tensor, wanted: Wanted) -> torch.Tensor:
        """Mean cross-entropy of the labels that were asked for."""
        column, label = wanted
        lost = scores.new_zeros(())
        for j, place in enumerate(self.layout.choices):
            here = np.flatnonzero(column == j)
            start, stop = self.layout.slices[place]
            own = torch.as_tensor(label[here], device=self.device)
            lost = lost + functional.cross_entropy(scores[here, start:stop], own, reduction="sum")
        return lost / len(scores)


@dataclass(frozen=True, kw_only=True)
class GanTraining(AskedGan, ProtectedNetwork):
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
    trained: ClassVar[str] = "critic"
    penalty = 0.0
    weight_clip = math.inf

    def generator(self, layout: RowLayout, conditions: Conditions) -> nn.Module:
        """From noise and what is asked for to the scores of a row, each row by itself."""
        if not conditions.width:
            return networks.ResidualNet(self.noise, layout.width, self.hidden, BLOCKS)
        return networks.AskedNet(self.noise, conditions.width, layout.width, self.hidden, BLOCKS)

    def learn(self, training: Training, conditions: Conditions = NOT_ASKED) -> Weights:
        """The generator's weights, and the counts of labels; ``training``'s steps are the critic's.

        Args:
            conditions: how often a label is asked for; not counted on rows without protection.
        """
        generator = training.built(lambda: self.generator(training.layout, conditions))
        return PrivateTraining(training, self, generator, conditions).run()


class PrivateTraining(GanRun):
    """The critic sees real rows by protected gradients."""

    def __init__(
        self, training: Training, settings: GanTraining, generator: nn.Module, conditions: Conditions
    ) -> None:
        super().__init__(training, settings, conditions)
        self.settings, self.generator = settings, generator
        width = self.layout.width + conditions.width
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
                judged += self.teach_generator(self.settings.batch)
            training.done(step, lost, judged)
        return self.weights(self.generator)

    def _teach_critic(self, real: torch.Tensor) -> float:
        asked = self._own_labels(real) if self.conditions.width else real.new_zeros((len(real), 0))
        real = torch.cat([real, asked], dim=1)
        with torch.no_grad():
            made = self.rows(self.scores(asked), asked)
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

    def _own_labels(self, real: torch.Tensor) -> torch.Tensor:
        """What each real row answers: its label in a column chosen at random, one-hot among all labels."""
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
