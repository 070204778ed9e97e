"""Diffusion of row vectors in a few steps, with private gradients."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from synth_audit.arrays import Floats, Floats32
from synth_audit.generators._deep.families import DiffusionTraining, Target
from synth_audit.generators._deep.training import (
    ResidualNet,
    Training,
    Weights,
    as_arrays,
    averaged,
    generator_from,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout

_BLOCK = 2048
"""Rows drawn at a time; always as many, so that a row's sums are formed alike wherever it stands."""


@dataclass(frozen=True)
class TableDiffusionNetwork:
    """A residual net that sees a row behind noise of all levels."""

    settings: DiffusionTraining

    def learn(self, training: Training) -> Weights:
        """Train on rows with all levels of noise each."""
        settings, layout = self.settings, training.layout
        network = training.built(lambda: self._net(layout))
        mean, draws = deepcopy(network), generator_from(training.rng)
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        scales = torch.as_tensor(noise_levels(settings.levels), dtype=training.rows.dtype)[:, None]

        def losses(rows: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
            return row_losses(network, layout, settings.target, rows, added)

        parts = {"network": network, "mean": mean, "optimiser": optimiser, "draws": draws}
        for step in training.taken("network", parts, settings):
            batch = training.batch()
            added = torch.randn((len(batch), settings.levels, layout.width), generator=draws) * scales
            lost = training.gradient(network, losses, batch, added.to(training.device))
            optimiser.param_groups[0]["lr"] = settings.rate(step / training.steps)
            optimiser.step()
            averaged(mean, network, settings.averaging, step)
            training.done_in_noise(step, lost, network)
        return as_arrays(mean)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors: from normal noise, whose deviation is the temperature, down to level 0.

        At level t the network tells the row: ``x̂ = x_t − M(x_t)``, or M itself. What then stays of the noise
        is ``x_{t−1} = x̂ + (√β_{t−1} / √β_t) (x_t − x̂)``.
        """
        settings = self.settings
        made = np.empty((n, layout.width), dtype=np.float32)
        scales = np.append(0.0, noise_levels(settings.levels))
        network = with_weights(self._net(layout), weights)
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

    def _net(self, layout: RowLayout) -> ResidualNet:
        return ResidualNet(layout.width, layout.width, self.settings.hidden, self.settings.blocks)


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


def _told(out: torch.Tensor, x: torch.Tensor, layout: RowLayout, target: Target) -> torch.Tensor:
    """The row that the network sees behind the noise."""
    if target == "noise":
        return x - out
    row = out.clone()
    for start, stop in layout.slices:
        row[:, start:stop] = functional.softmax(out[:, start:stop], dim=-1)
    return row
