"""Every column drawn on its own: the floor of usefulness."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from synth_audit.core.arrays import Floats, Labels
from synth_audit.core.generator import FitContext, GeneratorInfo
from synth_audit.core.schema import Schema
from synth_audit.core.schema_json import schema_from_plain, schema_to_plain
from synth_audit.core.table import Table, assemble
from synth_audit.generators._margin_json import margin_from_plain, margin_to_plain
from synth_audit.generators._numeric_margin import MarginMethod, numeric_margin
from synth_audit.kernels.margins import Margin

_NO_NOISE = "the column distributions are fitted to train without noise"
_FILE = "model.json"


@dataclass(frozen=True, eq=False)
class _Categories:
    """Labels, None for missing, with their frequencies, each of shape (k,)."""

    labels: Labels
    shares: Floats

    def sample(self, n: int, rng: np.random.Generator) -> Labels:
        return self.labels[rng.choice(len(self.labels), size=n, p=self.shares)]

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"labels": self.labels.tolist(), "shares": self.shares.tolist()}


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A margin, None when every value is missing, and the share of missing values."""

    margin: Margin | None
    missing: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        levels, gaps = rng.random(n), rng.random(n) < self.missing
        values = np.full(n, np.nan) if self.margin is None else self.margin.quantile(levels)
        return np.where(gaps, np.nan, values)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        margin = None if self.margin is None else margin_to_plain(self.margin)
        return {"margin": margin, "missing": self.missing}


@dataclass(frozen=True, eq=False)
class IndependentModel:
    """The fitted distribution of each column.

    Attributes:
        schema: the columns of the synthetic table.
        columns: the distributions by column name.
    """

    schema: Schema = field(repr=False)
    columns: Mapping[str, _Categories | _Numbers] = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows, each column on its own."""
        return assemble(self.schema, {name: column.sample(n, rng) for name, column in self.columns.items()})

    def save(self, folder: Path) -> None:
        """Write the distributions as ``model.json``."""
        columns = {name: column.plain() for name, column in self.columns.items()}
        plain = {"schema": schema_to_plain(self.schema), "columns": columns}
        (folder / _FILE).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Independent:
    """Draw each column from its own distribution, so that no relation between columns survives.

    P(x) = Π_j P_j(x_j). Labels keep their frequencies, missing values their rate; numbers come from a
    smooth density and are not copied, apart from values that many rows share.

    Attributes:
        margins: ``kde`` for a kernel density, ``empirical`` for the sample's own distribution, whose
            extremes recur.
    """

    margins: MarginMethod = "kde"
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Independent columns",
        summary="Each column from its own distribution; shows what is left when all relations are cut.",
        cost="instant",
    )

    def fit(self, train: Table, context: FitContext) -> IndependentModel:
        """Learn the distribution of every column of ``train`` but identifiers."""
        context.accountant.void(_NO_NOISE)
        train = train.released_only()
        return IndependentModel(train.schema, {name: self._column(train, name) for name in train.names})

    def load(self, folder: Path) -> IndependentModel:
        """The model that was saved there."""
        plain = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        columns = {name: _from_plain(column) for name, column in plain["columns"].items()}
        return IndependentModel(schema_from_plain(plain["schema"]), columns)

    def _column(self, train: Table, name: str) -> _Categories | _Numbers:
        column = train.schema[name]
        if not column.kind.numeric:
            return _categories(train.labels(name))
        values = train.numbers(name)
        gaps = np.isnan(values)
        margin = None if gaps.all() else numeric_margin(column, values, self.margins)
        return _Numbers(margin, float(gaps.mean()))


def _from_plain(plain: Mapping[str, Any]) -> _Categories | _Numbers:
    if "labels" in plain:
        return _Categories(np.array(plain["labels"], dtype=object), np.array(plain["shares"]))
    margin = None if plain["margin"] is None else margin_from_plain(plain["margin"])
    return _Numbers(margin, plain["missing"])


def _categories(labels: Labels) -> _Categories:
    missing = np.array([label is None for label in labels])
    known, counts = np.unique(labels[~missing].astype(str), return_counts=True)
    values = np.array([*known.tolist(), None], dtype=object)
    return _Categories(values, np.append(counts, missing.sum()) / len(labels))
