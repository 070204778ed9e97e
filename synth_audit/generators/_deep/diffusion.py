"""Diffusion of row vectors: in a few steps with private gradients, and of mixed tables without protection."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats, Floats32
from synth_audit.generators._deep.training import (
    GradientNoise,
    LabelSlices,
    Loop,
    ResidualNet,
    Weights,
    as_arrays,
    averaged,
    built,
    descend,
    generator_from,
    mean_gradient,
    one_thread,
    private_gradient,
    probed,
    refuse_lost,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout

Target = Literal["noise", "row"]
"""What the network predicts."""

_DIFFUSION_BLOCK = 2048
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


def fit_diffusion(
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


def draw_diffusion(
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
        for start in range(0, n, _DIFFUSION_BLOCK):
            rows = min(_DIFFUSION_BLOCK, n - start)
            x = torch.zeros((_DIFFUSION_BLOCK, layout.width))
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


_DDPM_BLOCK = 512
"""Rows drawn at a time; always as many, so that a row's sums are formed alike wherever it stands."""

_TIME = 128
"""Dimensions of what the network hears of the time."""

_OFFSET = 0.008
"""Of the schedule: the first step adds some noise."""

_MOST_NOISE = 0.999
"""``1 − α_t`` at most."""

_FARTHEST = 4.5
"""A standard normal number that the network sees behind the noise lies within this."""

_NEVER = -69.0
"""Logarithm of a chance of 0, nearly."""


@dataclass(frozen=True)
class DdpmSettings:
    """A network and its training.

    Attributes:
        levels: T, at least 1. hidden, layers: width and number of the network's layers.
        learning_rate: of Adam at first; it falls to 0 on a straight line.
    """

    levels: int
    hidden: int
    layers: int
    learning_rate: float


def kept_shares(levels: int) -> Floats:
    """``ᾱ_0 = 1, ᾱ_1, …, ᾱ_T``, shape (T + 1,).

    Source: Nichol & Dhariwal 2021.
    """
    t = np.arange(levels + 1) / levels
    raw = np.cos((t + _OFFSET) / (1 + _OFFSET) * np.pi / 2) ** 2
    steps = np.maximum(raw[1:] / raw[:-1], 1 - _MOST_NOISE)
    shares: Floats = np.concatenate([[1.0], np.cumprod(steps)])
    return shares


