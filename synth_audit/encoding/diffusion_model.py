"""What the two diffusion generators share: settings, the fit that is paid for first, and the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.core.arrays import Floats32
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext
from synth_audit.core.private_steps import bought
from synth_audit.core.table import Table
from synth_audit.encoding.known_margins import with_margins
from synth_audit.encoding.network_model import Draw, NetworkModel, Weights, transformer_for
from synth_audit.encoding.torch_device import torch_device
from synth_audit.encoding.training_loop import training_loop
from synth_audit.encoding.value_counts import check_part
from synth_audit.kernels.row_layout import RowLayout

if TYPE_CHECKING:
    from synth_audit.kernels.deep.diffusion import DiffusionSettings, Target


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
    from synth_audit.kernels.deep import diffusion
    from synth_audit.kernels.deep.gradients import GradientNoise

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
        weights = diffusion.fitted(rows, layout, _of(settings, target), loop, noise, draws, device)
    usual = _draw(replace(settings, temperature=1.0), target)  # margins are those of rows as they were learnt
    return replace(NetworkModel.calibrated(transformer, weights, usual, context.rng), draw=draw)


def load_diffusion(settings: DiffusionTraining, target: Target, folder: Path) -> NetworkModel:
    """The model that was saved there."""
    return NetworkModel.load(folder, _draw(settings, target))


def _draw(settings: DiffusionTraining, target: Target) -> Draw:
    def draw(weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        from synth_audit.kernels.deep import diffusion

        return diffusion.drawn(weights, layout, _of(settings, target), n, rng)

    return draw


def _of(settings: DiffusionTraining, target: Target) -> DiffusionSettings:
    from synth_audit.kernels.deep.diffusion import DiffusionSettings

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
