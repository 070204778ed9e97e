"""Attention over the columns of a row and the rows of a batch, and three ways to draw its codes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.gan import PENALTY, Critic, steepness
from synth_audit.generators._deep.training import (
    LabelSlices,
    Loop,
    ResidualNet,
    Weights,
    as_arrays,
    built,
    descend,
    drawn_in_blocks,
    generator_from,
    one_thread,
    refuse_lost,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout

_SPREADS = -4.0, 2.0
"""Between these lies the logarithm of a deviation of a mixture."""

_LEAST_SQUARE = 1e-6
"""Added below the root, whose slope is finite then."""

_LOG_ROOT = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class AttentionSettings:
    """Encoder, heads and how they are trained.

    Attributes:
        width: dimensions of tokens and code. heads: of attention, a divisor of it.
        hidden: width of perceptrons. mixtures: densities k of a number.
        labels_weight, numbers_weight: α and β of the loss. learning_rate: of Adam at first.
    """

    width: int
    heads: int
    hidden: int
    mixtures: int
    labels_weight: float
    numbers_weight: float
    learning_rate: float


class Tokens(nn.Module):
    """Numbers, each by a perceptron of its own, and labels, each by a vector of its own, side by side."""

    def __init__(self, layout: RowLayout, width: int) -> None:
        super().__init__()
        self.numbers, self.slices = list(layout.numbers), LabelSlices(layout)
        many = len(self.numbers)
        self.slope, self.offset = (nn.Parameter(torch.randn(many, width)) for _ in range(2))
        self.mixed = nn.Parameter(torch.randn(many, width, width) / width**0.5)
        self.labels = nn.Embedding(max(1, len(self.slices.places)), width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Shape (n, layout's width), slices one-hot, to (n, tokens, width)."""
        bent = torch.relu(rows[:, self.numbers, None] * self.slope + self.offset)
        numbers = torch.einsum("ncd,cde->nce", bent, self.mixed)
        chosen = rows[:, self.slices.places].nonzero()[:, 1].reshape(len(rows), self.slices.count)
        return torch.cat([numbers, self.labels(chosen)], dim=1)


class AttentionBlock(nn.Module):
    """Attention and a perceptron, each normalised before and added to what it was given."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.perceptron = _perceptron(width, hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (b, length, width); along the length all attend to all."""
        at = self.before(x)
        x = x + self.attention(at, at, at, need_weights=False)[0]
        out: torch.Tensor = x + self.perceptron(self.between(x))
        return out