class DiffusionNet(nn.Module):
    """A perceptron of the row plus what it hears of the time by its sines and cosines."""

    def __init__(self, width: int, settings: DdpmSettings) -> None:
        super().__init__()
        self.levels = settings.levels
        self.row = nn.Linear(width, _TIME)
        self.time = nn.Sequential(nn.Linear(_TIME, _TIME), nn.SiLU(), nn.Linear(_TIME, _TIME))
        widths = (_TIME, *[settings.hidden] * settings.layers)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.out = nn.Linear(widths[-1], width)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Shape (n, width), and levels 1 … T of shape (n,), to (n, width)."""
        speeds = torch.exp(-np.log(1e4) * torch.arange(_TIME // 2, device=x.device) / (_TIME // 2))
        angles = (1000 * t / self.levels)[:, None] * speeds
        x = self.row(x) + self.time(torch.cat([angles.cos(), angles.sin()], dim=1))
        for layer in self.layers:
            x = torch.relu(layer(x))
        out: torch.Tensor = self.out(x)
        return out


class MixedDiffusion(nn.Module):
    """The network, and what noise does to a row. Numbers come first in all its vectors, then labels."""

    kept: torch.Tensor

    def __init__(self, layout: RowLayout, settings: DdpmSettings) -> None:
        super().__init__()
        self.numbers, self.levels = len(layout.numbers), settings.levels
        self.labels = LabelSlices(layout)
        self.network = DiffusionNet(layout.width, settings)
        kept = torch.as_tensor(kept_shares(settings.levels))
        self.register_buffer("kept", kept, persistent=False)  # double precision: 1 − ᾱ is small at first

    def noised(self, rows: torch.Tensor, t: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """Rows of shape (n, width) at levels of shape (n,), and behind them the noise of their numbers."""
        kept = self.kept[t][:, None]
        noise = torch.randn((len(rows), self.numbers), generator=draws).to(rows.device)
        numbers = kept.sqrt().float() * rows[:, : self.numbers] + (1 - kept).sqrt().float() * noise
        stays = torch.rand((len(rows), self.labels.count), generator=draws).to(rows.device) < kept
        others = self.labels.drawn(torch.zeros_like(rows[:, self.numbers :]), draws)
        labels = torch.where(stays[:, self.labels.owner], rows[:, self.numbers :], others)
        return torch.cat([numbers, labels, noise], dim=1)

    def before(self, log_first: torch.Tensor, labels: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Log chances of the labels at level t − 1: ``q(x_{t−1} | x_t, x_0)``, shape (n, w).

        ``∝ (α_t x_t + (1 − α_t) / K) (ᾱ_{t−1} x_0 + (1 − ᾱ_{t−1}) / K)``.

        Args:
            log_first: log chances of x_0. labels: x_t, one-hot. t: shape (n,).
        """
        earlier, sizes = self.kept[t - 1][:, None], self.labels.sizes
        step = self.kept[t][:, None] / earlier
        now = (step.float() * labels + (1 - step).float() / sizes).log()
        chance = (1 - earlier).log().clamp(min=_NEVER).float() - sizes.log()
        return self.labels.log_softmax(now + torch.logaddexp(earlier.log().float() + log_first, chance))

    def losses(self, rows: torch.Tensor, t: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """Of each row, shape (n,): the mean square of ε̂ − ε, plus
        ``(T / C) Σ_c KL(q(x_{t−1} | x_t, x_0) ‖ q(x_{t−1} | x_t, x̂_0))`` over C slices."""
        both = self.noised(rows, t, draws)
        at, noise = both[:, : rows.shape[1]], both[:, rows.shape[1] :]
        told = self.network(at, t)
        loss = rows.new_zeros(len(rows))
        if self.numbers:
            loss = loss + (told[:, : self.numbers] - noise).square().mean(dim=1)
        if self.labels.count:
            first = rows[:, self.numbers :].log().clamp(min=_NEVER)
            guessed = self.labels.log_softmax(told[:, self.numbers :])
            true, made = (self.before(x, at[:, self.numbers :], t) for x in (first, guessed))
            divergence = (true.exp() * (true - made)).sum(dim=1)
            loss = loss + self.levels / self.labels.count * divergence
        return loss

    def earlier(self, x: torch.Tensor, level: int, draws: torch.Generator) -> torch.Tensor:
        """Rows of level t − 1 drawn from rows of level t, shape (n, width)."""
        t = torch.full((len(x),), level, device=x.device)
        told = self.network(x, t)
        now, before = float(self.kept[level]), float(self.kept[level - 1])
        step, numbers = now / before, x[:, : self.numbers]
        noise = torch.randn(numbers.shape, generator=draws).to(x.device)
        first = (numbers - (1 - now) ** 0.5 * told[:, : self.numbers]) / now**0.5
        first = first.clamp(-_FARTHEST, _FARTHEST)
        mean = (1 - step) * before**0.5 * first + (1 - before) * step**0.5 * numbers
        spread = ((1 - step) * (1 - before) / (1 - now)) ** 0.5
        numbers = mean / (1 - now) + spread * noise
        guessed = self.labels.log_softmax(told[:, self.numbers :])
        labels = self.labels.drawn(self.before(guessed, x[:, self.numbers :], t), draws)
        return torch.cat([numbers, labels], dim=1)


def fit_tab_ddpm(
    rows: Floats32,
    layout: RowLayout,
    settings: DdpmSettings,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train on rows of shape (n, width), their numbers standard normal.

    Raises:
        PluginError: the loss is not a number any more.

    Source: Kotelnikov et al. 2023; Ho et al. 2020; Hoogeboom et al. 2021.
    """
    with one_thread():
        model = built(lambda: MixedDiffusion(layout, settings), rng).to(device)
        order = [*layout.numbers, *model.labels.places.tolist()]
        data, draws = torch.as_tensor(rows[:, order], device=device), generator_from(rng)

        def losses(batch: torch.Tensor) -> torch.Tensor:
            t = torch.randint(1, settings.levels + 1, (len(batch),), generator=draws).to(device)
            return model.losses(batch, t, draws)

        descend(model, losses, data, loop, settings.learning_rate, None, settings, layout, draws=draws)
        return as_arrays(model)


def draw_tab_ddpm(
    weights: Weights, layout: RowLayout, settings: DdpmSettings, n: int, rng: np.random.Generator
) -> Floats32:
    """``n`` row vectors: from noise and labels by chance alone down to level 0."""
    made = np.empty((n, layout.width), dtype=np.float32)
    draws = generator_from(rng)
    with one_thread(), torch.no_grad():
        model = with_weights(MixedDiffusion(layout, settings), weights)
        order = [*layout.numbers, *model.labels.places.tolist()]
        for start in range(0, n, _DDPM_BLOCK):
            numbers = torch.randn((_DDPM_BLOCK, model.numbers), generator=draws)
            labels = model.labels.drawn(torch.zeros((_DDPM_BLOCK, len(model.labels.places))), draws)
            x = torch.cat([numbers, labels], dim=1)
            for level in range(settings.levels, 0, -1):
                x = model.earlier(x, level, draws)
            made[start : start + _DDPM_BLOCK, order] = x[: n - start].numpy()
    return made
