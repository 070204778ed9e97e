"""A model that draws row vectors with a network and reads them back as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from synth_audit.core.arrays import Floats32
from synth_audit.core.generator import FitContext
from synth_audit.core.schema_json import schema_from_plain, schema_to_plain
from synth_audit.core.table import Table
from synth_audit.encoding.transformer import Transformer, on_declared, on_train
from synth_audit.kernels.row_layout import RowLayout

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
