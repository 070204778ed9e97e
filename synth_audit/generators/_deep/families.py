"""What the generators by attention, by diffusion and by private GANs share: settings and fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from synth_audit.errors import PlanError
from synth_audit.generators._budget import bought, part_of_budget
from synth_audit.generators._deep.network_model import (
    Learn,
    NetworkGenerator,
    NetworkModel,
    RowsToLearn,
    check_positive,
    fit_protected,
    fit_unprotected,
)
from synth_audit.generators._deep.transforms import QuantileTransform, RowLayout
from synth_audit.generators._marginal.binning import check_part
from synth_audit.plugins.generator import FitContext
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.generators._deep.gan import Conditions
    from synth_audit.generators._deep.private_gan import PrivateGan
    from synth_audit.generators._deep.training import Network, Weights

Target = Literal["noise", "row"]
"""What the network of a diffusion predicts."""


@dataclass(frozen=True, kw_only=True)
class AttentionTraining(NetworkGenerator):
    """How encoder and heads are built and trained.

    Attributes:
        steps: gradient steps of encoder and heads.
        batch: rows of a step, which attend to one another.
        width: dimensions of a column's token, and of the code of a row.
        heads: of attention; a divisor of ``width``.
        hidden: width of all perceptrons, of which each column has one that rebuilds it.
        mixtures: normal densities k that tell of a number, by 3 k outputs.
        labels_weight, numbers_weight: α and β of the loss.
        learning_rate: of Adam at first; it falls to 0 on a straight line.
    """

    steps: int = 1500
    batch: int = 128
    width: int = 32
    heads: int = 4
    hidden: int = 64
    mixtures: int = 5
    labels_weight: float = 1.0
    numbers_weight: float = 1.0
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        counts = ("steps", "batch", "width", "heads", "hidden", "mixtures")
        check_positive(self, counts, ("labels_weight", "numbers_weight", "learning_rate"))
        if self.width % self.heads:
            raise PlanError(
                f"{self.width} dimensions cannot be shared by {self.heads} heads",
                where="generator.heads",
                expected="a divisor of width",
            )

    @property
    def all_steps(self) -> int:
        """Those of encoder and heads, and of what is trained after them."""
        return self.steps

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``."""
        normal = QuantileTransform.of
        return fit_unprotected(
            self, train, context, steps=self.all_steps, batch=self.batch, of_numbers=normal
        )


