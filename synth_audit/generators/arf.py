"""Adversarial random forests: a mixture over leaves in which columns are independent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext, GeneratorInfo
from synth_audit.core.kind_distribution import DistributionFunction
from synth_audit.core.rare_labels import may_leave
from synth_audit.core.table import Table
from synth_audit.encoding.coded_columns import CodedColumns
from synth_audit.encoding.margin_json import margin_from_plain, margin_to_plain
from synth_audit.kernels.adversarial_forest import (
    GAP,
    ForestSettings,
    LeafMixture,
    adversarial_forest,
    leaf_mixture,
)
from synth_audit.kernels.number_smoothing import once_for_each_person

_NO_NOISE = "the leaves and what they hold are learnt from train without noise"
_COLUMNS, _LEAVES = "model.json", "leaves.npz"


@dataclass(frozen=True, eq=False)
class ArfModel:
    """The leaves, and what their levels and codes stand for.

    Attributes:
        margins: of the columns of numbers that enough people have, by position.
    """

    columns: CodedColumns = field(repr=False)
    margins: Mapping[int, DistributionFunction] = field(repr=False)
    mixture: LeafMixture = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        drawn = self.mixture.drawn(n, rng)
        for j, margin in self.margins.items():
            known = ~np.isnan(drawn[:, j])
            drawn[known, j] = margin.quantile(drawn[known, j])
        return self.columns.table(drawn)

    def save(self, folder: Path) -> None:
        """Write what the columns hold as ``model.json``, the leaves as ``leaves.npz``."""
        margins = {str(j): margin_to_plain(margin) for j, margin in self.margins.items()}
        (folder / _COLUMNS).write_text(
            json.dumps(self.columns.plain() | {"margins": margins}, allow_nan=False), encoding="utf-8"
        )
        arrays = {f.name: getattr(self.mixture, f.name) for f in fields(LeafMixture) if f.name != "shares"}
        shares = {f"shares{j}": table for j, table in enumerate(self.mixture.shares) if table is not None}
        np.savez(folder / _LEAVES, allow_pickle=False, **arrays, **shares)

    @classmethod
    def load(cls, folder: Path) -> ArfModel:
        """The model that was saved there."""
        plain = json.loads((folder / _COLUMNS).read_text(encoding="utf-8"))
        columns = CodedColumns.from_plain(plain)
        with np.load(folder / _LEAVES, allow_pickle=False) as file:
            arrays = dict(file)
        shares = tuple(arrays.pop(f"shares{j}", None) for j in range(len(columns.labels)))
        margins = {int(j): margin_from_plain(margin) for j, margin in plain["margins"].items()}
        return cls(columns, margins, LeafMixture(**arrays, shares=shares))


@dataclass(frozen=True, kw_only=True)
class Arf:
    """A random forest tells real rows from made ones, which are drawn from its leaves, until it cannot.

    P(x) = mean over trees of Σ_leaf P(leaf) Π_j P_j(x_j | leaf): labels by their frequencies, numbers by a
    normal distribution cut off at the ends of the leaf, missing values by their share. Numbers are told by
    their level under a kernel density of the column, so that tails and peaks are the column's own and no
    value of fewer than ``minimum_leaf`` people is copied. A label of fewer is drawn only if the plan declares
    it, and a column of numbers that fewer have stays empty.

    Attributes:
        trees: of a forest.
        minimum_leaf: real people of a leaf at least; somebody with many rows counts once.
        tolerance: training ends when no more than half of the rows, and this share, are told right.
        rounds: forests at most.

    Source: Watson, Blesch, Kapar & Wright 2023.
    """

    trees: int = 20
    minimum_leaf: int = 20
    tolerance: float = 0.0
    rounds: int = 10
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Adversarial random forest",
        summary="Mixture over the leaves of a forest that cannot tell its rows apart; no privacy guarantee.",
        source="Watson et al. 2023",
        trial={"trees": 4, "rounds": 2},
    )

    def __post_init__(self) -> None:
        for name in ("trees", "minimum_leaf", "rounds"):
            if getattr(self, name) < 1:
                raise PlanError(f"{name} is too small", where=f"generator.{name}", expected="1 or more")
        if not 0 <= self.tolerance <= 0.5:
            raise PlanError(
                "the tolerance is no share of rows", where="generator.tolerance", expected="0 to 0.5"
            )

    @property
    def minimum_people(self) -> int:
        """Every label is seen; which are drawn, the leaves decide."""
        return 1

    def fit(self, train: Table, context: FitContext) -> ArfModel:
        """Grow forests until one is fooled."""
        context.accountant.void(_NO_NOISE)
        train = train.released_only()
        columns, values = CodedColumns.of(train)
        weights = context.weights(train.n_rows)
        margins = self._margins(columns, values, weights)
        rows = _levels(values, margins, columns.sizes)
        settings = ForestSettings(self.trees, self.minimum_leaf, self.tolerance, self.rounds)

        def told(done: int, accuracy: float) -> None:
            context.deadline.check()
            context.progress(f"forests, {accuracy:.1%} told right", done, self.rounds)

        trees = adversarial_forest(rows, weights, settings, context.rng, told)
        labels = [
            None if size is None else may_leave(column, values[:, j], weights, size, self.minimum_leaf)
            for j, (column, size) in enumerate(zip(columns.schema, columns.sizes, strict=True))
        ]
        return ArfModel(columns, margins, leaf_mixture(trees, rows, weights, labels, self.minimum_leaf))

    def load(self, folder: Path) -> ArfModel:
        """The model that was saved there."""
        return ArfModel.load(folder)

    def _margins(
        self, columns: CodedColumns, values: Floats, weights: Floats
    ) -> dict[int, DistributionFunction]:
        """Of each column of numbers that enough people have a value of."""
        found = {}
        for j, column in enumerate(columns.schema):
            known = ~np.isnan(values[:, j])
            if columns.labels[j] is None and weights[known].sum() >= self.minimum_leaf - 1e-9:
                numbers = once_for_each_person(values[known, j], weights[known], self.minimum_leaf)
                found[j] = column.kind.margin(column, numbers, "kde")
        return found


def _levels(
    values: Floats, margins: Mapping[int, DistributionFunction], sizes: Sequence[int | None]
) -> Floats:
    """Numbers as the middle of what the distribution function gives them; labels stay codes.

    :data:`GAP` where missing, and in all of a column of numbers without a distribution function.
    """
    found = values.copy()
    for j, size in enumerate(sizes):
        if size is None:
            below, at = margins[j].interval(values[:, j]) if j in margins else (np.nan, np.nan)
            found[:, j] = (below + at) / 2
    return np.where(np.isnan(found), GAP, found)
