"""A Bayesian network of low degree, chosen by the exponential mechanism, from counts with Laplace noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.errors import PlanError
from synth_audit.core.exponential_mechanism import exponential_choice
from synth_audit.core.generator import FitContext, GeneratorInfo
from synth_audit.core.marginal_budget import UNPAID, PureShares, pure_shares
from synth_audit.core.table import Table
from synth_audit.encoding.binned_model import BinnedModel
from synth_audit.encoding.binning import binning_for, counted_binning
from synth_audit.encoding.value_counts import check_part
from synth_audit.kernels.bayesian_network import (
    DEPENDENCE_SENSITIVITY,
    Family,
    conditionals,
    greedy_network,
    outermost,
    tables_needed,
)
from synth_audit.kernels.cell_counts import counted


@dataclass(frozen=True, kw_only=True)
class PrivBayes:
    """P(x) = Π_i P(x_i | parents), each column given at most ``degree`` columns drawn before it.

    Under a budget the network costs ``share`` of what ``margins`` leave of ε: one exponential mechanism for
    each column but the first, which is drawn at random, on half the L1 distance of counts from independence
    (sensitivity 2 for one row added or removed, whatever the number of rows). The rest buys the tables of
    counts, with Laplace noise; of each the nearest without counts below 0 is taken. ε is pure where δ is 0;
    else ``margins`` buy at δ, for which many counts have less noise.

    Attributes:
        degree: parents of a column at most.
        margins: share of ε that buys how often the values of each number occur; 0 for none, as published.
        bins: of a number at most, of much the same share of rows; of equal width without ``margins``.
        share: of the rest of ε for the network.
        most_cells: of one table; where a table would have more, a column gets fewer parents.

    Source: Zhang, Cormode, Procopiuc, Srivastava & Xiao 2017, with its score R.
    """

    degree: int = 1
    margins: float = 0.2
    bins: int = 25
    share: float = 0.3
    most_cells: int = 1_000_000
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="PrivBayes",
        summary="Differentially private Bayesian network, by counts with Laplace noise; δ may be 0.",
        source="Zhang et al. 2017",
    )

    def __post_init__(self) -> None:
        check_part(self.margins)
        for name, least in {"degree": 1, "bins": 1, "most_cells": 1}.items():
            if getattr(self, name) < least:
                raise PlanError(
                    f"{name} is too small", where=f"generator.{name}", expected=f"{least} or more"
                )
        if not 0 < self.share < 1:
            raise PlanError("the share is no part of the budget", where="generator.share", expected="0 to 1")

    def fit(self, train: Table, context: FitContext) -> BinnedModel:
        """Count values, choose the network, count; each is paid for before it looks at a row.

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
        )

        def noisy(family: Family) -> Floats:
            context.deadline.check()
            counts = counted(codes, sizes, family.members)
            return counts if shares is None else counts + context.noise.laplace(shares.scale, counts.shape)

        tables = [(family, noisy(family)) for family in outermost(families)]
        return BinnedModel(binning, conditionals(families, tables))

    def load(self, folder: Path) -> BinnedModel:
        """The model that was saved there."""
        return BinnedModel.load(folder)

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
