"""Diffusion of row vectors in a few steps, with private gradients."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from synth_audit.arrays import Floats, Floats32
from synth_audit.generators._deep import functional, networks, torch
from synth_audit.generators._deep.network_model import NetworkModel, ProtectedNetwork
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, FitContext, Rate, Share, Size
from synth_audit.table.table import Table

Predicted = Literal["noise", "row"]
"""What the network of a diffusion predicts."""


@dataclass(frozen=True, kw_only=True)
class DiffusionTraining(ProtectedNetwork):
    """A residual net that sees a row behind noise of all levels: how it is built, trained and drawn from.

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

    levels: Count = 10
    steps: Count = 300
    sampling_rate: Rate = 0.03
    learning_rate: Size = 0.005
    clip: Size = 1.0
    hidden: Count = 128
    blocks: Count = 2
    margins: Share = 0.2
    falling: bool = False
    averaging: Share = 0.0
    temperature: Size = 1.0
    trained: ClassVar[str] = "network"
    target: ClassVar[Predicted]

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``; the number of steps and the noise are fixed beforehand."""

        usual = replace(self, temperature=1.0)  # margins are those of rows as they were learnt
        return replace(ProtectedNetwork.fit(usual, train, context), generator=self)

    def rate(self, done: float) -> float:
        """The learning rate after a share of the steps."""
        return self.learning_rate * min(1.0, 2 * (1 - done)) if self.falling else self.learning_rate

    def learn(self, training: Training) -> Weights:
        """Train on rows with all levels of noise each."""
        layout = training.layout
        network = training.built(lambda: self._net(layout))
        mean, draws = deepcopy(network), networks.generator_from(training.rng)
        optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
        scales = torch.as_tensor(noise_levels(self.levels), dtype=training.rows.dtype)[:, None]

        def losses(rows: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
            return row_losses(network, layout, self.target, rows, added)

        parts = {"network": network, "mean": mean, "optimiser": optimiser, "draws": draws}
        for step in training.taken("network", parts, self):
            batch = training.batch()
            added = torch.randn((len(batch), self.levels, layout.width), generator=draws) * scales
            lost = training.gradient(network, losses, batch, added.to(training.device))
            optimiser.param_groups[0]["lr"] = self.rate(step / training.steps)
            optimiser.step()
            networks.averaged(mean, network, self.averaging, step)
            training.done_in_noise(step, lost, network)
        return networks.as_arrays(mean)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors: from normal noise, whose deviation is the temperature, down to level 0.

        At level t the network tells the row: ``x̂ = x_t − M(x_t)``, or M itself. What then stays of the noise
        is ``x_{t−1} = x̂ + (√β_{t−1} / √β_t) (x_t − x̂)``.
        """
        scales = np.append(0.0, noise_levels(self.levels))
        network = networks.with_weights(self._net(layout), weights)

        def denoised(x: torch.Tensor) -> torch.Tensor:
            x = x * self.temperature
            for t in range(self.levels, 0, -1):
                told = _told(network(x), x, layout, self.target)
                x = told + float(scales[t - 1] / scales[t]) * (x - told)
            return x

        return networks.drawn_in_blocks(denoised, n, layout.width, rng)

    def _net(self, layout: RowLayout) -> networks.ResidualNet:
        return networks.ResidualNet(layout.width, layout.width, self.hidden, self.blocks)


def noise_levels(levels: int) -> Floats:
    """``√β_t`` for t = 1 … T; the last is 1."""
    t = np.arange(1, levels + 1)
    return np.sqrt((1 - np.cos(np.pi * t / levels)) / 2)


def row_losses(
    network: networks.ResidualNet,
    layout: RowLayout,
    target: Predicted,
    rows: torch.Tensor,
    added: torch.Tensor,
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


def _told(out: torch.Tensor, x: torch.Tensor, layout: RowLayout, target: Predicted) -> torch.Tensor:
    """The row that the network sees behind the noise."""
    if target == "noise":
        return x - out
    row = out.clone()
    for start, stop in layout.slices:
        row[:, start:stop] = functional.softmax(out[:, start:stop], dim=-1)
    return row
