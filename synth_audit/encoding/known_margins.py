"""How often the values of each column occur, counted with noise: numbers become ranks, labels get shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth_audit.core.generator import FitContext
from synth_audit.core.table import Table
from synth_audit.encoding.column_transforms import ColumnTransform, LabelTransform, RangeTransform
from synth_audit.encoding.number_domain import NumberDomain, number_domain
from synth_audit.encoding.rank_transform import RankTransform
from synth_audit.encoding.transformer import Transformer
from synth_audit.encoding.value_counts import Counting, bought_counts
from synth_audit.kernels.private_margins import settled


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
    domains = _domains(transformer, context)
    queries = sum(_queries(column, domains) for column in transformer.columns)
    if not queries:
        return transformer
    counting = bought_counts(context, train.n_rows, queries, share)
    counted = (_counted(column, domains, train, context, counting) for column in transformer.columns)
    return replace(transformer, columns=tuple(counted))


def _domains(transformer: Transformer, context: FitContext) -> dict[str, NumberDomain]:
    """Of columns of numbers that can differ; under a budget by what is declared."""
    found = {}
    for column, transform in zip(transformer.schema, transformer.columns, strict=True):
        if isinstance(transform, RangeTransform) and transform.numbers and transform.bounds:
            private = context.accountant.budget is not None
            resolution = column.declared_resolution if private else column.resolution
            found[column.name] = number_domain(column, transform.bounds, resolution)
    return found


def _queries(column: ColumnTransform, domains: dict[str, NumberDomain]) -> int:
    if isinstance(column, LabelTransform):
        return len(column.slices)
    if isinstance(column, RangeTransform) and column.name in domains:
        return RankTransform.queries(domains[column.name], gap=column.gap)
    return 0


def _counted(
    column: ColumnTransform,
    domains: dict[str, NumberDomain],
    train: Table,
    context: FitContext,
    counting: Counting,
) -> ColumnTransform:
    context.deadline.check()
    if isinstance(column, LabelTransform) and column.slices:
        counts = column.encode(train, context.rng).sum(axis=0, dtype=np.float64)
        return replace(column, shares=tuple(settled(counting.noisy(counts), counting.least).tolist()))
    if isinstance(column, RangeTransform) and (domain := domains.get(column.name)):
        values = train.numbers(column.name)
        return RankTransform.counted(column.name, domain, values, counting, gap=column.gap)
    return column
