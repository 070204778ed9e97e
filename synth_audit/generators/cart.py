"""Column after column, each drawn from the leaf of a tree on those before it (synthpop's idea)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.generator import FitContext, GeneratorInfo
from synth_audit.core.kind_distribution import DistributionFunction
from synth_audit.core.rare_labels import may_leave
from synth_audit.core.schema import Column, Schema
from synth_audit.core.table import Table
from synth_audit.encoding.coded_columns import CodedColumns
from synth_audit.encoding.margin_json import margin_from_plain, margin_to_plain
from synth_audit.kernels.cart import LeafDraws, fitted_draws
from synth_audit.kernels.number_smoothing import rare_numbers

Margining: TypeAlias = Callable[[Floats], DistributionFunction]

_NO_NOISE = "values are drawn from leaves of trees that are grown on train without noise"
_COLUMNS, _TREES = "model.json", "trees.npz"


@dataclass(frozen=True, eq=False)
class CartModel:
    """The trees, and what their numbers stand for.

    Attributes:
        gaps: by column, whether a value is missing. values: by column, which it is, in the order of the
            visit; a column without values has none.
    """

    columns: CodedColumns = field(repr=False)
    gaps: dict[int, LeafDraws] = field(repr=False)
    values: dict[int, LeafDraws] = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        rows = np.full((n, len(self.columns.labels)), np.nan)
        for column, draws in self.values.items():
            there = np.ones(n, dtype=bool)
            if column in self.gaps:
                there = self.gaps[column].drawn(rows, rng) == 0
            rows[there, column] = draws.drawn(rows[there], rng)
        return self.columns.table(rows)

    def save(self, folder: Path) -> None:
        """Write what the columns hold as ``model.json``, the trees as ``trees.npz``."""
        margins = {j: draws.margin for j, draws in self.values.items() if draws.margin is not None}
        plain = self.columns.plain() | {
            "gaps": [*self.gaps],
            "values": [*self.values],
            "margins": {str(j): margin_to_plain(margin) for j, margin in margins.items()},
        }
        (folder / _COLUMNS).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")
        arrays: dict[str, Floats] = {}
        for name, draws in (("gap", self.gaps), ("value", self.values)):
            for column, each in draws.items():
                arrays |= each.arrays(f"{name}{column}")
        np.savez(folder / _TREES, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, folder: Path) -> CartModel:
        """The model that was saved there."""
        plain = json.loads((folder / _COLUMNS).read_text(encoding="utf-8"))
        with np.load(folder / _TREES, allow_pickle=False) as file:
            arrays = dict(file)
        margins = {int(j): margin_from_plain(margin) for j, margin in plain["margins"].items()}
        gaps = {j: LeafDraws.from_arrays(f"gap{j}", arrays, None) for j in plain["gaps"]}
        values = {j: LeafDraws.from_arrays(f"value{j}", arrays, margins.get(j)) for j in plain["values"]}
        return cls(CodedColumns.from_plain(plain), gaps, values)


@dataclass(frozen=True, kw_only=True)
class Cart:
    """Draw each column by a tree on those before it: P(x) = Π_j P(x_j | leaf of x_1 … x_{j−1}).

    The value of a random training row of the leaf is taken. Whether a value is missing is drawn first, by a
    tree of its own. Labels of a predictor are put in order by the column that is drawn.

    Smoothed, a value that fewer than ``minimum_leaf`` people have does not leave as it is: a number is
    drawn from a kernel density of those in its leaf, and a label not at all, unless the plan declares it.
    A column in which nothing is left to draw stays empty. Nor is a leaf split for less than 2 ln(n) / n
    of the impurity of all, twice the price of a parameter by the BIC since the best of many splits is
    taken: what chance explains is true of the training rows alone, and shows who they are.

    Attributes:
        order: columns that are drawn first, in this order; the others follow as in the table.
        minimum_leaf: people of a leaf at least; somebody with many rows counts once.
        smooth: draw nothing exactly that fewer people have, and fit no noise; off, as published.

    Source: Reiter 2005; Nowok, Raab & Dibben 2016 (synthpop, with leaves of 5 rows).
    """

    order: tuple[str, ...] = ()
    minimum_leaf: int = 20
    smooth: bool = True
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="CART",
        summary="Each column from the leaves of a tree on those before it; no privacy guarantee.",
        source="Reiter 2005; Nowok et al. 2016",
    )

    def __post_init__(self) -> None:
        if self.minimum_leaf < 1:
            raise PlanError(
                "a leaf holds nobody", where="generator.minimum_leaf", expected="1 person or more"
            )
        if len(set(self.order)) < len(self.order):
            raise PlanError(
                "a column is drawn twice", where="generator.order", expected="each column once at most"
            )

    @property
    def minimum_people(self) -> int:
        """Every label is seen; which are drawn, the leaves decide."""
        return 1

    def fit(self, train: Table, context: FitContext) -> CartModel:
        """Grow one or two trees for each column.

        Raises:
            DataError: the order names a column that is not there.
        """
        context.accountant.void(_NO_NOISE)
        train = train.released_only()
        visit = self._visit(train.schema)
        columns, rows = CodedColumns.of(train)
        weights = context.weights(train.n_rows)
        n = float(weights.sum())
        gain = 2 * np.log(n) / n if self.smooth and n > 1 else 0.0
        gaps: dict[int, LeafDraws] = {}
        values: dict[int, LeafDraws] = {}
        for done, j in enumerate(visit):
            context.deadline.check()
            context.progress("trees", done, len(visit))
            column, numbers = train.schema.columns[j], columns.labels[j] is None

            def grown(target: Floats, on: Bools, classes: bool, margin: Margining | None = None) -> LeafDraws:
                return fitted_draws(
                    rows[on],
                    target[on],
                    given=[*values],
                    sizes=columns.sizes,
                    classes=classes,
                    weights=weights[on],
                    least=self.minimum_leaf,
                    gain=gain,
                    margin=margin,
                    seed=int(context.rng.integers(2**31)),
                )

            missing = np.isnan(rows[:, j])
            there = ~missing
            if self.smooth:
                there = self._may_leave(column, rows[:, j], weights, columns.sizes[j])
            if not there.any():
                continue
            if missing.any():
                gaps[j] = grown(missing.astype(np.float64), np.ones(len(rows), dtype=bool), classes=True)
            margin = partial(column.kind.margin, column, method="kde") if self.smooth and numbers else None
            values[j] = grown(rows[:, j], there, classes=not numbers, margin=margin)
        return CartModel(columns, gaps, values)

    def load(self, folder: Path) -> CartModel:
        """The model that was saved there."""
        return CartModel.load(folder)

    def _visit(self, schema: Schema) -> list[int]:
        unknown = [name for name in self.order if name not in schema.names]
        if unknown:
            raise DataError(
                f"the order names {', '.join(map(repr, unknown))}, which train has not",
                where="generator.order",
                expected="columns that may be released",
                fix="name some of them in the order wanted; the others follow",
            )
        first = [schema.names.index(name) for name in self.order]
        return first + [j for j in range(len(schema.names)) if j not in first]

    def _may_leave(self, column: Column, values: Floats, weights: Floats, size: int | None) -> Bools:
        """Rows whose value may be drawn, or smoothed: not those of labels that too few people have, nor of
        numbers where too few have any but the common ones."""
        there = ~np.isnan(values)
        if size is not None:
            stays = may_leave(column, values, weights, size, self.minimum_leaf)
            there[there] = stays[values[there].astype(np.intp)]
            return there
        rare = rare_numbers(values[there], weights[there], self.minimum_leaf)
        if weights[there][rare].sum() < self.minimum_leaf:
            there[there] = ~rare
        return there
