"""The network that learns to recognise a row by any part of it, and how it is trained.

Torch takes seconds to import: :mod:`synth_audit.encode.embedding` imports this module when it is asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own name for it

from synth_audit.arrays import Floats, Floats32, Integers, Positions
from synth_audit.execution.context import one_thread

if TYPE_CHECKING:
    from synth_audit.encode.embedding import EmbeddingSettings

Weights = Mapping[str, Floats32]

LABEL_WIDTH = 8
"""Coordinates that each label of a discrete column gets before the first layer."""

_BLOCK = 2048
"""Rows placed at a time. Always as many, so that a row's sums are formed alike wherever it stands."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows as the network reads them.

    Attributes:
        numbers: standardised values, NaN where missing, shape (n, a).
        labels: rows of the table of label vectors, shape (n, b).
        masked: for each discrete column, the code that stands for a masked value, shape (b,).
        n_labels: rows of the table of label vectors.
    """

    numbers: Floats
    labels: Integers
    masked: Integers
    n_labels: int

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def n_columns(self) -> int:
        """Columns that can be masked."""
        return int(self.numbers.shape[1] + self.labels.shape[1])

    def take(self, rows: Positions) -> Inputs:
        """The rows at these positions."""
        return Inputs(self.numbers[rows], self.labels[rows], self.masked, self.n_labels)


def fitted(
    inputs: Inputs, settings: EmbeddingSettings, device: str, seeds: np.random.SeedSequence
) -> Weights:
    """Train on these rows until the validation loss stops falling.

    Each row is masked twice, ``1 … n − 1`` of its n columns at a time. With z the unit vectors of the first
    maskings and z' those of the second, the loss is the cross-entropy of ``softmax(z·z'ᵀ / temperature)``
    over a batch, the row's own other masking being the right answer.

    Returns:
        The weights of the epoch with the least validation loss.

    Source: contrastive privacy metrics, sections 4.1 and 5.2.
    """
    with one_thread():
        return _Training(inputs, settings, device, seeds).run()


def placed(inputs: Inputs, weights: Weights, depth: int, device: str) -> Floats:
    """Unit vectors of whole rows, shape (n, m), computed in double precision."""
    parameters = {name: torch.as_tensor(w, device=device).double() for name, w in weights.items()}
    found = [np.empty((0, len(weights["out.bias"])))]
    with one_thread(), torch.no_grad():
        for start in range(0, len(inputs), _BLOCK):
            rows = np.minimum(np.arange(start, start + _BLOCK), len(inputs) - 1)
            batch = _Batch.of(inputs.take(rows), device, torch.float64)
            points = _forward(parameters, batch, batch.nothing_masked(), depth)
            found.append(points.cpu().numpy()[: len(inputs) - start])
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Rows as tensors: values (0 where missing), 1 where missing, labels, and each column's masked code."""

    numbers: torch.Tensor
    absent: torch.Tensor
    labels: torch.Tensor
    masked: torch.Tensor

    @classmethod
    def of(cls, inputs: Inputs, device: str, kind: torch.dtype) -> _Batch:
        numbers = torch.as_tensor(inputs.numbers, device=device).to(kind)
        absent = torch.isnan(numbers)
        labels, masked = (torch.as_tensor(x, device=device) for x in (inputs.labels, inputs.masked))
        return cls(torch.where(absent, 0.0, numbers), absent.to(kind), labels, masked)

    def take(self, rows: torch.Tensor) -> _Batch:
        return _Batch(self.numbers[rows], self.absent[rows], self.labels[rows], self.masked)

    def nothing_masked(self) -> torch.Tensor:
        shape = (len(self.numbers), self.numbers.shape[1] + self.labels.shape[1])
        return torch.ones(shape, dtype=torch.bool, device=self.numbers.device)


def _forward(
    weights: Mapping[str, torch.Tensor],
    batch: _Batch,
    seen: torch.Tensor,
    depth: int,
    dropout: float = 0.0,
    draws: torch.Generator | None = None,
) -> torch.Tensor:
    """Unit vectors of the rows of a batch, of which only the columns marked in ``seen`` are shown."""
    width = batch.numbers.shape[1]
    shown = seen[:, :width].to(batch.numbers.dtype)
    labels = torch.where(seen[:, width:], batch.labels, batch.masked)
    vectors = F.embedding(labels, weights["labels"]).flatten(1)
    x = torch.cat([batch.numbers * shown, batch.absent * shown, 1.0 - shown, vectors], dim=1)
    for layer in range(depth):
        x = F.gelu(F.linear(x, weights[f"{layer}.weight"], weights[f"{layer}.bias"]))
        x = F.layer_norm(x, x.shape[1:], weights[f"{layer}.scale"], weights[f"{layer}.shift"])
        if dropout and draws is not None:
            kept = torch.empty(x.shape, dtype=x.dtype).bernoulli_(1.0 - dropout, generator=draws)
            x = x * kept.div_(1.0 - dropout).to(x.device)
    return F.normalize(F.linear(x, weights["out.weight"], weights["out.bias"]), dim=1)


