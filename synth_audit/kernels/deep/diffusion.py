"""Diffusion of row vectors in a few steps: noise is added at T levels, and a network takes it off again.

With ``β_t = (1 − cos(π t / T)) / 2`` a row x becomes ``x̃_t = x + √β_t ξ``, ξ standard normal. The network
M either predicts the added noise ``z_t = √β_t ξ`` or the row itself. All T losses of a row are averaged, so
that a row takes part in one gradient only.
"""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch.nn import functional

from synth_audit.core.arrays import Floats, Floats32
from synth_audit.kernels.deep.gradients import GradientNoise
from synth_audit.kernels.deep.layer_gradients import mean_gradient, private_gradient
from synth_audit.kernels.deep.networks import ResidualNet
from synth_audit.kernels.deep.training import (
    Loop,
    Weights,
    as_arrays,
    averaged,
    built,
    generator_from,
    one_thread,
    probed,
    refuse_lost,
    with_weights,
)
from synth_audit.kernels.row_layout import RowLayout

Target = Literal["noise", "row"]
"""What the network predicts."""

_BLOCK = 2048
"""Rows drawn at a time; always as many, so that a row's sums are formed alike wherever it stands."""


@dataclass(frozen=True)
class DiffusionSettings:
    """A network and its training.

    Attributes:
        target: what the network predicts.
        levels: T, at least 1. hidden, blocks: of the residual net.
        learning_rate: of Adam. falling: whether it falls to 0 over the second half of the steps.
        averaging: decay of the running mean of the weights that is kept, in [0, 1); 0 for the last.
        temperature: of the noise that rows are drawn from, above 0; less than 1 for rows nearer to the mean.
    """

    target: Target
    levels: int
    hidden: int
    blocks: int
    learning_rate: float
    falling: bool = False
    averaging: float = 0.0
    temperature: float = 1.0

    def rate(self, done: float) -> float:
        """The learning rate after a share of the steps."""
        return self.learning_rate * min(1.0, 2 * (1 - done)) if self.falling else self.learning_rate


def noise_levels(levels: int) -> Floats:
    """``√β_t`` for t = 1 … T; the last is 1."""
    t = np.arange(1, levels + 1)
    scales: Floats = np.sqrt((1 - np.cos(np.pi * t / levels)) / 2)
    return scales


def row_losses(
    network: ResidualNet, layout: RowLayout, target: Target, rows: torch.Tensor, added: torch.Tensor
) -> torch.Tensor:
    """Loss of each row, averaged over the levels, shape (b,).

    Noise: ``mean_t ‖M(x + z_t) − z_t‖² / width``. Row: the mean square over numbers, plus
    ``(1 / K) Σ_c KL(x_c ‖ softmax(M_c))`` with K labels in all columns together.

    Args:
        rows: shape (b, width). added: z_t, shape (b, T, width).
    """
    rows = rows[:, None]
    made = network((rows + added).flatten(0, 1)).reshape(added.shape)
    if target == "noise":
        return (made - added).square().mean(dim=(1, 2))
    loss = made.new_zeros(len(rows))
    if layout.numbers:
        where = list(layout.numbers)
        loss = loss + (made[..., where] - rows[..., where]).square().mean(dim=(1, 2))
    labels = sum(stop - start for start, stop in layout.slices)
    for start, stop in layout.slices:
        chances = functional.log_softmax(made[..., start:stop], dim=-1)
        loss = loss - (chances * rows[..., start:stop]).sum(dim=-1).mean(dim=1) / labels
    return loss


def fitted(
    rows: Floats32,
    layout: RowLayout,
    settings: DiffusionSettings,
    loop: Loop,
    noise: GradientNoise | None,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train on rows of shape (n, width).

    Args:
        noise: None for training without protection.
        rng: first weights and the noise that is learnt; its seed must be secret where ``noise`` protects.

    Raises:
        PluginError: the loss is not a number any more.
    """
    with one_thread() if noise is None else nullcontext():  # nothing repeats where noise is secret
        network = built(lambda: _network(layout, settings), rng).to(device)
        mean = deepcopy(network)
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        data, draws = torch.as_tensor(rows, device=device), generator_from(rng)
        scales = torch.as_tensor(noise_levels(settings.levels), dtype=data.dtype)[:, None]

        def losses(rows: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
            return row_losses(network, layout, settings.target, rows, added)

        parts = {"network": network, "mean": mean, "optimiser": optimiser, "draws": draws}
        for step in loop.taken("network", parts, settings, layout, data):
            batch = data[torch.as_tensor(loop.sample(), device=device)]
            added = torch.randn((len(batch), settings.levels, layout.width), generator=draws) * scales
            if noise is None:
                lost = mean_gradient(network, losses, batch, added.to(device))
            else:
                lost = private_gradient(network, losses, noise, batch, added.to(device))
            optimiser.param_groups[0]["lr"] = settings.rate(step / loop.steps)
            optimiser.step()
            averaged(mean, network, settings.averaging, step)
            refuse_lost(lost if noise is None else probed(network, layout.width), step + 1)
            loop.told(step + 1, lost)
        return as_arrays(mean)


def drawn(
    weights: Weights, layout: RowLayout, settings: DiffusionSettings, n: int, rng: np.random.Generator
) -> Floats32:
    """``n`` row vectors: from normal noise, whose deviation is the temperature, down to level 0.

    At level t the network tells the row: ``x̂ = x_t − M(x_t)``, or M itself. What then stays of the noise is
    ``x_{t−1} = x̂ + (√β_{t−1} / √β_t) (x_t − x̂)``.
    """
    made = np.empty((n, layout.width), dtype=np.float32)
    scales = np.append(0.0, noise_levels(settings.levels))
    with one_thread(), torch.no_grad():
        network = with_weights(_network(layout, settings), weights)
        for start in range(0, n, _BLOCK):
            rows = min(_BLOCK, n - start)
            x = torch.zeros((_BLOCK, layout.width))
            x[:rows] = torch.as_tensor(rng.standard_normal((rows, layout.width), dtype=np.float32))
            x *= settings.temperature
            for t in range(settings.levels, 0, -1):
                told = _told(network(x), x, layout, settings.target)
                x = told + float(scales[t - 1] / scales[t]) * (x - told)
            made[start : start + rows] = x[:rows].numpy()
    return made


def _told(out: torch.Tensor, x: torch.Tensor, layout: RowLayout, target: Target) -> torch.Tensor:
    """The row that the network sees behind the noise."""
    if target == "noise":
        return x - out
    row = out.clone()
    for start, stop in layout.slices:
        row[:, start:stop] = functional.softmax(out[:, start:stop], dim=-1)
    return row


def _network(layout: RowLayout, settings: DiffusionSettings) -> ResidualNet:
    return ResidualNet(layout.width, layout.width, settings.hidden, settings.blocks)
