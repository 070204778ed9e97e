"""Generators by networks: settings, the loop that trains them, and the model that reads vectors as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.arrays import Floats32, Positions
from synth_audit.errors import PlanError
from synth_audit.generators._deep.rows import OfNumbers, Transformer, on_declared, on_train
from synth_audit.generators._deep.transforms import ModeTransform, RowLayout
from synth_audit.plugins.generator import FitContext
from synth_audit.run.context import torch_device
from synth_audit.table.schema import schema_from_plain, schema_to_plain
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Kept, Loop


Weights = Mapping[str, Floats32]

Draw = Callable[[Weights, RowLayout, int, np.random.Generator], Floats32]
"""Row vectors from weights: shape (n, width)."""

_DRAWN = 40_000
"""Rows that are drawn to see how far margins are off."""

_COLUMNS, _WEIGHTS = "model.json", "weights.npz"


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """Weights, how rows are drawn with them, and what the vectors mean.

    Attributes:
        draw: of the generator that fitted it.
    """

    transformer: Transformer = field(repr=False)
    weights: Weights = field(repr=False)
    draw: Draw = field(repr=False)

    @classmethod
    def calibrated(
        cls, transformer: Transformer, weights: Weights, draw: Draw, rng: np.random.Generator
    ) -> NetworkModel:
        """One whose rows have the margins that the transformer knows, as far as it knows any."""
        if transformer.knows_margins:
            drawn = draw(weights, transformer.layout, _DRAWN, rng)
            transformer = transformer.calibrated(drawn)
        return cls(transformer, weights, draw)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        layout = self.transformer.layout
        if not layout.width:  # no column can differ
            return self.transformer.decode(np.zeros((n, 0), dtype=np.float32))
        return self.transformer.decode(self.draw(self.weights, layout, n, rng))

    def save(self, folder: Path) -> None:
        """Write columns as ``model.json`` and weights as ``weights.npz``."""
        plain = {
            "schema": schema_to_plain(self.transformer.schema),
            "columns": self.transformer.plain(),
        }
        (folder / _COLUMNS).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")
        np.savez(folder / _WEIGHTS, allow_pickle=False, **self.weights)

    @classmethod
    def load(cls, folder: Path, draw: Draw) -> NetworkModel:
        """The model that was saved there."""
        plain = json.loads((folder / _COLUMNS).read_text(encoding="utf-8"))
        schema = schema_from_plain(plain["schema"])
        with np.load(folder / _WEIGHTS, allow_pickle=False) as weights:
            return cls(Transformer.from_plain(schema, plain["columns"]), dict(weights), draw)


def transformer_for(train: Table, context: FitContext) -> Transformer:
    """How rows become vectors, and the accountant told where bounds and labels come from.

    Under a budget what the plan declares is all that is used; where it leaves something out, that is read off
    train and no guarantee follows.

    Raises:
        DataError: a column holds free text.
    """
    if context.accountant.budget is None:
        return on_train(train)
    context.accountant.domain("inferred" if context.public_domain.unknown else "declared")
    return on_declared(train, context.public_domain)


def training_loop(
    context: FitContext,
    what: str,
    steps: int,
    sample: Callable[[], Positions],
    *known: object,
    **moved: Kept,
) -> Loop:
    """So many steps; where nothing private depends on it, a training that is broken off goes on from its
    checkpoint.

    Args:
        what: is trained, in a word or two. sample: positions of the rows of the next batch.
        known: what the batches follow from beside draws.
        moved: what ``sample`` moves beside the context's draws.
    """
    from synth_audit.generators._deep.training import Loop, Resumption

    def told(done: int, loss: float) -> None:
        context.trained(what, done, steps, loss)

    def said(text: str) -> None:
        context.progress(f"{what}: {text}", 0, steps)

    folder = context.resumable
    if folder is None:
        return Loop(steps, sample, told)
    parts = {"rng": context.rng, "course": context.course, **moved}
    return Loop(steps, sample, told, Resumption(folder, parts, said, known))


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
