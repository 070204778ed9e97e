"""A Bayesian network of columns from tables of counts: with noise under a budget, as they are without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.errors import PlanError
from synth_audit.core.exponential_mechanism import exponential_choice
from synth_audit.core.generator import FitContext
from synth_audit.core.marginal_budget import UNPAID, PureShares, pure_shares
from synth_audit.core.rare_labels import check_fewest
from synth_audit.core.table import Table
from synth_audit.encoding.binned_model import BinnedModel
from synth_audit.encoding.binning import binning_for, counted_binning
from synth_audit.encoding.value_counts import check_part
from synth_audit.kernels.bayesian_network import (
    DEPENDENCE_SENSITIVITY,
    Family,
    conditionals,
    dependence,
    greedy_network,
    outermost,
    tables_needed,
)
from synth_audit.kernels.cell_counts import counted


@dataclass(frozen=True, kw_only=True)
class CountedNetwork:
    """How a network is fitted; the fields are those of ``priv_bayes`` and ``bayesian_network``.

    Raises:
        PlanError: a number makes no sense.
    """

    degree: int
    margins: float
    bins: int
    share: float
    most_cells: int
    minimum_people: int

    def __post_init__(self) -> None:
        check_part(self.margins)
        check_fewest(self.minimum_people)
        for name, least in {"degree": 1, "bins": 1, "most_cells": 1}.items():
            if getattr(self, name) < least:
                raise PlanError(
                    f"{name} is too small", where=f"generator.{name}", expected=f"{least} or more"
                )
        if not 0 < self.share < 1:
            raise PlanError("the share is no part of the budget", where="generator.share", expected="0 to 1")

    def fit(
        self,
        train: Table,
        context: FitContext,
        *,
        score: Callable[[Floats], float] = dependence,
        fewer: bool = False,
    ) -> BinnedModel:
        """Count values, choose the network, count; each is paid for before it looks at a row.

        Args:
            score, fewer: see :func:`greedy_network`; without a budget only. With one, nothing but
                :func:`dependence` has a sensitivity, and tables of a fixed number are bought.

        Raises:
            BudgetSpent: the budget does not bear it.
        """
        train = train.released_only()
        public = binning_for(train, context, self.bins).sizes  # those of counted cells are answers already
        binning = counted_binning(train, context, self.bins, self.margins, pure=True)
        shares = self._bought(public, context)
        codes, sizes = binning.codes(train), binning.sizes
        families = greedy_network(
            codes,
            sizes,
            first=int(context.rng.integers(len(sizes))),
            degree=self.degree,
            most_cells=self.most_cells,
            choose=lambda scores: _chosen(scores, shares, context),
            score=score if shares is None else dependence,
            fewer=fewer and shares is None,
        )

        def noisy(family: Family) -> Floats:
            context.deadline.check()
            counts = counted(codes, sizes, family.members)
            return counts if shares is None else counts + context.noise.laplace(shares.scale, counts.shape)

        tables = [(family, noisy(family)) for family in outermost(families)]
        return BinnedModel(binning, conditionals(families, tables))

    def _bought(self, sizes: Sequence[int], context: FitContext) -> PureShares | None:
        """What choices and tables cost, by the most cells that columns can have: by what is public alone."""
        accountant = context.accountant
        if accountant.budget is None:
            accountant.void(UNPAID)
            return None
        choices = len(sizes) - 1
        tables = tables_needed(sizes, self.degree, self.most_cells)
        shares = pure_shares(accountant, choices=choices, tables=tables, share=self.share)
        if choices:
            accountant.exponential(shares.choice, what="choice of the network", count=choices)
        accountant.laplace(shares.scale, what="tables of counts of a column and its parents", count=tables)
        return shares


def _chosen(scores: Floats, shares: PureShares | None, context: FitContext) -> int:
    context.deadline.check()
    if shares is None:
        return int(np.argmax(scores))
    return exponential_choice(scores, shares.choice, DEPENDENCE_SENSITIVITY)
