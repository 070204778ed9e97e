"""What the generators by attention, by diffusion and by private GANs share: settings, fit and model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.errors import PlanError
from synth_audit.generators._budget import Steps, bought, part_of_budget
from synth_audit.generators._deep.network_model import (
    Draw,
    Fit,
    NetworkModel,
    Weights,
    check_positive,
    fit_unprotected,
    training_loop,
    transformer_for,
)
from synth_audit.generators._deep.rows import with_margins
from synth_audit.generators._deep.transforms import QuantileTransform, RowLayout
from synth_audit.generators._marginal.binning import check_part
from synth_audit.plugins.generator import FitContext
from synth_audit.run.context import torch_device
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from torch import nn

    from synth_audit.generators._deep.attention import AttentionSettings
    from synth_audit.generators._deep.diffusion import DiffusionSettings, Target
    from synth_audit.generators._deep.gan import Conditions
    from synth_audit.generators._deep.training import GradientNoise, Loop


@dataclass(frozen=True, kw_only=True)
class AttentionTraining:
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
        sizes = ("labels_weight", "numbers_weight", "learning_rate")
        check_positive({n: getattr(self, n) for n in counts}, {n: getattr(self, n) for n in sizes})
        if self.width % self.heads:
            raise PlanError(
                f"{self.width} dimensions cannot be shared by {self.heads} heads",
                where="generator.heads",
                expected="a divisor of width",
            )

    @property
    def network(self) -> AttentionSettings:
        """Of encoder and heads, for the kernel."""
        from synth_audit.generators._deep.attention import AttentionSettings

        return AttentionSettings(
            self.width,
            self.heads,
            self.hidden,
            self.mixtures,
            self.labels_weight,
            self.numbers_weight,
            self.learning_rate,
        )

    def fit_attention(
        self, train: Table, context: FitContext, fit: Fit, draw: Draw, more_steps: int = 0
    ) -> NetworkModel:
        """Train on ``train``, by ``more_steps`` beyond those of encoder and heads."""
        return fit_unprotected(
            train,
            context,
            steps=self.steps + more_steps,
            batch=self.batch,
            fit=fit,
            draw=draw,
            of_numbers=QuantileTransform.of,
        )


@dataclass(frozen=True, kw_only=True)
class DiffusionTraining:
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

    def __post_init__(self) -> None:
        counts = {"levels": self.levels, "steps": self.steps, "hidden": self.hidden, "blocks": self.blocks}
        for name, count in counts.items():
            if count < 1:
                raise PlanError(f"{name} is {count}", where=f"generator.{name}", expected="1 or more")
        if not 0 < self.sampling_rate <= 1:
            raise PlanError("the sampling rate is no probability", where="sampling_rate", expected="0 to 1")
        check_part(self.margins)
        if not 0 <= self.averaging < 1:
            raise PlanError("the decay is no share", where="generator.averaging", expected="0 to below 1")
        for name in ("learning_rate", "clip", "temperature"):
            if not 0 < getattr(self, name) < float("inf"):
                raise PlanError(f"{name} is not positive", where=f"generator.{name}", expected="above 0")


def fit_diffusion(
    settings: DiffusionTraining, target: Target, train: Table, context: FitContext
) -> NetworkModel:
    """Buy the steps, then take them."""
    device = torch_device(context.device, "this generator")
    from synth_audit.generators._deep import diffusion
    from synth_audit.generators._deep.training import GradientNoise

    train = train.released_only()
    transformer = with_margins(transformer_for(train, context), train, context, settings.margins)
    steps = bought(
        context,
        train.n_rows,
        count=settings.steps,
        rate=settings.sampling_rate,
        what="training of the network",
    )
    noise = None
    if steps.noise_multiplier is not None:
        noise = GradientNoise(settings.clip, steps.noise_multiplier, context.noise.gaussian)

    layout, draw = transformer.layout, _draw(settings, target)
    weights: Weights = {}
    if layout.width:
        loop = training_loop(context, "train", steps.count, steps.batch, steps.rate)
        draws = steps.draws()
        rows = transformer.encode(train, draws)
        weights = diffusion.fit_diffusion(rows, layout, _of(settings, target), loop, noise, draws, device)
    usual = _draw(replace(settings, temperature=1.0), target)  # margins are those of rows as they were learnt
    return replace(NetworkModel.calibrated(transformer, weights, usual, context.rng), draw=draw)


def load_diffusion(settings: DiffusionTraining, target: Target, folder: Path) -> NetworkModel:
    """The model that was saved there."""
    return NetworkModel.load(folder, _draw(settings, target))


def _draw(settings: DiffusionTraining, target: Target) -> Draw:
    def draw(weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        from synth_audit.generators._deep import diffusion

        return diffusion.draw_diffusion(weights, layout, _of(settings, target), n, rng)

    return draw


def _of(settings: DiffusionTraining, target: Target) -> DiffusionSettings:
    from synth_audit.generators._deep.diffusion import DiffusionSettings

    return DiffusionSettings(
        target,
        settings.levels,
        settings.hidden,
        settings.blocks,
        settings.learning_rate,
        settings.falling,
        settings.averaging,
        settings.temperature,
    )


BLOCKS = 2
"""Residual blocks of a generator."""

_COUNTS = "counts"


@dataclass(frozen=True, kw_only=True)
class GanTraining:
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
        sizes = ("sampling_rate", "learning_rate", "generator_rate", "clip")
        check_positive({n: getattr(self, n) for n in counts}, {n: getattr(self, n) for n in sizes})
        if self.sampling_rate > 1:
            raise PlanError("the sampling rate is no probability", where="sampling_rate", expected="0 to 1")
        if not 0 <= self.dropout < 1:
            raise PlanError("the dropout is no probability", where="dropout", expected="0 to below 1")
        check_part(self.margins)


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


def fit_gan(settings: GanTraining, form: GanForm, train: Table, context: FitContext) -> NetworkModel:
    """Buy what is to be learnt, then learn it."""
    device = torch_device(context.device, "this generator")
    from synth_audit.generators._deep.training import built

    train = train.released_only()
    transformer = with_margins(transformer_for(train, context), train, context, settings.margins)
    layout = transformer.layout
    share = form.conditions_share if layout.choices else None
    counts_noise = None if share is None else _counts_bought(share, context)
    what = "training of the critic"
    rate = settings.sampling_rate
    steps = bought(context, train.n_rows, count=settings.steps, rate=rate, what=what)
    weights: Weights = {}
    if layout.width:
        draws = steps.draws()
        rows = transformer.encode(train, draws)
        conditions = None
        if share is not None:
            conditions = _counted(rows, layout, counts_noise, context)
        network = built(lambda: plain_generator(settings, layout, conditions), draws)
        weights = taught(settings, form, rows, layout, network, conditions, steps, draws, device)
        if conditions is not None:
            weights = {**weights, _COUNTS: conditions.counts.astype(np.float32)}
    draw = draw_with(settings, plain_generator)
    return NetworkModel.calibrated(transformer, weights, draw, context.rng)


def load_gan(settings: GeneratorSize, folder: Path) -> NetworkModel:
    """The model that was saved there."""
    return NetworkModel.load(folder, draw_with(settings, plain_generator))


def taught(
    settings: GanTraining,
    form: GanForm,
    rows: Floats32,
    layout: RowLayout,
    network: nn.Module,
    conditions: Conditions | None,
    steps: Steps,
    draws: np.random.Generator,
    device: str,
) -> Weights:
    """The weights of a generator, taught by a critic whose steps were bought."""
    from synth_audit.generators._deep import gan

    how = gan.PrivateGanSettings(
        noise=settings.noise,
        critic_rate=settings.learning_rate,
        generator_rate=settings.generator_rate,
        batch=settings.batch,
        critic_steps=settings.critic_steps,
        hidden=settings.hidden,
        dropout=settings.dropout,
        penalty=form.penalty,
        weight_clip=form.weight_clip,
    )
    loop, noise = loop_of(steps, "train"), noise_of(steps, settings.clip)
    return gan.fit_private_gan(rows, layout, how, network, conditions, loop, noise, draws, device)


def loop_of(steps: Steps, what: str) -> Loop:
    """The steps that were bought."""
    return training_loop(steps.context, what, steps.count, steps.batch, steps.rate)


def noise_of(steps: Steps, clip: float) -> GradientNoise | None:
    """The noise that was bought; None where nothing was."""
    from synth_audit.generators._deep.training import GradientNoise

    if steps.noise_multiplier is None:
        return None
    return GradientNoise(clip, steps.noise_multiplier, steps.context.noise.gaussian)


class GeneratorSize(Protocol):
    """What the form of a generator follows from."""

    @property
    def noise(self) -> int:
        """Dimensions of its input."""

    @property
    def hidden(self) -> int:
        """Width of its layers."""


def plain_generator(settings: GeneratorSize, layout: RowLayout, conditions: Conditions | None) -> nn.Module:
    """From noise and what is asked for to the scores of a row."""
    from synth_audit.generators._deep.gan import AskedNet
    from synth_audit.generators._deep.training import ResidualNet

    if conditions is None or not conditions.width:
        return ResidualNet(settings.noise, layout.width, settings.hidden, BLOCKS)
    return AskedNet(settings.noise, conditions.width, layout.width, settings.hidden, BLOCKS)


Network = Callable[[GeneratorSize, RowLayout, "Conditions | None"], "nn.Module"]


def draw_with(settings: GeneratorSize, network: Network) -> Draw:
    """How rows are drawn from the weights of such a network."""

    def draw(weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        from synth_audit.generators._deep import gan
        from synth_audit.generators._deep.gan import Conditions

        learnt = dict(weights)
        counts = learnt.pop(_COUNTS, None)
        conditions = None
        if counts is not None:
            nobody = np.zeros((0, layout.width), dtype=np.float32)
            conditions = Conditions(Conditions.of(nobody, layout).starts, counts.astype(np.float64))
        made = network(settings, layout, conditions)
        return gan.draw_private_gan(learnt, layout, settings.noise, made, conditions, n, rng)

    return draw


def _counts_bought(share: float, context: FitContext) -> float | None:
    """The noise multiplier of all counts of labels together; None where nothing was bought."""
    accountant = context.accountant
    if accountant.budget is None:
        return None
    multiplier = accountant.least_noise(epsilon=part_of_budget(share, context))
    accountant.gaussian(multiplier, what="counts of the labels of each column")
    return multiplier


def _counted(rows: Floats32, layout: RowLayout, multiplier: float | None, context: FitContext) -> Conditions:
    """Counts of labels. A row is in one of each column, so that the noise grows with the root of columns."""
    from synth_audit.generators._deep.gan import Conditions

    found = Conditions.of(rows, layout)
    if multiplier is None:
        return found
    scale = multiplier * len(layout.choices) ** 0.5
    counts = found.counts + context.noise.gaussian(scale, found.counts.shape)
    return Conditions(found.starts, np.maximum(counts, 1.0))  # each label can be asked for
