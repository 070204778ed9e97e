"""Networks that the methods are built of, their first weights and draws, and what any network is used by."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats32
from synth_audit.generators._deep.transforms import RowLayout, Weights

if TYPE_CHECKING:
    from synth_audit.generators._deep.attention import AttentionTraining

_GROUPS = 1
"""Groups of a row's hidden coordinates that are normalised together."""

_BLOCK = 2048
"""Rows drawn at a time."""

_MOMENTS = 0.5, 0.9
"""Of the Adams of all GANs."""

_LEAK = 0.2
"""Of the layers of critics and teachers."""

_HIDDEN_LAYERS = 2
"""Of a critic."""

_TIME = 128
"""Dimensions of what a network hears of the time."""

_SPREADS = -4.0, 2.0
"""Between these lies the logarithm of a deviation of a mixture."""

_LEAST_SQUARE = 1e-6
"""Added below the root, whose slope is finite then."""

_LOG_ROOT = 0.5 * np.log(2 * np.pi)
"""log √(2π), of the normal density."""

Built = TypeVar("Built", bound=nn.Module)


def built(make: Callable[[], Built], rng: np.random.Generator) -> Built:
    """A network with first weights from these draws; torch's own state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63)))
        return make()


def generator_from(rng: np.random.Generator) -> torch.Generator:
    """Torch's draws, on the processor whatever the device, so that a GPU moves last digits alone."""
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


def normal(shape: tuple[int, ...], draws: torch.Generator, device: str | torch.device) -> torch.Tensor:
    """Standard normal numbers, on a device."""
    return torch.randn(shape, generator=draws).to(device)


def as_arrays(network: nn.Module) -> Weights:
    """The weights by name, single precision."""
    return {name: w.detach().cpu().numpy().copy() for name, w in network.state_dict().items()}


def with_weights(network: Built, weights: Weights) -> Built:
    """The network with these weights, for drawing only."""
    network.load_state_dict({name: torch.as_tensor(w) for name, w in weights.items()})
    network.eval().requires_grad_(False)
    return network


def drawn_in_blocks(
    network: Callable[[torch.Tensor], torch.Tensor],
    n: int,
    inputs: int,
    rng: np.random.Generator,
    given: Floats32 | None = None,
) -> Floats32:
    """What a network makes of standard normal inputs, shape (n, out).

    Always as many rows at a time, so that a row's sums are formed alike wherever it stands.

    Args:
        given: coordinates beside the inputs, shape (n, k).
    """
    parts = []
    for start in range(0, max(n, 1), _BLOCK):
        rows = min(_BLOCK, n - start)
        x = torch.zeros((_BLOCK, inputs + (0 if given is None else given.shape[1])))
        x[:rows, :inputs] = torch.as_tensor(rng.standard_normal((rows, inputs), dtype=np.float32))
        if given is not None:
            x[:rows, inputs:] = torch.as_tensor(given[start : start + rows])
        parts.append(network(x)[:rows].numpy())
    return np.concatenate(parts)


def averaged(mean: nn.Module, network: nn.Module, decay: float, step: int) -> None:
    """Move the mean of weights, and of what layers keep of batches, towards those after a step.

    Args:
        mean: of the same shape, first as the network was. decay: of the mean, less in the first steps; with 0
            it is the network itself. step: from 0 on.
    """
    decay = min(decay, (1 + step) / (10 + step))
    for kept, now in zip(mean.state_dict().values(), network.state_dict().values(), strict=True):
        kept.copy_(torch.lerp(now, kept, decay) if now.is_floating_point() else now)


def adam(network: nn.Module, rate: float, **more: float) -> torch.optim.Optimizer:
    """The optimiser of a network of a GAN."""
    learnt = [w for w in network.parameters() if w.requires_grad]
    return torch.optim.Adam(learnt, lr=rate, betas=_MOMENTS, **more)


