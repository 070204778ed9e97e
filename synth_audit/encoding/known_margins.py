"""How often the values of each column occur, counted with noise: numbers become ranks, labels get shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext
from synth_audit.core.private_steps import part_of_budget
from synth_audit.core.table import Table
from synth_audit.encoding.column_transforms import ColumnTransform, LabelTransform, RangeTransform
from synth_audit.encoding.number_domain import NumberDomain, number_domain
from synth_audit.encoding.rank_transform import RankTransform
from synth_audit.encoding.transformer import Transformer
from synth_audit.kernels.private_margins import Noisy, settled

_WHAT = "counts of the values of each column"

_ABOVE = 3.0
"""Standard deviations of the noise from which a count is told from none."""

_SOME, _SHARE = 10.0, 0.005
"""Rows, and share of them, from which on cells are divided where nothing is noised."""


def check_part(share: float) -> None:
    """Refuse a share that leaves nothing.

    Raises:
        PlanError: it is below 0, or 1 or more.
    """
    if not 0 <= share < 1:
        raise PlanError(
            "the share is no part of the budget", where="generator.margins", expected="0 to below 1"
        )


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
    noisy, least = _counting(train, context, queries, share)
    counted = (_counted(column, domains, train, context, noisy, least) for column in transformer.columns)
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


def _counting(train: Table, context: FitContext, queries: int, share: float) -> tuple[Noisy, float]:
    """How counts are noised, and how many rows are told from noise."""
    accountant = context.accountant
    if accountant.budget is None:
        return _as_it_is, max(_SOME, _SHARE * train.n_rows)
    reach = part_of_budget(share, context)
    if accountant.budget.delta == 0:
        scale = accountant.least_laplace_noise(queries, epsilon=reach)
        accountant.laplace(scale, what=_WHAT, count=queries)
        return _noised(context.noise.laplace, scale), _ABOVE * 2**0.5 * scale
    scale = accountant.least_noise(steps=queries, epsilon=reach)
    accountant.gaussian(scale, what=_WHAT, count=queries)
    return _noised(context.noise.gaussian, scale), _ABOVE * scale


def _as_it_is(counts: Floats) -> Floats:
    return counts


def _noised(noise: Callable[[float, tuple[int, ...]], Floats], scale: float) -> Noisy:
    return lambda counts: counts + noise(scale, counts.shape)


def _counted(
    column: ColumnTransform,
    domains: dict[str, NumberDomain],
    train: Table,
    context: FitContext,
    noisy: Noisy,
    least: float,
) -> ColumnTransform:
    context.deadline.check()
    if isinstance(column, LabelTransform) and column.slices:
        counts = column.encode(train, context.rng).sum(axis=0, dtype=np.float64)
        return replace(column, shares=tuple(settled(noisy(counts), least).tolist()))
    if isinstance(column, RangeTransform) and (domain := domains.get(column.name)):
        values = train.numbers(column.name)
        return RankTransform.counted(column.name, domain, values, noisy, least, gap=column.gap)
    return column
