"""Diffusion of mixed tables without protection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats, Floats32
from synth_audit.generators._deep import networks, torch
from synth_audit.generators._deep.network_model import OfNumbers, OpenNetwork
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import QuantileTransform, RowLayout, Weights
from synth_audit.plugins.generator import Count, GeneratorInfo, Size

_BLOCK = 512
"""Rows drawn at a time; always as many, so that a row's sums are formed alike wherever it stands."""

_OFFSET = 0.008
"""Of the schedule: the first step adds some noise."""

_MOST_NOISE = 0.999
"""``1 − α_t`` at most."""

_FARTHEST = 4.5
"""A standard normal number that the network sees behind the noise lies within this."""

_NEVER = -69.0
"""Logarithm of a chance of 0, nearly."""


@dataclass(frozen=True, kw_only=True)
class TabDdpm(OpenNetwork):
    """Rows become noise level by level; a network learns the way back.

    Numbers, standard normal by their ranks, are noised by a Gaussian diffusion, whose noise ε the network
    predicts; labels by a multinomial one, of which it predicts the row without noise. The loss of a row at a
    random level is the mean square of what is missed of ε, plus T times the mean over columns of labels of
    ``KL(q(x_{t−1} | x_t, x_0) ‖ q(x_{t−1} | x_t, x̂_0))``. As published the target is given to the network;
    here it is a column like all others.

    Attributes:
        steps: gradient steps.
        batch: rows of a step.
        levels: noise levels T.
        hidden, layers: width and number of the network's layers.
        learning_rate: of Adam at first; it falls to 0 on a straight line.

    Source: Kotelnikov et al. 2023; Ho et al. 2020; Hoogeboom et al. 2021.
    """

    steps: Count = 5000
    batch: Count = 512
    levels: Count = 100
    hidden: Count = 256
    layers: Count = 2
    learning_rate: Size = 1e-3
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="TabDDPM",
        summary="Gaussian and multinomial diffusion of mixed tables; no privacy guarantee.",
        cost="minutes",
        source="Kotelnikov et al. 2023",
        trial={"steps": 3, "levels": 4, "hidden": 8},
    )

    def of_numbers(self, rng: np.random.Generator) -> OfNumbers:
        """Standard normal by their ranks."""
        return QuantileTransform.of

    def learn(self, training: Training) -> Weights:
        """Train on rows at random levels."""
        network = training.built(lambda: self._net(training.layout))
        model = MixedDiffusion(training.layout, network, training.device)
        draws = networks.generator_from(training.rng)

        def losses(batch: torch.Tensor) -> torch.Tensor:
            t = torch.randint(1, self.levels + 1, (len(batch),), generator=draws).to(training.device)
            return model.losses(batch[:, model.order], t, draws)

        training.descend(network, losses, self.learning_rate, self, draws=draws)
        return networks.as_arrays(network)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors: from noise and labels by chance alone down to level 0."""
        made = np.empty((n, layout.width), dtype=np.float32)
        draws = networks.generator_from(rng)
        model = MixedDiffusion(layout, networks.with_weights(self._net(layout), weights))
        for start in range(0, n, _BLOCK):
            numbers = torch.randn((_BLOCK, model.numbers), generator=draws)
            labels = model.labels.drawn(torch.zeros((_BLOCK, len(model.labels.places))), draws)
            x = torch.cat([numbers, labels], dim=1)
            for level in range(self.levels, 0, -1):
                x = model.earlier(x, level, draws)
            made[start : start + _BLOCK, model.order] = x[: n - start].numpy()
        return made

    def _net(self, layout: RowLayout) -> networks.TimedNet:
        return networks.TimedNet(layout.width, self.hidden, self.layers, self.levels)


class MixedDiffusion:
    """The network, and what noise does to a row. Numbers come first in all its vectors, then labels.

    Attributes:
        order: positions of numbers, then labels, in a row vector.
        kept: :func:`kept_shares`, in double precision: 1 − ᾱ is small at first.
    """

    def __init__(self, layout: RowLayout, network: networks.TimedNet, device: str = "cpu") -> None:
        self.numbers, self.levels, self.network = len(layout.numbers), network.levels, network
        self.labels = networks.LabelSlices(layout).to(device)
        self.order = [*layout.numbers, *self.labels.places.tolist()]
        self.kept = torch.as_tensor(kept_shares(self.levels), device=device)

    def noised(self, rows: torch.Tensor, t: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """Rows of shape (n, width) at levels of shape (n,), and behind them the noise of their numbers."""
        kept = self.kept[t][:, None]
        noise = networks.normal((len(rows), self.numbers), draws, rows.device)
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
        noise = networks.normal(numbers.shape, draws, x.device)
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
    return np.concatenate([[1.0], np.cumprod(steps)])
