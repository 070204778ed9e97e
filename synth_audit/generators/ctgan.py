"""A conditional GAN for mixed tables."""

from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats32, Positions
from synth_audit.generators._deep import networks, torch
from synth_audit.generators._deep.gan import BLOCKS, PENALTY, AskedGan, Conditions, GanRun, steepness
from synth_audit.generators._deep.network_model import OpenNetwork
from synth_audit.generators._deep.training import Training, changing_parts
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, GeneratorInfo, Share, Size

_DECAY = 1e-6
"""Decay of the generator's weights."""


@dataclass(frozen=True, kw_only=True)
class Ctgan(AskedGan, OpenNetwork):
    """A Wasserstein GAN that is asked for rows with a given label of a given column.

    While it learns labels are asked for by the logarithm of their counts, so that rare ones are learnt; when
    rows are drawn, by their counts. The critic, with gradient penalty, judges rows in packs, against
    collapse. Numbers are normalised within their modes.

    Attributes:
        epochs: times that as many rows as train has are seen.
        batch: rows of a step; an eighth of the table where that is less, but 50 at least. Rounded down to
            whole packs.
        noise: dimensions of the generator's input.
        hidden: width of the two layers of generator and critic.
        learning_rate: of both Adams.
        pack: rows that the critic judges together; 10 as published.
        averaging: decay of the running mean of the generator's weights that rows are drawn with; 0 for the
            last weights, as published.

    Source: Xu et al. 2019; Yazıcı et al. 2019.
    """

    epochs: Count = 300
    batch: Count = 500
    noise: Count = 128
    hidden: Count = 256
    learning_rate: Size = 2e-4
    pack: Count = 1
    averaging: Share = 0.998
    reach: ClassVar[float] = 1.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="CTGAN",
        summary="Conditional Wasserstein GAN trained by sampling; no privacy guarantee.",
        cost="minutes",
        source="Xu et al. 2019",
        trial={"epochs": 2, "hidden": 16, "noise": 8},
    )

    def generator(self, layout: RowLayout, conditions: Conditions) -> "networks.ResidualNet":
        """From noise and what is asked for to the scores of a row."""
        width = self.noise + conditions.width
        return networks.ResidualNet(width, layout.width, self.hidden, BLOCKS, by_batch=True)

    def learn(self, training: Training) -> Weights:
        """The generator's weights, and the counts of labels.

        ``training.sample`` says how many rows a batch has; which, the conditions say.
        """
        return CtganTraining(training, self).run()


class CtganTraining(GanRun):
    """One run of training: a step of the critic, then one of the generator, and again.

    In each step a column of labels and one of its labels are drawn for every row of the batch. The generator
    is asked for rows that have them, and the critic is shown those beside real rows that do. Its loss is
    ``E[critic(made)] − E[critic(real)] + 10 (‖∇ critic(between)‖ − 1)²``. The generator's is
    ``−E[critic(made)]`` plus the cross-entropy of the labels that it was asked for.

    Source: Xu et al. 2019, sections 4.3 and 4.4; Lin et al. 2018 for packs; Gulrajani et al. 2017; Yazıcı et
        al. 2019 for the running mean of weights.
    """

    def __init__(self, training: Training, settings: Ctgan) -> None:
        super().__init__(training, settings, Conditions.of(training.vectors, training.layout))
        self.settings, self.pack = settings, settings.pack
        self.having = _rows_by_label(training.vectors, self.layout)
        self.generator = training.built(lambda: settings.generator(self.layout, self.conditions))
        self.mean = deepcopy(self.generator)
        packed = self.pack * (self.layout.width + self.conditions.width)
        self.critic = training.built(lambda: networks.Critic(packed, settings.hidden))
        self.of_generator = networks.adam(self.generator, settings.learning_rate, weight_decay=_DECAY)
        self.of_critic = networks.adam(self.critic, settings.learning_rate)

    def run(self) -> Weights:
        """The running mean of the generator's weights, and the counts of labels."""
        for step in self.training.taken("critic", changing_parts(self), self.settings):
            size = max(1, len(self.training.sample()) // self.pack) * self.pack
            self._teach_critic(size)
            lost = self.teach_generator(size)
            networks.averaged(self.mean, self.generator, self.settings.averaging, step)
            self.training.done(step, lost)
        return self.weights(self.mean)

    def _teach_critic(self, size: int) -> None:
        (column, label), asked = self.asked(size)
        with torch.no_grad():
            made = self.rows(self.scores(asked), asked)
        order = self.rng.permutation(size)  # packs of real rows hold other conditions than those made
        real = torch.cat([self._real(column[order], label[order]), asked[torch.as_tensor(order)]], dim=1)
        loss = self.judged(made).mean() - self.judged(real).mean()
        penalty = steepness(self.judged, real, made, self.draws, self.pack)
        networks.follow(self.of_critic, loss + PENALTY * penalty)

    def _real(self, column: Positions, label: Positions) -> "torch.Tensor":
        """Real rows that have the labels."""
        if not self.having:
            found = self.rng.integers(0, len(self.training.rows), len(column))
        else:
            groups = (self.having[j][k] for j, k in zip(column, label, strict=True))
            found = np.array([group[self.rng.integers(len(group))] for group in groups])
        return self.training.rows[torch.as_tensor(found, device=self.device)]


def _rows_by_label(rows: Floats32, layout: RowLayout) -> list[list[Positions]]:
    """Of each column of labels, the rows that have each of its labels."""
    spans = [layout.slices[i] for i in layout.choices]
    return [[np.flatnonzero(rows[:, place]) for place in range(start, stop)] for start, stop in spans]
