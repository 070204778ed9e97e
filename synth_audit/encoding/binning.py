"""All columns of a table as cells, on what the plan declares or, without a budget, on train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from synth_audit.core.arrays import Codes
from synth_audit.core.errors import DataError
from synth_audit.core.generator import FitContext
from synth_audit.core.kind import Bounds
from synth_audit.core.resolution import Resolution
from synth_audit.core.schema import Column, Schema, quantitative
from synth_audit.core.table import Table, assemble
from synth_audit.encoding.binned_columns import BinnedColumn, LabelBins, RangeBins, column_from_plain
from synth_audit.encoding.cell_bins import CellBins
from synth_audit.encoding.number_domain import NumberDomain, ends_of, number_domain
from synth_audit.encoding.value_counts import bought_counts
from synth_audit.kernels.private_margins import rounds

MOST_LABELS = 10_000
"""Labels that are read off train; a plan may declare more."""


@dataclass(frozen=True, eq=False)
class Binning:
    """The cells of all columns.

    Attributes:
        schema: of the table that is drawn.
        columns: in the schema's order.
    """

    schema: Schema = field(repr=False)
    columns: tuple[BinnedColumn, ...] = field(repr=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(column.size for column in self.columns)

    def codes(self, table: Table) -> Codes:
        """The cell of every value, shape (n, d)."""
        return np.stack([column.codes(table) for column in self.columns], axis=1)

    def table(self, codes: Codes, rng: np.random.Generator) -> Table:
        """Rows with a value from each cell; ``codes`` has shape (n, d)."""
        drawn = {c.name: c.values(codes[:, j], rng) for j, c in enumerate(self.columns)}
        return assemble(self.schema, drawn)

    def plain(self) -> list[dict[str, Any]]:
        """As JSON values, without the schema."""
        return [column.plain() for column in self.columns]

    @classmethod
    def from_plain(cls, schema: Schema, plain: Sequence[Mapping[str, Any]]) -> Binning:
        """What :meth:`plain` wrote."""
        return cls(schema, tuple(map(column_from_plain, plain)))


def binning_for(train: Table, context: FitContext, bins: int) -> Binning:
    """The cells of train's columns, and the accountant told where bounds and labels come from.

    Under a budget they are what the plan declares, and values may be missing wherever it does not rule that
    out. What it leaves out is read off train, and no guarantee follows.

    Raises:
        DataError: a column holds free text, or more labels than are read off.
    """
    if context.accountant.budget is None:
        return Binning(train.schema, tuple(_read_off(train, c, c.resolution, bins) for c in train.schema))
    context.accountant.domain("inferred" if context.public_domain.unknown else "declared")
    return Binning(train.schema, tuple(_declared(train, column, context, bins) for column in train.schema))


def counted_binning(
    train: Table, context: FitContext, bins: int, share: float, *, pure: bool = False
) -> Binning:
    """:func:`binning_for`, but numbers of more than ``bins`` values lie in bins of much the same share.

    Which these are, and how often values occur in each, is told by noisy counts.

    Args:
        share: of ε, for all counts together; with 0 bins have equal width.
        pure: Laplace noise, also where δ is above 0.

    Raises:
        BudgetSpent: the budget does not bear it.
    """
    binning = binning_for(train, context, bins)
    domains = {column.name: domain for column in binning.columns if (domain := _to_count(column))}
    if not share or not domains:
        return binning
    queries = sum(rounds(domain.places) for domain in domains.values())
    counting = bought_counts(context, train.n_rows, queries, share, pure=pure)

    def counted(column: BinnedColumn) -> BinnedColumn:
        context.deadline.check()
        if not isinstance(column, RangeBins) or column.name not in domains:
            return column
        domain, values = domains[column.name], train.numbers(column.name)
        return CellBins.counted(column.name, domain, values, counting, bins, gap=column.gap)

    return replace(binning, columns=tuple(map(counted, binning.columns)))


def _to_count(column: BinnedColumn) -> NumberDomain | None:
    """What a column of numbers may hold that are more than its bins."""
    if not isinstance(column, RangeBins) or column.bounds is None or column.bounds[0] == column.bounds[1]:
        return None
    domain = NumberDomain(*column.bounds, column.step)
    return domain if domain.places > column.bins else None


def _declared(train: Table, column: Column, context: FitContext, bins: int) -> BinnedColumn:
    known = context.public_domain.columns[column.name]
    if known.bounds is not None:
        return _range(column, known.bounds, column.declared_resolution, bins, known.nullable)
    if labels := known.labels:
        return LabelBins(column.name, tuple(labels), known.nullable)
    return _read_off(train, column, column.declared_resolution, bins)


def _read_off(train: Table, column: Column, resolution: Resolution | None, bins: int) -> BinnedColumn:
    gap = train.n_missing(column.name) > 0
    if quantitative([column]):
        return _range(column, ends_of(train.numbers(column.name)), resolution, bins, gap)
    labels = column.kind.domain(train.column(column.name)).categories or ()
    if column.kind.as_it_is or len(labels) > MOST_LABELS:
        raise DataError(
            f"column {column.name!r} has too many different labels to be counted",
            where=f"train.{column.name}",
            expected=f"categories, at most {MOST_LABELS:,} that the plan does not declare",
            fix="drop the column, give it `role: identifier`, or merge its rare labels at the source",
        )
    return LabelBins(column.name, labels, gap)


def _range(
    column: Column, bounds: Bounds | None, resolution: Resolution | None, bins: int, gap: bool
) -> RangeBins:
    """Bins on the values that the column can hold."""
    if bounds is None or column.typeless:
        return RangeBins(column.name, None, bins, 0.0, gap)
    domain = number_domain(column, bounds, resolution)
    return RangeBins(column.name, (domain.low, domain.high), bins, domain.step, gap)
