"""What statistics, models and attackers ask of kinds of labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Floats, Positions, Target
from synth_audit.core.kind_distribution import MarginMethod
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding import predictors, shared_cells
from synth_audit.encoding.anchored_cells import LabelCells
from synth_audit.encoding.codes import codes
from synth_audit.encoding.codings import LabelCoding
from synth_audit.encoding.groupings import LabelGroups
from synth_audit.encoding.rank_scale import LabelScale
from synth_audit.encoding.univariate import Categories
from synth_audit.kernels.coordinates import MISSING
from synth_audit.kernels.games import rarest
from synth_audit.kernels.margins import Margin, stepwise_margin
from synth_audit.kernels.secret_guesses import Equality


class LabelViews:
    """Categories, their frequencies and equality."""

    def anchored_cells(
        self, train: Table, column: Column, *, most_cells: int, most_labels: int
    ) -> LabelCells:
        """One for each frequent label."""
        return LabelCells.on(train, column.name, most_labels)

    def shared_cells(
        self, tables: Sequence[Table], real: Sequence[Table], column: Column, *, most: int, fewest: int
    ) -> shared_cells.SharedLabelCells:
        """One for each label."""
        return shared_cells.SharedLabelCells.of(tables, column)

    def grouping(self, train: Table, column: Column, *, bins: int) -> LabelGroups:
        """The labels of train."""
        return LabelGroups.on(train, column.name)

    def outlying(self, table: Table, column: Column, tail: float) -> Positions:
        """Rows of the rarest labels."""
        return rarest(codes([table], column)[0], tail)

    def univariate(self, train: Table, column: Column, method: MarginMethod) -> Categories:
        """Frequencies."""
        return Categories.of(train, column.name)

    def margin(self, column: Column, values: Floats, method: MarginMethod) -> Margin:
        """Frequencies of the codes, and nothing between them."""
        return stepwise_margin(values)

    def rank_scale(
        self, train: Table, column: Column, response: Floats | None, *, own_order: bool
    ) -> LabelScale:
        """Nominal labels have no order of their own: on this one, ranks show most of what they say about the
        response."""
        return LabelScale.sorted_by(train, column.name, response)

    def response(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_classes: int, far: float
    ) -> tuple[list[Target], int]:
        """Classes."""
        return predictors.classes(tables, train, column, most_classes)

    def features(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_labels: int, far: float
    ) -> list[Floats]:
        """Indicators."""
        return predictors.indicators(tables, train, column, most_labels)

    def coding(self, train: Table, column: Column, start: int) -> LabelCoding | None:
        """Indicators of the frequent labels."""
        return LabelCoding.on(train, column, start)

    def secret(
        self, tables: Sequence[Table], column: Column, tolerance: float
    ) -> tuple[list[Floats], Equality]:
        """Given by codes that the tables share, guessed right when equal."""
        return [np.where(x == MISSING, np.nan, x) for x in codes(tables, column)], Equality()