class AttentionEncoder(nn.Module):
    """From the rows of a batch to their codes; each code has heard of the other rows.

    Source: Truda 2023, section 4.3; Somepalli et al. 2021, of whose row attention this is the one by columns.
    """

    def __init__(self, layout: RowLayout, settings: AttentionSettings) -> None:
        super().__init__()
        sizes = settings.width, settings.heads, settings.hidden
        self.tokens = Tokens(layout, settings.width)
        self.columns, self.rows = AttentionBlock(*sizes), AttentionBlock(*sizes)
        self.code = nn.Linear(settings.width * (len(layout.numbers) + len(layout.slices)), settings.width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Shape (n, layout's width) to (n, width)."""
        tokens = self.columns(self.tokens(rows))
        tokens = self.rows(tokens.transpose(0, 1)).transpose(0, 1)
        code: torch.Tensor = self.code(tokens.flatten(1))
        return code


class ColumnHeads(nn.Module):
    """A perceptron for each column, from a code to what is told of the column; each row by itself."""

    def __init__(self, layout: RowLayout, settings: AttentionSettings) -> None:
        super().__init__()
        self.layout, self.k, self.slices = layout, settings.mixtures, LabelSlices(layout)
        self.weights = settings.labels_weight, settings.numbers_weight
        widths = [3 * self.k] * len(layout.numbers) + [stop - start for start, stop in layout.slices]
        self.perceptrons = nn.ModuleList(_perceptron(settings.width, settings.hidden, w) for w in widths)

    def forward(self, code: torch.Tensor) -> torch.Tensor:
        """Shape (n, width) to (n, 3 k numbers + labels): of each number k scores, means and log deviations,
        then the scores of all labels."""
        return torch.cat([perceptron(code) for perceptron in self.perceptrons], dim=1)

    def losses(self, told: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Of each row, shape (n,): ``α · mean cross-entropy + β · (RMSE + mean − log density)``.

        The error is that of the mixtures' means, which tells nothing of their spread; the density does.
        """
        loss, many = rows.new_zeros(len(rows)), len(self.layout.numbers)
        if many:
            true = rows[:, list(self.layout.numbers)]
            scores, means, logs = self._mixtures(told)
            z = (true[..., None] - means) / logs.exp()
            density = torch.logsumexp(scores.log_softmax(-1) - logs - z.square() / 2, dim=-1) - _LOG_ROOT
            off = (scores.softmax(-1) * means).sum(-1) - true
            error = (off.square().mean(dim=1) + _LEAST_SQUARE).sqrt()
            loss = loss + self.weights[1] * (error - density.mean(dim=1))
        if self.slices.count:
            chances = self.slices.log_softmax(told[:, 3 * self.k * many :])
            missed = (chances * rows[:, self.slices.places]).sum(dim=1) / self.slices.count
            loss = loss - self.weights[0] * missed
        return loss

    def drawn(self, told: Floats32, rng: np.random.Generator) -> Floats32:
        """Row vectors: numbers from their mixtures, labels as scores of which the largest is drawn."""
        made = np.zeros((len(told), self.layout.width), dtype=np.float32)
        many = len(self.layout.numbers)
        if many:
            scores, means, logs = (part.numpy() for part in self._mixtures(torch.as_tensor(told)))
            chosen = (scores + rng.gumbel(size=scores.shape)).argmax(axis=-1)[..., None]
            mean, log = (np.take_along_axis(part, chosen, axis=-1)[..., 0] for part in (means, logs))
            made[:, list(self.layout.numbers)] = mean + np.exp(log) * rng.standard_normal(mean.shape)
        labels = told[:, 3 * self.k * many :]
        made[:, self.slices.places.numpy()] = labels + rng.gumbel(size=labels.shape)
        return made

    def _mixtures(self, told: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Scores, means and log deviations, each of shape (n, numbers, k)."""
        many = len(self.layout.numbers)
        parts = told[:, : 3 * self.k * many].reshape(len(told), many, 3, self.k)
        return parts[:, :, 0], parts[:, :, 1], parts[:, :, 2].clamp(*_SPREADS)


class AttentionAutoencoder(nn.Module):
    """Encoder and heads."""

    def __init__(self, layout: RowLayout, settings: AttentionSettings) -> None:
        super().__init__()
        self.encoder, self.heads = AttentionEncoder(layout, settings), ColumnHeads(layout, settings)

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        """Of what is rebuilt of each row, shape (n,)."""
        return self.heads.losses(self.heads(self.encoder(rows)), rows)


class AttentionVariational(nn.Module):
    """An inner encoder and decoder between the encoder and the heads."""

    def __init__(
        self, layout: RowLayout, settings: AttentionSettings, latent: int, divergence: float
    ) -> None:
        super().__init__()
        self.outer = AttentionAutoencoder(layout, settings)
        self.inner = _perceptron(settings.width, settings.hidden, 2 * latent)
        self.codes = inner_decoder(settings, latent)
        self.share = divergence / (len(layout.numbers) + len(layout.slices))

    def losses(self, rows: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """Of each row, shape (n,): of what is rebuilt, plus ``KL(N(μ, σ²) ‖ N(0, I))`` for each column."""
        mean, log_variance = self.inner(self.outer.encoder(rows)).chunk(2, dim=1)
        unit = torch.randn(mean.shape, generator=draws).to(rows.device)
        code = self.codes(mean + torch.exp(log_variance / 2) * unit)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1) / 2
        return self.outer.heads.losses(self.outer.heads(code), rows) + self.share * divergence


def inner_decoder(settings: AttentionSettings, latent: int) -> nn.Sequential:
    """From a draw of the prior to a code."""
    return _perceptron(latent, settings.hidden, settings.width)


def _perceptron(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, out))


_MOMENTS = 0.5, 0.9
"""Of both Adams."""

_BLOCKS = 2
"""Residual blocks of the generator."""


@dataclass(frozen=True)
class CodeGanSettings:
    """A generator of codes and its critic.

    Attributes:
        noise: dimensions of the input. hidden: width of both. steps: of the generator.
        critic_steps: for each of them. learning_rate: of both Adams.
    """

    noise: int
    hidden: int
    steps: int
    critic_steps: int
    learning_rate: float


class GeneratedCodes(nn.Module):
    """Standardised codes from a residual net, brought back to their scale."""

    def __init__(self, settings: CodeGanSettings, width: int) -> None:
        super().__init__()
        self.net = ResidualNet(settings.noise, width, settings.hidden, _BLOCKS)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, noise) to (n, width)."""
        codes: torch.Tensor = self.centre + self.scale * self.net(x)
        return codes


def play(
    made: GeneratedCodes,
    critic: Critic,
    real: torch.Tensor,
    gan: CodeGanSettings,
    loop: Loop,
    draws: torch.Generator,
) -> None:
    """Teach the critic ``E[c(made)] − E[c(real)]`` with a gradient penalty, the generator ``−E[c(made)]``.

    Args:
        real: standardised codes, shape (n, width). loop: its last ``gan.steps`` steps are taken.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Gulrajani et al. 2017.
    """
    of_made, of_critic = (
        torch.optim.Adam(network.parameters(), lr=gan.learning_rate, betas=_MOMENTS)
        for network in (made.net, critic)
    )

    def judged(codes: torch.Tensor) -> torch.Tensor:
        return critic(codes, critic.kept(len(codes), draws).to(codes.device))

    def codes(n: int) -> torch.Tensor:
        return made.net(torch.randn((n, gan.noise), generator=draws).to(real.device))

    parts = {
        "made": made,
        "critic": critic,
        "of_made": of_made,
        "of_critic": of_critic,
        "draws": draws,
    }
    steps = range(loop.steps - gan.steps, loop.steps)
    for step in loop.taken("codes", parts, gan, real, steps=steps):
        for _ in range(gan.critic_steps):
            batch = real[torch.as_tensor(loop.sample(), device=real.device)]
            with torch.no_grad():
                false = codes(len(batch))
            apart = judged(false).mean() - judged(batch).mean()
            of_critic.zero_grad()
            (apart + PENALTY * steepness(judged, batch, false, draws)).backward()
            of_critic.step()
        loss = -judged(codes(len(batch))).mean()
        of_made.zero_grad()
        loss.backward()
        of_made.step()
        lost = float(loss.detach())
        refuse_lost(lost, step + 1)
        loop.told(step + 1, lost)


_ROWS_EACH = 50
"""A component of the mixture of codes is fitted for so many rows."""

_STEADY = 1e-3
"""Added to the variances of a component, of standardised codes."""


class MixtureCodes(nn.Module):
    """Codes from a mixture of normal densities: the first input picks the component, the others its place."""

    def __init__(self, components: int, width: int) -> None:
        super().__init__()
        self.register_buffer("ends", torch.ones(components))
        self.register_buffer("means", torch.zeros(components, width))
        self.register_buffer("factors", torch.zeros(components, width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, 1 + width) to (n, width)."""
        chosen = torch.searchsorted(self.ends, torch.special.ndtr(x[:, 0])).clamp(max=len(self.ends) - 1)
        return self.means[chosen] + torch.einsum("nde,ne->nd", self.factors[chosen], x[:, 1:])


class DecodedCodes(nn.Module):
    """Codes, and what the heads tell of them."""

    def __init__(self, codes: nn.Module, heads: ColumnHeads) -> None:
        super().__init__()
        self.codes, self.heads = codes, heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, inputs) to what the heads tell."""
        told: torch.Tensor = self.heads(self.codes(x))
        return told


def fitted_mixture(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    components: int,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train the autoencoder, then fit a mixture of at most so many densities to the codes of train.

    Raises:
        PluginError: the loss is not a number any more.

    Source: Truda 2023, section 4.3.1; Ghosh et al. 2020 for codes drawn afterwards.
    """
    with one_thread():
        network = _autoencoder(rows, layout, settings, loop, range(loop.steps), rng, device)
        codes = _codes(network, rows, len(loop.sample()), rng, device).cpu().numpy()
        mixture = _mixture(codes, min(components, 1 + len(codes) // _ROWS_EACH), rng)
        return as_arrays(DecodedCodes(mixture, network.heads.cpu()))


def fitted_variational(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    latent: int,
    divergence: float,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train encoder, inner encoder and decoder, and heads together.

    Args:
        latent: dimensions between the inner two. divergence: weight of the divergence from the prior.

    Raises:
        PluginError: the loss is not a number any more.

    Source: Truda 2023, section 4.3.2.
    """
    with one_thread():
        network = built(lambda: AttentionVariational(layout, settings, latent, divergence), rng).to(device)
        data, draws = torch.as_tensor(rows, device=device), generator_from(rng)
        known = settings, layout, divergence

        def losses(batch: torch.Tensor) -> torch.Tensor:
            return network.losses(batch, draws)

        descend(network, losses, data, loop, settings.learning_rate, None, *known, draws=draws)
        return as_arrays(DecodedCodes(network.codes, network.outer.heads))


def fitted_adversarial(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    gan: CodeGanSettings,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train the autoencoder and freeze it, then a Wasserstein GAN on the codes of train.

    Args:
        loop: its last ``gan.steps`` steps are the generator's.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Truda 2023, section 4.3.2; Gulrajani et al. 2017.
    """
    with one_thread():
        before = loop.steps - gan.steps
        network = _autoencoder(rows, layout, settings, loop, range(before), rng, device)
        codes = _codes(network, rows, len(loop.sample()), rng, device)
        made = built(lambda: GeneratedCodes(gan, settings.width), rng).to(device)
        made.centre.copy_(codes.mean(dim=0))
        made.scale.copy_(codes.std(dim=0, correction=0).clamp(min=_STEADY))
        critic = built(lambda: Critic(settings.width, gan.hidden, dropout=0.0), rng).to(device)
        play(made, critic, (codes - made.centre) / made.scale, gan, loop, generator_from(rng))
        return as_arrays(DecodedCodes(made, network.heads))


def drawn_from_mixture(
    weights: Weights, layout: RowLayout, settings: AttentionSettings, n: int, rng: np.random.Generator
) -> Floats32:
    """``n`` row vectors."""
    mixture = MixtureCodes(len(weights["codes.ends"]), settings.width)
    return _drawn(mixture, 1 + settings.width, weights, layout, settings, n, rng)


def drawn_from_prior(
    weights: Weights,
    layout: RowLayout,
    settings: AttentionSettings,
    latent: int,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    """``n`` row vectors."""
    return _drawn(inner_decoder(settings, latent), latent, weights, layout, settings, n, rng)


def drawn_by_generator(
    weights: Weights,
    layout: RowLayout,
    settings: AttentionSettings,
    gan: CodeGanSettings,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    """``n`` row vectors."""
    return _drawn(GeneratedCodes(gan, settings.width), gan.noise, weights, layout, settings, n, rng)


def _autoencoder(
    rows: Floats32,
    layout: RowLayout,
    settings: AttentionSettings,
    loop: Loop,
    steps: range,
    rng: np.random.Generator,
    device: str,
) -> AttentionAutoencoder:
    network: AttentionAutoencoder = built(lambda: AttentionAutoencoder(layout, settings), rng).to(device)
    data = torch.as_tensor(rows, device=device)
    descend(network, network.losses, data, loop, settings.learning_rate, steps, settings, layout)
    network.eval().requires_grad_(False)
    return network


def _codes(
    network: AttentionAutoencoder, rows: Floats32, size: int, rng: np.random.Generator, device: str
) -> torch.Tensor:
    """Codes of rows among others of train, as in training; shape (n, width)."""
    order = np.array_split(rng.permutation(len(rows)), max(1, len(rows) // size))
    with torch.no_grad():
        return torch.cat([network.encoder(torch.as_tensor(rows[some], device=device)) for some in order])


def _mixture(codes: Floats32, components: int, rng: np.random.Generator) -> MixtureCodes:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    centre, scale = codes.mean(axis=0), np.maximum(codes.std(axis=0), _STEADY)
    if len(codes) == 1:
        codes = np.repeat(codes, 2, axis=0)
    mixture = GaussianMixture(components, reg_covar=_STEADY, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that is nearly there will do
        mixture.fit(((codes - centre) / scale).astype(np.float64))
    made = MixtureCodes(components, codes.shape[1])
    made.ends.copy_(torch.as_tensor(mixture.weights_.cumsum()))
    made.means.copy_(torch.as_tensor(centre + scale * mixture.means_))
    factors = np.linalg.cholesky(mixture.covariances_)
    made.factors.copy_(torch.as_tensor(scale[:, None] * factors))
    return made


def _drawn(
    codes: nn.Module,
    inputs: int,
    weights: Weights,
    layout: RowLayout,
    settings: AttentionSettings,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    with one_thread(), torch.no_grad():
        network = with_weights(DecodedCodes(codes, ColumnHeads(layout, settings)), weights)
        told = drawn_in_blocks(network, n, inputs, rng)
        return network.heads.drawn(told, rng)
