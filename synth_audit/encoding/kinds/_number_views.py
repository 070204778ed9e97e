"""What statistics, models and attackers ask of kinds of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Floats, Positions, Target
from synth_audit.core.kind import Bounds
from synth_audit.core.kind_distribution import MarginMethod
from synth_audit.core.resolution import ValueGrid
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding import predictors, shared_cells
from synth_audit.encoding.anchored_cells import NumberCells
from synth_audit.encoding.codings import NumberCoding
from synth_audit.encoding.groupings import NumberGroups
from synth_audit.encoding.kinds._number_margin import number_margin
from synth_audit.encoding.rank_scale import NumberScale
from synth_audit.encoding.univariate import NumbersWithGaps
from synth_audit.kernels.games import outlying
from synth_audit.kernels.margins import Margin
from synth_audit.kernels.secret_guesses import GuessTolerance

_EDGE_DIGITS = 2
"""Digits of an edge beyond the first one of the span of all edges: more would not be read."""

_SAME = 1e-9
"""Edges that differ by less, relative to their size, surround one value."""


class NumberViews:
    """Quantile cells, densities, tolerances and standard deviations."""

    def anchored_cells(
        self, train: Table, column: Column, *, most_cells: int, most_labels: int
    ) -> NumberCells:
        """Of about equal mass in train."""
        return NumberCells.on(train, column.name, most_cells)

    def shared_cells(
        self, tables: Sequence[Table], real: Sequence[Table], column: Column, *, most: int, fewest: int
    ) -> shared_cells.SharedNumberCells:
        """Of about equal mass in train, with enough real rows in each."""
        return shared_cells.SharedNumberCells.of(tables, real, column, most, fewest, self.edge_grids)

    def edge_grids(self, edges: Floats) -> Iterable[ValueGrid]:
        """What edges of cells may be rounded to, fine to coarse: 1, 2 and 5 times powers of ten."""
        low, high = float(edges[0]), float(edges[-1])
        size = max(abs(low), abs(high), 1e-300)
        span = high / 2 - low / 2
        least = math.floor(math.log10(span if span > _SAME * size else size)) - _EDGE_DIGITS
        most = max(math.ceil(math.log10(size)), least) + 1
        return (
            ValueGrid.of_step(float(f"{m}e{power}"))
            for power in range(least, min(most, 300) + 1)
            for m in (1, 2, 5)
        )

    def grouping(self, train: Table, column: Column, *, bins: int) -> NumberGroups:
        """Quantile bins."""
        return NumberGroups.on(train, column.name, bins)

    def outlying(self, table: Table, column: Column, tail: float) -> Positions:
        """Rows beyond the tails."""
        return outlying(table.numbers(column.name), tail)

    def univariate(self, train: Table, column: Column, method: MarginMethod) -> NumbersWithGaps:
        """A margin, and a share of missing values."""
        values = train.numbers(column.name)
        gaps = np.isnan(values)
        margin = None if gaps.all() else self.margin(column, values, method)
        return NumbersWithGaps(margin, float(gaps.mean()))

    def margin(self, column: Column, values: Floats, method: MarginMethod) -> Margin:
        """Of numbers that bounds and storage allow."""
        step, bounds = self.step(column.storage), self.support(column.declared_bounds)
        return number_margin(values, column.storage, method, step=step, bounds=bounds)

    def rank_scale(
        self, train: Table, column: Column, response: Floats | None, *, own_order: bool
    ) -> NumberScale:
        """Numbers are one already."""
        return NumberScale(column.name)

    def response(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_classes: int, far: float
    ) -> tuple[list[Target], int]:
        """In standard deviations of train."""
        return predictors.standardised_target(tables, train, column, far)

    def features(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_labels: int, far: float
    ) -> list[Floats]:
        """In standard deviations of train, with an indicator of missing values."""
        return predictors.standardised(tables, train, column, far)

    def coding(self, train: Table, column: Column, start: int) -> NumberCoding | None:
        """The number itself."""
        return NumberCoding.on(train, column, start)

    def secret(
        self, tables: Sequence[Table], column: Column, tolerance: float
    ) -> tuple[list[Floats], GuessTolerance]:
        """Guessed right within a tolerance."""
        numbers = [table.numbers(column.name) for table in tables]
        return numbers, GuessTolerance.from_train(numbers[0], tolerance)

    def step(self, storage: pa.DataType) -> float:
        """Spacing of the values that a storage type can hold; 0 when all can occur."""
        return float(pa.types.is_integer(storage))

    def support(self, declared: Bounds | None) -> Bounds | None:
        """Where a density lies; without declared bounds, 0 bounds numbers of which none is negative."""
        return declared