def _masks(n: int, columns: int, draws: torch.Generator) -> torch.Tensor:
    """For each row, True at the columns that stay visible: 1 … columns − 1 of them, drawn at random."""
    hidden = torch.randint(1, columns, (n, 1), generator=draws)
    order = torch.rand((n, columns), generator=draws).argsort(dim=1, stable=True)
    return order.argsort(dim=1, stable=True) >= hidden


def _start(inputs: Inputs, settings: EmbeddingSettings, rng: np.random.Generator) -> dict[str, Any]:
    """Weights to begin with: normal, of variance one over the number of inputs."""
    numbers, labels = inputs.numbers.shape[1], inputs.labels.shape[1]
    sizes = [3 * numbers + LABEL_WIDTH * labels, *[settings.width] * settings.depth]
    made = {"labels": rng.normal(size=(inputs.n_labels, LABEL_WIDTH))}
    for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        made[f"{layer}.weight"] = rng.normal(size=(fan_out, fan_in)) / np.sqrt(fan_in)
        made[f"{layer}.bias"] = np.zeros(fan_out)
        made[f"{layer}.scale"], made[f"{layer}.shift"] = np.ones(fan_out), np.zeros(fan_out)
    m = settings.dimension_for(inputs.n_columns)
    made["out.weight"], made["out.bias"] = rng.normal(size=(m, sizes[-1])) / np.sqrt(sizes[-1]), np.zeros(m)
    return {name: w.astype(np.float32) for name, w in made.items()}


class _Training:
    """One run of training; its state lives no longer than :func:`fitted`.

    Everything random is drawn on the processor, whatever the device: it then moves last digits alone.
    """

    def __init__(
        self, inputs: Inputs, settings: EmbeddingSettings, device: str, seeds: np.random.SeedSequence
    ) -> None:
        start, split, *streams = seeds.spawn(4)
        self.settings, self.columns, self.steps, self.device = settings, inputs.n_columns, 0, device
        first = _start(inputs, settings, np.random.default_rng(start))
        self.weights = {k: torch.tensor(w, device=device, requires_grad=True) for k, w in first.items()}
        self.optimiser = torch.optim.Adam(self.weights.values(), lr=settings.learning_rate)
        order = np.random.default_rng(split).permutation(len(inputs))
        n_validation = max(2, round(settings.validation_share * len(inputs)))
        parts = (order[n_validation:], order[:n_validation])
        self.rows, self.held_out = (_Batch.of(inputs.take(p), device, torch.float32) for p in parts)
        self.draws, fixed = (
            torch.Generator().manual_seed(int(s.generate_state(1, np.uint64)[0] >> 1)) for s in streams
        )
        self.fixed_masks = [_masks(n_validation, self.columns, fixed).to(device) for _ in range(2)]

    def run(self) -> Weights:
        """Alternate epochs and validation; the best weights are kept, whenever they were reached."""
        recent: deque[float] = deque(maxlen=self.settings.window)
        least, least_mean, since, best = float("inf"), float("inf"), 0, self._copy()
        for _ in range(self.settings.max_epochs):
            self._epoch()
            loss = self.validation_loss()
            recent.append(loss)
            if loss < least:
                least, best = loss, self._copy()
            mean = sum(recent) / len(recent)
            since = 0 if mean < least_mean else since + 1
            least_mean = min(least_mean, mean)
            if since >= self.settings.patience or self.steps >= self.settings.max_steps:
                break
        return best

    def _copy(self) -> Weights:
        return {name: w.detach().cpu().numpy().copy() for name, w in self.weights.items()}

    def _epoch(self) -> None:
        n = len(self.rows.numbers)
        size = min(self.settings.batch, n)
        order = torch.randperm(n, generator=self.draws).to(self.device)
        for start in range(0, n - size + 1, size):  # a last, smaller batch would be an easier question
            if self.steps >= self.settings.max_steps:
                return
            batch = self.rows.take(order[start : start + size])
            masks = [_masks(size, self.columns, self.draws).to(self.device) for _ in range(2)]
            self.optimiser.zero_grad()
            self._loss(batch, masks, self.settings.dropout).backward()
            self.optimiser.step()
            self.steps += 1

    def validation_loss(self) -> float:
        """Mean loss over the rows kept for validation, always with the same masks."""
        n, size = len(self.held_out.numbers), self.settings.batch
        total = 0.0
        with torch.no_grad():
            for start in range(0, n, size):
                rows = torch.arange(start, min(start + size, n), device=self.device)
                loss = self._loss(self.held_out.take(rows), [m[rows] for m in self.fixed_masks])
                total += float(loss) * len(rows)
        return total / n

    def _loss(self, batch: _Batch, masks: list[torch.Tensor], dropout: float = 0.0) -> torch.Tensor:
        depth = self.settings.depth
        one, other = (_forward(self.weights, batch, m, depth, dropout, self.draws) for m in masks)
        right = torch.arange(len(one), device=one.device)
        return F.cross_entropy((one / self.settings.temperature) @ other.T, right)