def follow(optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> float:
    """Take a step down the gradient of a loss, which is returned."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return float(loss.detach())


def perceptron(*widths: int, bend: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers from width to width, bent between any two."""
    layers: list[nn.Module] = []
    for pair in pairwise(widths):
        layers += [bend(), nn.Linear(*pair)]
    return nn.Sequential(*layers[1:])


def chain(**parts: nn.Module) -> nn.Sequential:
    """Named networks, each applied to what the one before it made."""
    return nn.Sequential(OrderedDict(parts))


def drawn_codes(mean: torch.Tensor, log_variance: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
    """A code for each row from the normal density that an encoder told of it, shape (n, latent)."""
    return mean + torch.exp(log_variance / 2) * normal(mean.shape, draws, mean.device)


def divergence(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """The terms whose sum over a row is twice ``KL(N(μ, σ²) ‖ N(0, I))``, shape (n, latent)."""
    return mean.square() + log_variance.exp() - 1 - log_variance


class ResidualBlock(nn.Module):
    """``[ReLU(Norm(W x + b)), x]``: the output is concatenated with the input."""

    def __init__(self, width: int, hidden: int, *, by_batch: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden)
        self.norm = nn.BatchNorm1d(hidden) if by_batch else nn.GroupNorm(_GROUPS, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, width) to (n, hidden + width)."""
        return torch.cat([torch.relu(self.norm(self.linear(x))), x], dim=-1)


class ResidualNet(nn.Module):
    """Residual blocks and a last linear layer; each row is computed by itself, unless ``by_batch``.

    Source: the generator of Xu et al. 2019, with groups in place of batches as the thesis has it.
    """

    def __init__(self, width: int, out: int, hidden: int, blocks: int, *, by_batch: bool = False) -> None:
        super().__init__()
        widths = range(width, width + blocks * hidden, hidden)
        self.blocks = nn.ModuleList(ResidualBlock(w, hidden, by_batch=by_batch) for w in widths)
        self.out = nn.Linear(width + blocks * hidden, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, width) to (n, out)."""
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class AskedNet(nn.Module):
    """A residual net that hears what it is asked for in as many dimensions as its layers are wide: with ten
    thousand labels it would have a hundred million weights else."""

    def __init__(self, noise: int, asked: int, out: int, hidden: int, blocks: int) -> None:
        super().__init__()
        self.noise = noise
        self.heard = nn.Linear(asked, hidden)
        self.made = ResidualNet(noise + hidden, out, hidden, blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, noise + asked) to (n, out)."""
        heard = self.heard(x[:, self.noise :])
        return self.made(torch.cat([x[:, : self.noise], heard], dim=1))


class Critic(nn.Module):
    """Three layers with leaks and dropout: a score for each row, which no other row takes part in.

    What dropout keeps is handed in, so that a row's score can be differentiated by itself.
    """

    def __init__(self, width: int, hidden: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.hidden, self.dropout = hidden, dropout
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise((width, hidden, hidden)))
        self.out = nn.Linear(hidden, 1)

    def kept(self, n: int, draws: torch.Generator) -> torch.Tensor:
        """Which units count, and how much, in each layer for each of ``n`` rows; shape (n, 2, hidden)."""
        share = 1 - self.dropout
        return torch.empty((n, _HIDDEN_LAYERS, self.hidden)).bernoulli_(share, generator=draws) / share

    def forward(self, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        """Shape (…, width), and of ``kept`` (…, 2, hidden), to (…, 1)."""
        for i, layer in enumerate(self.layers):
            x = functional.leaky_relu(layer(x), _LEAK) * kept[..., i, :]
        return self.out(x)

    def judged(self, rows: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """Scores of rows under a dropout of their own, shape (n, 1)."""
        return self(rows, self.kept(len(rows), draws).to(rows.device))


class Teachers(nn.Module):
    """Networks of one hidden layer, side by side, which have nothing in common."""

    def __init__(self, count: int, width: int, hidden: int) -> None:
        super().__init__()
        sizes = ((width, hidden), (hidden, 1))
        self.weights = nn.ParameterList(torch.randn(count, a, b) / a**0.5 for a, b in sizes)
        self.biases = nn.ParameterList(torch.zeros(count, 1, b) for _, b in sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Each teacher's rows, shape (teachers, n, width), to how real they look, (teachers, n)."""
        x = functional.leaky_relu(torch.baddbmm(self.biases[0], x, self.weights[0]), _LEAK)
        return torch.baddbmm(self.biases[1], x, self.weights[1])[..., 0]


class VariationalAutoencoder(nn.Module):
    """Encoder to means and log variances side by side, decoder, and a deviation for each number."""

    def __init__(self, layout: RowLayout, hidden: int, latent: int) -> None:
        super().__init__()
        self.encoder = perceptron(layout.width, hidden, hidden, 2 * latent)
        self.decoder = perceptron(latent, hidden, hidden, layout.width)
        self.deviations = nn.Parameter(torch.full((len(layout.numbers),), 0.1))


class TimedNet(nn.Module):
    """A perceptron of the row plus what it hears of the time by its sines and cosines."""

    def __init__(self, width: int, hidden: int, layers: int, levels: int) -> None:
        super().__init__()
        self.levels = levels
        self.row = nn.Linear(width, _TIME)
        self.time = perceptron(_TIME, _TIME, _TIME, bend=nn.SiLU)
        self.out = perceptron(_TIME, *[hidden] * layers, width)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Shape (n, width), and levels 1 … T of shape (n,), to (n, width)."""
        speeds = torch.exp(-np.log(1e4) * torch.arange(_TIME // 2, device=x.device) / (_TIME // 2))
        angles = (1000 * t / self.levels)[:, None] * speeds
        return self.out(self.row(x) + self.time(torch.cat([angles.cos(), angles.sin()], dim=1)))


class LabelSlices(nn.Module):
    """The coordinates of all slices side by side: w in all, of s slices. Nothing here is learnt.

    Attributes:
        places: positions of the coordinates in a row vector, shape (w,).
        owner: which slice each belongs to, shape (w,). sizes: labels of the slice it belongs to, shape (w,).
    """

    places: torch.Tensor
    owner: torch.Tensor
    sizes: torch.Tensor

    def __init__(self, layout: RowLayout) -> None:
        super().__init__()
        widths = torch.tensor([stop - start for start, stop in layout.slices], dtype=torch.long)
        places = [place for start, stop in layout.slices for place in range(start, stop)]
        owner = torch.repeat_interleave(torch.arange(len(widths)), widths)
        self.count = len(widths)
        self.register_buffer("places", torch.tensor(places, dtype=torch.long), persistent=False)
        self.register_buffer("owner", owner, persistent=False)
        self.register_buffer("sizes", widths[owner].float(), persistent=False)
        members = torch.zeros((len(places), self.count))
        members[torch.arange(len(places)), owner] = 1
        self.register_buffer("members", members, persistent=False)

    def sums(self, x: torch.Tensor) -> torch.Tensor:
        """Of finite numbers within each slice: shape (n, w) to (n, s)."""
        return x @ self.members

    def largest(self, x: torch.Tensor) -> torch.Tensor:
        """Within each slice: shape (n, w) to (n, s)."""
        lowest = x.new_full((len(x), self.count), -torch.inf)
        return lowest.scatter_reduce(1, self.owner.expand(len(x), -1), x, "amax")

    def log_softmax(self, scores: torch.Tensor) -> torch.Tensor:
        """Logarithms of chances that sum to 1 within each slice; shape (n, w)."""
        apart = scores - self.largest(scores.detach())[:, self.owner]
        return apart - self.sums(apart.exp()).log()[:, self.owner]

    def drawn(self, scores: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """One label in each slice by the softmax of its scores, one-hot; shape (n, w)."""
        noisy = scores + gumbel(scores, draws)
        return (noisy == self.largest(noisy)[:, self.owner]).to(scores.dtype)


def gumbel(scores: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
    """Gumbel noise for scores: the largest of both together is a draw by their softmax."""
    uniform = torch.rand(scores.shape, generator=draws).clamp(1e-9, 1 - 1e-7).to(scores.device)
    return -torch.log(-torch.log(uniform))


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
        self.perceptron = perceptron(width, hidden, width, bend=nn.GELU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (b, length, width); along the length all attend to all."""
        at = self.before(x)
        x = x + self.attention(at, at, at, need_weights=False)[0]
        return x + self.perceptron(self.between(x))


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
        return self.code(tokens.flatten(1))


class ColumnHeads(nn.Module):
    """A perceptron for each column, from a code to what is told of the column; each row by itself."""

    def __init__(self, layout: RowLayout, settings: AttentionTraining) -> None:
        super().__init__()
        self.layout, self.k, self.slices = layout, settings.mixtures, LabelSlices(layout)
        self.weights = settings.labels_weight, settings.numbers_weight
        widths = [3 * self.k] * len(layout.numbers) + [stop - start for start, stop in layout.slices]
        sizes = settings.width, settings.hidden
        self.perceptrons = nn.ModuleList(perceptron(*sizes, w, bend=nn.GELU) for w in widths)

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
