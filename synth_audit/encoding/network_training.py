"""What generators by networks without protection share: epochs, settings that make sense, and the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.core.arrays import Floats32, Positions
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext
from synth_audit.core.table import Table
from synth_audit.encoding.column_transforms import ModeTransform
from synth_audit.encoding.network_model import Draw, NetworkModel, Weights
from synth_audit.encoding.torch_device import torch_device
from synth_audit.encoding.training_loop import training_loop
from synth_audit.encoding.transformer import OfNumbers, on_train
from synth_audit.kernels.row_layout import RowLayout

if TYPE_CHECKING:
    from synth_audit.kernels.deep.training import Loop

NO_NOISE = "the networks are trained on the rows without clipping and noise"

_STEPS_EACH, _FEWEST = 8, 50
"""Steps that an epoch has at least, where so many rows are in each batch."""

Fit = Callable[[Floats32, RowLayout, "Loop", np.random.Generator, str], Weights]


def check_positive(counts: Mapping[str, int], sizes: Mapping[str, float]) -> None:
    """Refuse settings that make no sense.

    Raises:
        PlanError: a count is below 1, or a size is not positive and finite.
    """
    for name, count in counts.items():
        if count < 1:
            raise PlanError(f"{name} is {count}", where=f"generator.{name}", expected="1 or more")
    for name, size in sizes.items():
        if not 0 < size < float("inf"):
            raise PlanError(f"{name} is {size:g}", where=f"generator.{name}", expected="above 0")


def fit_unprotected(
    train: Table,
    context: FitContext,
    *,
    epochs: int = 0,
    steps: int = 0,
    batch: int,
    fit: Fit,
    draw: Draw,
    of_numbers: OfNumbers | None = None,
) -> NetworkModel:
    """Train on shuffled batches.

    The accountant hears that nothing can be claimed.

    Args:
        epochs, steps: how often every row is seen, or how many batches are; one of the two. Epochs of small
            tables have smaller batches: too few steps would be taken else to learn anything.
        of_numbers: how numbers are read; None for by their modes.
    """
    device = torch_device(context.device, "this generator")
    context.accountant.void(NO_NOISE)
    train = train.released_only()
    transformer = on_train(train, of_numbers or _by_modes(context.rng))
    layout, size = transformer.layout, min(batch, train.n_rows)
    if not steps:
        size = min(size, max(_FEWEST, train.n_rows // _STEPS_EACH))
        steps = epochs * max(1, train.n_rows // size)

    weights: Weights = {}
    if layout.width:
        rows = transformer.encode(train, context.rng)
        sample = _Shuffled(train.n_rows, size, context.rng)
        loop = training_loop(context, "train", steps, sample, order=sample)
        weights = fit(rows, layout, loop, context.rng, device)
    return NetworkModel(transformer, weights, draw)


def _by_modes(rng: np.random.Generator) -> OfNumbers:
    """Numbers within their modes, which are found by these draws."""
    return lambda name, values, ends: ModeTransform.of(name, values, ends, rng)


class _Shuffled:
    """Batches of equal size; every row once before any a second time."""

    def __init__(self, n: int, size: int, rng: np.random.Generator) -> None:
        self.n, self.size, self.rng = n, size, rng
        self.order, self.place = rng.permutation(n), 0

    def state(self) -> dict[str, Positions]:
        """The order of rows, how many of them were drawn, and how many are at a time."""
        counts = {"place": self.place, "size": self.size}
        return {"order": self.order, **{name: np.array(n, dtype=np.intp) for name, n in counts.items()}}

    def restore(self, state: Mapping[str, Positions]) -> None:
        """Be as when ``state`` was taken."""
        self.order, self.place = state["order"], int(state["place"])

    def __call__(self) -> Positions:
        if self.place + self.size > self.n:
            self.order, self.place = self.rng.permutation(self.n), 0
        self.place += self.size
        return self.order[self.place - self.size : self.place]
