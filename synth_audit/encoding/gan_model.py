"""What the private GANs share: settings, the fit that is paid for first, and the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from synth_audit.core.arrays import Floats32
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext
from synth_audit.core.private_steps import Steps, bought, part_of_budget
from synth_audit.core.table import Table
from synth_audit.encoding.known_margins import with_margins
from synth_audit.encoding.network_model import Draw, NetworkModel, Weights, transformer_for
from synth_audit.encoding.network_training import check_positive
from synth_audit.encoding.torch_device import torch_device
from synth_audit.encoding.training_loop import training_loop
from synth_audit.encoding.value_counts import check_part
from synth_audit.kernels.row_layout import RowLayout

if TYPE_CHECKING:
    from torch import nn

    from synth_audit.kernels.deep.ctgan import Conditions
    from synth_audit.kernels.deep.gradients import GradientNoise
    from synth_audit.kernels.deep.training import Loop

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
    from synth_audit.kernels.deep.training import built

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
    from synth_audit.kernels.deep import private_gan

    how = private_gan.PrivateGanSettings(
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
    return private_gan.fitted(rows, layout, how, network, conditions, loop, noise, draws, device)


def loop_of(steps: Steps, what: str) -> Loop:
    """The steps that were bought."""
    return training_loop(steps.context, what, steps.count, steps.batch, steps.rate)


def noise_of(steps: Steps, clip: float) -> GradientNoise | None:
    """The noise that was bought; None where nothing was."""
    from synth_audit.kernels.deep.gradients import GradientNoise

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
    from synth_audit.kernels.deep.networks import ResidualNet
    from synth_audit.kernels.deep.private_gan import AskedNet

    if conditions is None or not conditions.width:
        return ResidualNet(settings.noise, layout.width, settings.hidden, BLOCKS)
    return AskedNet(settings.noise, conditions.width, layout.width, settings.hidden, BLOCKS)


Network = Callable[[GeneratorSize, RowLayout, "Conditions | None"], "nn.Module"]


def draw_with(settings: GeneratorSize, network: Network) -> Draw:
    """How rows are drawn from the weights of such a network."""

    def draw(weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        from synth_audit.kernels.deep import private_gan
        from synth_audit.kernels.deep.ctgan import Conditions

        learnt = dict(weights)
        counts = learnt.pop(_COUNTS, None)
        conditions = None
        if counts is not None:
            nobody = np.zeros((0, layout.width), dtype=np.float32)
            conditions = Conditions(Conditions.of(nobody, layout).starts, counts.astype(np.float64))
        made = network(settings, layout, conditions)
        return private_gan.drawn(learnt, layout, settings.noise, made, conditions, n, rng)

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
    from synth_audit.kernels.deep.ctgan import Conditions

    found = Conditions.of(rows, layout)
    if multiplier is None:
        return found
    scale = multiplier * len(layout.choices) ** 0.5
    counts = found.counts + context.noise.gaussian(scale, found.counts.shape)
    return Conditions(found.starts, np.maximum(counts, 1.0))  # each label can be asked for
