"""Gaussian diffusion of numbers and multinomial diffusion of labels, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from synth_audit.arrays import Floats, Floats32
from synth_audit.generators._deep.training import (
    LabelSlices,
    Training,
    Weights,
    as_arrays,
    descend,
    generator_from,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.tab_ddpm import TabDdpm

_BLOCK = 512
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
class TabDdpmNetwork:
    """Both diffusions; numbers of the rows are standard normal.

    Source: Kotelnikov et al. 2023; Ho et al. 2020; Hoogeboom et al. 2021.
    """

    settings: TabDdpm

    def learn(self, training: Training) -> Weights:
        """Train on rows at random levels."""
        settings, layout = self.settings, training.layout
        model = training.built(lambda: MixedDiffusion(layout, settings))
        order = [*layout.numbers, *model.labels.places.tolist()]
        draws = generator_from(training.rng)

        def losses(batch: torch.Tensor) -> torch.Tensor:
            t = torch.randint(1, settings.levels + 1, (len(batch),), generator=draws).to(training.device)
            return model.losses(batch[:, order], t, draws)

        descend(model, losses, training, settings.learning_rate, settings, draws=draws)
        return as_arrays(model)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors: from noise and labels by chance alone down to level 0."""
        made = np.empty((n, layout.width), dtype=np.float32)
        draws = generator_from(rng)
        model = with_weights(MixedDiffusion(layout, self.settings), weights)
        order = [*layout.numbers, *model.labels.places.tolist()]
        for start in range(0, n, _BLOCK):
            numbers = torch.randn((_BLOCK, model.numbers), generator=draws)
            labels = model.labels.drawn(torch.zeros((_BLOCK, len(model.labels.places))), draws)
            x = torch.cat([numbers, labels], dim=1)
            for level in range(self.settings.levels, 0, -1):
                x = model.earlier(x, level, draws)
            made[start : start + _BLOCK, order] = x[: n - start].numpy()
        return made


class DiffusionNet(nn.Module):
    """A perceptron of the row plus what it hears of the time by its sines and cosines."""

    def __init__(self, width: int, settings: TabDdpm) -> None:
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

    def __init__(self, layout: RowLayout, settings: TabDdpm) -> None:
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


def kept_shares(levels: int) -> Floats:
    """``ᾱ_0 = 1, ᾱ_1, …, ᾱ_T``, shape (T + 1,).

    Source: Nichol & Dhariwal 2021.
    """
    t = np.arange(levels + 1) / levels
    raw = np.cos((t + _OFFSET) / (1 + _OFFSET) * np.pi / 2) ** 2
    steps = np.maximum(raw[1:] / raw[:-1], 1 - _MOST_NOISE)
    shares: Floats = np.concatenate([[1.0], np.cumprod(steps)])
    return shares
