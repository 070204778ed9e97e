"""Rows as vectors that a network learns and draws, and margins counted with noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from synth_audit.arrays import Floats, Floats32
from synth_audit.encode.univariate import number_domain
from synth_audit.generators._deep.transforms import (
    ColumnTransform,
    LabelTransform,
    RangeTransform,
    RankTransform,
    RowLayout,
)
from synth_audit.generators._marginal.binning import (
    ColumnDomain,
    bought_counts,
    column_domains,
    settled,
)
from synth_audit.plugins.generator import FitContext
from synth_audit.table.kind import Bounds
from synth_audit.table.schema import Column, PublicDomain, Schema
from synth_audit.table.table import Table, assemble

OfNumbers = Callable[[str, Floats, Bounds], ColumnTransform]
"""How a column of numbers is read: from name, values (NaN where missing) and ends, which differ."""


@dataclass(frozen=True, eq=False)
class Transformer:
    """All columns of a table as one vector per row.

    Attributes:
        schema: of the table that is drawn.
        columns: in the schema's order.
    """

    schema: Schema
    columns: tuple[ColumnTransform, ...]

    @property
    def layout(self) -> RowLayout:
        """Where numbers and labels lie."""
        numbers: list[int] = []
        slices: list[tuple[int, int]] = []
        choices: list[int] = []
        place = 0
        for column in self.columns:
            numbers += range(place, place + column.numbers)
            place += column.numbers
            for width in column.slices:
                choices += [len(slices)] if column.choice else []
                slices.append((place, place + width))
                place += width
        return RowLayout(tuple(numbers), tuple(slices), place, tuple(choices))

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """Vectors, shape (n, width)."""
        return np.hstack([column.encode(table, rng) for column in self.columns])

    def decode(self, vectors: Floats32) -> Table:
        """Rows from vectors of shape (n, width), whose slices hold any scores: the largest wins."""
        return assemble(self.schema, {column.name: column.decode(own) for column, own in self._own(vectors)})

    @property
    def knows_margins(self) -> bool:
        """Whether :meth:`calibrated` would change anything."""
        return any(map(_known, self.columns))

    def calibrated(self, vectors: Floats32) -> Transformer:
        """One that decodes vectors like these, which a network drew, to the margins that are known."""
        calibrated = (
            column.calibrated(own) if _known(column) else column for column, own in self._own(vectors)
        )
        return Transformer(self.schema, tuple(calibrated))

    def _own(self, vectors: Floats32) -> Iterator[tuple[ColumnTransform, Floats32]]:
        """Each column and its own coordinates."""
        place = 0
        for column in self.columns:
            width = column.numbers + sum(column.slices)
            yield column, vectors[:, place : place + width]
            place += width


def _known(column: ColumnTransform) -> TypeGuard[RankTransform | LabelTransform]:
    """Whether its margin was counted."""
    return isinstance(column, RankTransform) or (isinstance(column, LabelTransform) and bool(column.shares))


def on_train(
    train: Table, of_numbers: OfNumbers | None = None, domain: PublicDomain | None = None
) -> Transformer:
    """Ranges, labels and gaps as train has them, or as they are declared.

    Args:
        of_numbers: how numbers are read; None for a range between their ends.
        domain: what is declared; gaps are then wherever it does not rule them out. Of what it leaves out all
            is read off train, and nothing can be claimed.

    Raises:
        DataError: a column holds free text.
    """

    def transform(column: Column, known: ColumnDomain) -> ColumnTransform:
        name, ends = column.name, known.bounds
        if known.labels is not None:
            return LabelTransform(name, known.labels, known.gap)
        if of_numbers is None or ends is None or ends[0] == ends[1]:
            return RangeTransform(name, ends, known.gap)
        return of_numbers(name, train.numbers(name), ends)

    known = column_domains(train, domain, "learnt by a network")
    return Transformer(train.schema, tuple(map(transform, train.schema, known)))


def with_margins(transformer: Transformer, train: Table, context: FitContext, share: float) -> Transformer:
    """Numbers as ranks, and shares of labels, by counts of every column.

    Under a budget the counts are Gaussian mechanisms, or Laplace's where δ is 0, all bought before the first
    is made.

    Args:
        share: of ε, for all counts together; with 0 everything stays as it is.

    Raises:
        BudgetSpent: the budget does not bear it.
    """
    if not share:
        return transformer
    private = context.accountant.budget is not None
    domains = {  # of columns of numbers that can differ
        column.name: number_domain(
            column, known.bounds, column.declared_resolution if private else column.resolution
        )
        for column, known in zip(transformer.schema, transformer.columns, strict=True)
        if isinstance(known, RangeTransform) and known.numbers and known.bounds
    }

    def queries(column: ColumnTransform) -> int:
        if isinstance(column, LabelTransform):
            return len(column.slices)
        if isinstance(column, RangeTransform) and column.name in domains:
            return RankTransform.queries(domains[column.name], gap=column.gap)
        return 0

    def counted(column: ColumnTransform) -> ColumnTransform:
        context.deadline.check()
        if isinstance(column, LabelTransform) and column.slices:
            counts = column.encode(train, context.rng).sum(axis=0, dtype=np.float64)
            return replace(column, shares=tuple(settled(counting.noisy(counts), counting.least).tolist()))
        if isinstance(column, RangeTransform) and (domain := domains.get(column.name)):
            values = train.numbers(column.name)
            return RankTransform.counted(column.name, domain, values, counting, gap=column.gap)
        return column

    if not (total := sum(map(queries, transformer.columns))):
        return transformer
    counting = bought_counts(context, train.n_rows, total, share)
    return replace(transformer, columns=tuple(map(counted, transformer.columns)))
