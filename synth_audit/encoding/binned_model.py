"""A model that draws cells of columns and reads them back as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.schema_json import schema_from_plain, schema_to_plain
from synth_audit.core.table import Table
from synth_audit.encoding.binning import Binning
from synth_audit.kernels.ancestral import Conditional, drawn_rows
from synth_audit.kernels.cell_merging import CellMerging

_COLUMNS, _TABLES = "model.json", "tables.npz"


@dataclass(frozen=True, eq=False)
class BinnedModel:
    """Cells of columns, and how rows of them are drawn.

    Attributes:
        steps: every column is new in one of them.
        merging: of cells that the steps do not tell apart.
    """

    binning: Binning = field(repr=False)
    steps: Sequence[Conditional] = field(repr=False)
    merging: CellMerging | None = field(default=None, repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        codes = drawn_rows(self.steps, n, rng)
        return self.binning.table(codes if self.merging is None else self.merging.drawn(codes, rng), rng)

    def save(self, folder: Path) -> None:
        """Write columns and steps as ``model.json``, the weights of the steps as ``tables.npz``."""
        plain = {
            "schema": schema_to_plain(self.binning.schema),
            "columns": self.binning.plain(),
            "steps": [{"given": step.given, "new": step.new} for step in self.steps],
        }
        (folder / _COLUMNS).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")
        tables: dict[str, Codes | Floats] = {f"step{i}": step.weights for i, step in enumerate(self.steps)}
        if self.merging is not None:
            tables |= {f"merged{j}": cells for j, cells in enumerate(self.merging.merged)}
            tables |= {f"weights{j}": weights for j, weights in enumerate(self.merging.weights)}
        np.savez(folder / _TABLES, allow_pickle=False, **tables)

    @classmethod
    def load(cls, folder: Path) -> BinnedModel:
        """The model that was saved there."""
        plain = json.loads((folder / _COLUMNS).read_text(encoding="utf-8"))
        binning = Binning.from_plain(schema_from_plain(plain["schema"]), plain["columns"])
        with np.load(folder / _TABLES, allow_pickle=False) as tables:
            steps = tuple(
                Conditional(tuple(step["given"]), tuple(step["new"]), tables[f"step{i}"])
                for i, step in enumerate(plain["steps"])
            )
            merging = _merging(tables, len(binning.columns)) if "merged0" in tables else None
        return cls(binning, steps, merging)


def _merging(tables: Mapping[str, Any], columns: int) -> CellMerging:
    merged, weights = (tuple(tables[f"{name}{j}"] for j in range(columns)) for name in ("merged", "weights"))
    return CellMerging(merged, weights)
