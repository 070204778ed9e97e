"""Attention over the columns of a row and the rows of a batch; rows from codes."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.families import AttentionTraining
from synth_audit.generators._deep.training import (
    LabelSlices,
    Training,
    Weights,
    descend,
    drawn_in_blocks,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout

_SPREADS = -4.0, 2.0
"""Between these lies the logarithm of a deviation of a mixture."""

_LEAST_SQUARE = 1e-6
"""Added below the root, whose slope is finite then."""

_LOG_ROOT = 0.5 * np.log(2 * np.pi)


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
        self.perceptron = perceptron(width, hidden, width)

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

    def __init__(self, layout: RowLayout, settings: AttentionTraining) -> None:
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

    def __init__(self, layout: RowLayout, settings: AttentionTraining) -> None:
        super().__init__()
        self.layout, self.k, self.slices = layout, settings.mixtures, LabelSlices(layout)
        self.weights = settings.labels_weight, settings.numbers_weight
        widths = [3 * self.k] * len(layout.numbers) + [stop - start for start, stop in layout.slices]
        self.perceptrons = nn.ModuleList(perceptron(settings.width, settings.hidden, w) for w in widths)

    def forward(self, code: torch.Tensor) -> torch.Tensor:
        """Shape (n, width) to (n, 3 k numbers + labels): of each number k scores, means and log deviations,
        then the scores of all labels."""
        return torch.cat([head(code) for head in self.perceptrons], dim=1)

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

    def __init__(self, layout: RowLayout, settings: AttentionTraining) -> None:
        super().__init__()
        self.encoder, self.heads = AttentionEncoder(layout, settings), ColumnHeads(layout, settings)

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        """Of what is rebuilt of each row, shape (n,)."""
        return self.heads.losses(self.heads(self.encoder(rows)), rows)


class DecodedCodes(nn.Module):
    """Codes, and what the heads tell of them."""

    def __init__(self, codes: nn.Module, heads: ColumnHeads) -> None:
        super().__init__()
        self.codes, self.heads = codes, heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, inputs) to what the heads tell."""
        told: torch.Tensor = self.heads(self.codes(x))
        return told


def autoencoder(training: Training, settings: AttentionTraining) -> AttentionAutoencoder:
    """Encoder and heads, trained by the first steps and frozen.

    Raises:
        PluginError: the loss is not a number any more.

    Source: Truda 2023, section 4.3.1.
    """
    network = training.built(lambda: AttentionAutoencoder(training.layout, settings))
    steps = range(settings.steps)
    descend(network, network.losses, training, settings.learning_rate, settings, steps=steps)
    network.eval().requires_grad_(False)
    return network


def codes_of_rows(network: AttentionAutoencoder, training: Training) -> torch.Tensor:
    """Codes of rows among others of train, as in training; shape (n, width)."""
    n, size = len(training.rows), len(training.sample())
    order = np.array_split(training.rng.permutation(n), max(1, n // size))
    with torch.no_grad():
        return torch.cat([network.encoder(training.rows[torch.as_tensor(some)]) for some in order])


def drawn_rows(
    codes: nn.Module,
    inputs: int,
    weights: Weights,
    layout: RowLayout,
    settings: AttentionTraining,
    n: int,
    rng: np.random.Generator,
) -> Floats32:
    """``n`` row vectors from a network that makes codes of so many inputs."""
    network = with_weights(DecodedCodes(codes, ColumnHeads(layout, settings)), weights)
    return network.heads.drawn(drawn_in_blocks(network, n, inputs, rng), rng)


def perceptron(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, out))