@dataclass(frozen=True, kw_only=True)
class DiffusionTraining(NetworkGenerator):
    """How the network is built and trained.

    Attributes:
        levels: noise levels T.
        steps: gradient steps.
        sampling_rate: chance of each row to be in a batch.
        learning_rate: of Adam.
        clip: the largest norm C of one row's gradient.
        hidden, blocks: width and number of the residual blocks.
        margins: share of ε that buys how often the values of each column occur: numbers become ranks, and
            what is drawn is set right by them. 0 for none, as published: numbers lie between their bounds.
        falling: whether the learning rate falls to 0 over the second half of the steps.
        averaging: decay of the running mean of the weights that rows are drawn with; 0 for the last.
        temperature: of the noise that rows are drawn from. Below 1 they lie nearer to the mean than real
            rows do: what is rare becomes rarer, and margins are no longer those that were bought.
    """

    levels: int = 10
    steps: int = 300
    sampling_rate: float = 0.03
    learning_rate: float = 0.005
    clip: float = 1.0
    hidden: int = 128
    blocks: int = 2
    margins: float = 0.2
    falling: bool = False
    averaging: float = 0.0
    temperature: float = 1.0
    target: ClassVar[Target]

    def __post_init__(self) -> None:
        check_positive(self, ("levels", "steps", "hidden", "blocks"))
        if not 0 < self.sampling_rate <= 1:
            raise PlanError("the sampling rate is no probability", where="sampling_rate", expected="0 to 1")
        check_part(self.margins)
        if not 0 <= self.averaging < 1:
            raise PlanError("the decay is no share", where="generator.averaging", expected="0 to below 1")
        for name in ("learning_rate", "clip", "temperature"):
            if not 0 < getattr(self, name) < float("inf"):
                raise PlanError(f"{name} is not positive", where=f"generator.{name}", expected="above 0")

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``; the number of steps and the noise are fixed beforehand."""

        def buy(n_rows: int, layout: RowLayout) -> Learn:
            what, rate = "training of the network", self.sampling_rate
            steps = bought(context, n_rows, count=self.steps, rate=rate, what=what)

            def learn(rows: RowsToLearn) -> Weights:
                return rows.bought_training("train", steps, self.clip).run(self.network().learn)

            return learn

        usual = replace(self, temperature=1.0)  # margins are those of rows as they were learnt
        model = fit_protected(usual, train, context, self.margins, buy)
        return replace(model, network=self.network)

    def network(self) -> Network:
        """A residual net that sees a row behind noise."""
        from synth_audit.generators._deep.diffusion import TableDiffusionNetwork

        return TableDiffusionNetwork(self)

    def rate(self, done: float) -> float:
        """The learning rate after a share of the steps."""
        return self.learning_rate * min(1.0, 2 * (1 - done)) if self.falling else self.learning_rate


@dataclass(frozen=True)
class GanForm:
    """What tells one private GAN from another.

    Attributes:
        penalty: weight of the critic's Lipschitz penalty; 0 for none.
        weight_clip: the largest absolute weight of the critic; None for any.
        conditions_share: of ε, for counts of labels that are then asked for; None for a generator that is
            not asked.
    """

    penalty: float = 0.0
    weight_clip: float | None = None
    conditions_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class GanTraining(NetworkGenerator):
    """How generator and critic are built and trained.

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

    steps: int = 600
    critic_steps: int = 3
    sampling_rate: float = 0.03
    batch: int = 500
    noise: int = 64
    hidden: int = 128
    learning_rate: float = 1e-3
    generator_rate: float = 1e-3
    clip: float = 1.0
    dropout: float = 0.5
    margins: float = 0.2

    def __post_init__(self) -> None:
        counts = ("steps", "critic_steps", "batch", "noise", "hidden")
        check_positive(self, counts, ("sampling_rate", "learning_rate", "generator_rate", "clip"))
        if self.sampling_rate > 1:
            raise PlanError("the sampling rate is no probability", where="sampling_rate", expected="0 to 1")
        check_dropout(self.dropout)
        check_part(self.margins)
        if not 0 <= self.form.penalty < float("inf"):
            raise PlanError("the penalty is no weight", where="generator.penalty", expected="0 or more")

    @property
    def form(self) -> GanForm:
        """What tells it from other private GANs."""
        raise NotImplementedError

    def network(self) -> PrivateGan:
        """Generator and critic."""
        from synth_audit.generators._deep.private_gan import PrivateGan

        return PrivateGan(self)

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``; the number of steps and the noise are fixed beforehand."""

        def buy(n_rows: int, layout: RowLayout) -> Learn:
            share = self.form.conditions_share if layout.choices else None
            counts_noise = None if share is None else _counts_bought(share, context)
            what, rate = "training of the critic", self.sampling_rate
            steps = bought(context, n_rows, count=self.steps, rate=rate, what=what)

            def learn(rows: RowsToLearn) -> Weights:
                network = self.network()
                if share is not None:
                    network = replace(network, conditions=_counted(rows, counts_noise))
                return rows.bought_training("train", steps, self.clip).run(network.learn)

            return learn

        return fit_protected(self, train, context, self.margins, buy)


def check_dropout(share: float) -> None:
    """Refuse a dropout that keeps nothing.

    Raises:
        PlanError: it is below 0, or 1 or more.
    """
    if not 0 <= share < 1:
        raise PlanError("the dropout is no probability", where="dropout", expected="0 to below 1")


def _counts_bought(share: float, context: FitContext) -> float | None:
    """The noise multiplier of all counts of labels together; None where nothing was bought."""
    accountant = context.accountant
    if accountant.budget is None:
        return None
    multiplier = accountant.least_noise(epsilon=part_of_budget(share, context))
    accountant.gaussian(multiplier, what="counts of the labels of each column")
    return multiplier


def _counted(rows: RowsToLearn, multiplier: float | None) -> Conditions:
    """Counts of labels. A row is in one of each column, so that the noise grows with the root of columns."""
    from synth_audit.generators._deep.gan import Conditions

    found = Conditions.of(rows.vectors, rows.layout)
    if multiplier is None:
        return found
    scale = multiplier * len(rows.layout.choices) ** 0.5
    counts = found.counts + rows.context.noise.gaussian(scale, found.counts.shape)
    return Conditions(found.starts, np.maximum(counts, 1.0))  # each label can be asked for
