"""Tables of counts chosen round by round where the model so far is worst, as far as noise lets it be told."""

from dataclasses import dataclass
from itertools import combinations
from math import pi, sqrt
from typing import ClassVar

import numpy as np

from synth_audit.dp.composition import ConcentratedFilter
from synth_audit.generators._marginal import marginals
from synth_audit.generators._marginal.binning import counted_binning
from synth_audit.generators._marginal.model import BinnedModel
from synth_audit.generators._model_files import FitsWhole
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo, Share
from synth_audit.table.table import Table

_MEASURING = 0.9
"""Of the budget of a round, for measuring; the rest is for choosing."""

_UNPAID_ROUNDS = 1
"""For each column, where nothing limits them."""

_AT_THE_END = 5
"""Times as many steps of mirror descent as in a round."""

_ROUNDED = 1 - 1e-6
"""Keeps the rounding of the rounds' sum within the budget."""


@dataclass(frozen=True, kw_only=True)
class Aim(FitsWhole):
    """The distribution of highest entropy for noisy counts of adaptively chosen sets of columns.

    After the counts of single columns each round chooses, by an exponential mechanism, the set r of columns
    of the largest ``w_r (‖M_r(train) − M_r(model)‖₁ − √(2/π) σ n_r)``, where n_r is the number of its cells
    and w_r how much of the workload it overlaps; then r is measured with noise σ and the model fitted anew. A
    round that taught little more than its noise halves σ for those that follow. Sets with which the model
    would outgrow the spent share of ``most_cells`` are no candidates.

    Attributes:
        margins: share of ε that buys how often the values of each number occur; 0 for none, as published.
        bins: of a number at most, of much the same share of rows; of equal width without ``margins``.
        degree: columns of the largest sets of the workload, which holds all sets of so many.
        rounds: planned for each column of train; later ones are fewer and more precise, as it goes.
        most_cells: of the model.
        iterations: of mirror descent at most, in a round and, five times as many, at the end.

    Source: McKenna, Mullins, Sheldon & Miklau 2022.
    """

    margins: Share = 0.2
    bins: Count = 25
    degree: Count = 2
    rounds: Count = 16
    most_cells: Count = 50_000
    iterations: Count = 100
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="AIM",
        summary="Differentially private tables of counts, chosen adaptively where the model is worst.",
        cost="minutes",
        source="McKenna, Mullins, Sheldon & Miklau 2022",
        trial={"rounds": 2, "iterations": 10},
    )

    def fit(self, train: Table, context: FitContext) -> BinnedModel:
        """Count values, measure columns, then choose and measure; each is paid for before it looks at a row.

        Raises:
            BudgetSpent: the budget does not bear it, or has no delta.
        """
        context.accountant.check_delta()
        train = train.released_only()
        binning = counted_binning(train, context, self.bins, self.margins)
        columns = len(binning.sizes)
        noise, rho, share = self._bought(columns, context)
        rows = marginals.NoisyCounts(binning.codes(train), binning.sizes, context)
        single = marginals.SingleColumns.of(rows, noise)
        measured, model = ([], None) if columns == 1 else self._rounds(single, rho, share)
        model = single.fitted(measured, _AT_THE_END * self.iterations, model)
        return BinnedModel(binning, model.conditionals(), single.merging)

    def _bought(
        self, columns: int, context: FitContext
    ) -> tuple[float | None, float, ConcentratedFilter | None]:
        """The noise of single columns, ρ of the first round, and what all rounds may share."""
        accountant = context.accountant
        if accountant.unpaid(marginals.UNPAID_COUNTS):
            return None, 0.0, None
        rho = accountant.most_concentrated() * _ROUNDED
        if columns == 1:
            noise = accountant.least_noise()
            accountant.gaussian(noise, what="counts of each column")
            return noise, 0.0, None
        each = rho / (self.rounds * columns)
        noise, _ = _spending(each)
        accountant.gaussian(noise, what="counts of each column", count=columns)
        share = rho - columns * _MEASURING * each
        accountant.concentrated(share, what="rounds of choosing a table of counts and measuring it")
        return noise, each, ConcentratedFilter(share)

    def _rounds(
        self, single: marginals.SingleColumns, rho: float, share: ConcentratedFilter | None
    ) -> tuple[list[marginals.Measured], marginals.GraphicalModel]:
        """What was measured in all rounds, as long as they can be paid for, and the model by then.

        Args:
            rho: of the first round; the last spends what is left of the share.
        """
        rows = single.rows
        weights = _workload(len(rows.sizes), self.degree)
        measured: list[marginals.Measured] = []
        model, last = single.fitted(measured, self.iterations), False
        while not last:
            done = len(measured) + 1
            used, noise, choice = done / (_UNPAID_ROUNDS * len(rows.sizes)), None, None
            last = share is None and used == 1
            if share is not None:
                noise, choice = _spending(rho)
                if last := share.left < 2 * (noise**-2 / 2 + choice**2 / 8):
                    noise, choice = _spending(share.left)
                used = share.used
                share.exponential(choice)
                share.gaussian(noise)
            together = [one.attributes for one in measured]
            limit = self.most_cells * used
            candidates = [  # with which the model stays small enough; single columns always do
                r
                for r in weights
                if len(r) == 1
                or model.tree.holder(r) is not None
                or marginals.cells_of(rows.sizes, r)
                <= limit
                >= marginals.JunctionTree.of(rows.sizes, [*together, r]).cells
            ]
            expected = {r: model.marginal(r) for r in candidates}
            penalty = sqrt(2 / pi) * (noise or 0.0)
            off = {r: rows.off(r, expected[r]) - penalty * expected[r].size for r in candidates}
            scores = np.array([weights[r] * off[r] for r in candidates])
            found = candidates[marginals.chosen(scores, choice, max(weights[r] for r in candidates))]
            measured.append(rows.measured(found, noise))
            model = single.fitted(measured, self.iterations, model)
            moved = float(np.abs(model.marginal(found) - expected[found]).sum())
            if noise is not None and moved <= penalty * expected[found].size:
                rho *= 4  # half the noise, and twice the ε of the choice
            rows.context.progress("tables of counts measured", done, done)
        return measured, model


def _spending(rho: float) -> tuple[float, float]:
    """The noise of measuring and the ε of choosing in a round of ρ."""
    return 1 / sqrt(2 * _MEASURING * rho), sqrt(8 * (1 - _MEASURING) * rho)


def _workload(columns: int, degree: int) -> dict[marginals.Attributes, float]:
    """All sets of at most ``degree`` columns with Σ_s |r ∩ s| over the sets s of just so many."""
    degree = min(degree, columns)
    whole = list(combinations(range(columns), degree))
    per_column = sum(0 in s for s in whole)  # the same for every column
    return {
        r: float(len(r) * per_column)
        for size in range(1, degree + 1)
        for r in combinations(range(columns), size)
    }
