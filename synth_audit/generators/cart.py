"""Column after column, each drawn from the leaf of a tree on those before it (synthpop's idea)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.generator import FitContext, GeneratorInfo
from synth_audit.core.schema import Schema
from synth_audit.core.table import Table
from synth_audit.encoding.coded_columns import CodedColumns, publicly_known
from synth_audit.kernels.cart import LeafDraws, fitted_draws

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
        plain = self.columns.plain() | {"gaps": [*self.gaps], "values": [*self.values]}
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
        gaps = {j: LeafDraws.from_arrays(f"gap{j}", arrays) for j in plain["gaps"]}
        values = {j: LeafDraws.from_arrays(f"value{j}", arrays) for j in plain["values"]}
        return cls(CodedColumns.from_plain(plain), gaps, values)


@dataclass(frozen=True, kw_only=True)
class Cart:
    """Draw each column by a tree on those before it: P(x) = Π_j P(x_j | leaf of x_1 … x_{j−1}).

    The value of a random training row of the leaf is taken. Whether a value is missing is drawn first, by a
    tree of its own. Labels of a predictor are put in order by the column that is drawn.

    Smoothed, a value that fewer than ``minimum_leaf`` people have does not leave as it is. Such a number is
    drawn between the neighbours that it has in its leaf, and among at least as many people of the column;
    such a label is not drawn at all, unless the plan declares it. A column in which nothing is left to draw
    stays empty.

    Attributes:
        order: columns that are drawn first, in this order; the others follow as in the table.
        minimum_leaf: people of a leaf at least; somebody with many rows counts once.
        smooth: draw nothing exactly that fewer people have; off, as published.

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
        gaps: dict[int, LeafDraws] = {}
        values: dict[int, LeafDraws] = {}
        for done, j in enumerate(visit):
            context.deadline.check()
            context.progress("trees", done, len(visit))

            def grown(target: Floats, on: Bools, classes: bool) -> LeafDraws:
                return fitted_draws(
                    rows[on],
                    target[on],
                    given=[*values],
                    sizes=columns.sizes,
                    classes=classes,
                    weights=weights[on],
                    least=self.minimum_leaf,
                    smooth=self.smooth,
                    seed=int(context.rng.integers(2**31)),
                )

            missing = np.isnan(rows[:, j])
            there = self._may_leave(columns, rows[:, j], weights, j)
            if not there.any():
                continue
            if missing.any():
                gaps[j] = grown(missing.astype(np.float64), np.ones(len(rows), dtype=bool), classes=True)
            values[j] = grown(rows[:, j], there, classes=columns.labels[j] is not None)
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

    def _may_leave(self, columns: CodedColumns, values: Floats, weights: Floats, j: int) -> Bools:
        """Rows whose value may be drawn: it is there, and no label of too few people."""
        there = ~np.isnan(values)
        if columns.labels[j] is None or not self.smooth or publicly_known(columns.schema.columns[j]):
            return there
        codes = values[there].astype(np.intp)
        people = np.bincount(codes, weights=weights[there], minlength=1)
        there[there] = people[codes] >= self.minimum_leaf
        return there
