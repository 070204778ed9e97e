"""Tables of counts chosen round by round where the model so far is worst, as far as noise lets it be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import pi, sqrt
from pathlib import Path
from typing import ClassVar

import numpy as np

from synth_audit.dp.composition import ConcentratedFilter
from synth_audit.generators._budget import UNPAID_COUNTS, Paid
from synth_audit.generators._marginal.binning import counted_binning
from synth_audit.generators._marginal.graphical_model import (
    Attributes,
    GraphicalModel,
    JunctionTree,
    Measured,
    NoisyCounts,
    SingleColumns,
    cells_of,
    chosen,
)
from synth_audit.generators._marginal.model import BinnedModel
from synth_audit.generators._model_files import read_model
from synth_audit.plugins.generator import FitContext, GeneratorInfo, check_settings
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
class Aim:
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

    margins: float = 0.2
    bins: int = 25
    degree: int = 2
    rounds: int = 16
    most_cells: int = 50_000
    iterations: int = 100
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="AIM",
        summary="Differentially private tables of counts, chosen adaptively where the model is worst.",
        cost="minutes",
        source="McKenna, Mullins, Sheldon & Miklau 2022",
        trial={"rounds": 2, "iterations": 10},
    )

    def __post_init__(self) -> None:
        counts = ("bins", "degree", "rounds", "most_cells", "iterations")
        check_settings(self, counts=counts, shares=("margins",))

    def fit(self, train: Table, context: FitContext) -> BinnedModel:
        """Count values, measure columns, then choose and measure; each is paid for before it looks at a row.

        Raises:
            BudgetSpent: the budget does not bear it, or has no delta.
        """
        context.accountant.check_delta()
        train = train.released_only()
        binning = counted_binning(train, context, self.bins, self.margins)
        first, share = self._bought(len(binning.sizes), context)
        rows = NoisyCounts(binning.codes(train), binning.sizes, context)
        single = SingleColumns.of(rows, first.noise)
        fit = _Fit(self, single, first, share)
        model = single.fitted(fit.run(), _AT_THE_END * self.iterations, fit.model)
        return BinnedModel(binning, model.conditionals(), single.merging)

    def load(self, folder: Path) -> BinnedModel:
        """The model that was saved there."""
        return read_model(folder, BinnedModel)

    def _bought(self, columns: int, context: FitContext) -> tuple[Paid, ConcentratedFilter | None]:
        """The first round's noise and ε, and what all rounds may share."""
        accountant = context.accountant
        if accountant.budget is None:
            accountant.void(UNPAID_COUNTS)
            return Paid(), None
        rho = accountant.most_concentrated() * _ROUNDED
        if columns == 1:
            noise = accountant.least_noise()
            accountant.gaussian(noise, what="counts of each column")
            return Paid(noise), None
        each = rho / (self.rounds * columns)
        first = _spending(each)
        assert first.noise is not None
        accountant.gaussian(first.noise, what="counts of each column", count=columns)
        share = rho - columns * _MEASURING * each
        accountant.concentrated(share, what="rounds of choosing a table of counts and measuring it")
        return first, ConcentratedFilter(share)


def _spending(rho: float) -> Paid:
    """How one round spends ρ."""
    return Paid(1 / sqrt(2 * _MEASURING * rho), sqrt(8 * (1 - _MEASURING) * rho))


@dataclass(eq=False)
class _Fit:
    """The rounds of one fit.

    Attributes:
        now: how the next round spends.
        weights: of every candidate in the workload.
    """

    settings: Aim
    single: SingleColumns
    now: Paid
    share: ConcentratedFilter | None
    measured: list[Measured] = field(default_factory=list)
    model: GraphicalModel | None = None
    weights: Mapping[Attributes, float] = field(default_factory=dict)

    def run(self) -> list[Measured]:
        """What was measured in all rounds."""
        columns = len(self.single.rows.sizes)
        if columns == 1:
            return []
        self.weights = _workload(columns, self.settings.degree)
        self.model = self.single.fitted([], self.settings.iterations)
        for done in self._rounds(columns):
            self._round()
            self.single.rows.context.progress("tables of counts measured", done, done)
        return self.measured

    def _rounds(self, columns: int) -> Iterator[int]:
        """Counts rounds as long as they can be paid for; the last spends what is left."""
        if self.share is None:
            yield from range(1, _UNPAID_ROUNDS * columns + 1)
            return
        done = 0
        last = False
        while not last:
            assert self.now.noise is not None
            assert self.now.choice is not None
            cost = self.now.noise**-2 / 2 + self.now.choice**2 / 8
            last = self.share.left < 2 * cost
            if last:
                self.now = _spending(self.share.left)
            done += 1
            yield done

    def _round(self) -> None:
        assert self.model is not None
        candidates = self._candidates()
        expected = {r: self.model.marginal(r) for r in candidates}
        penalty = sqrt(2 / pi) * (self.now.noise or 0.0)
        if self.share is not None and self.now.choice is not None and self.now.noise is not None:
            self.share.exponential(self.now.choice)
            self.share.gaussian(self.now.noise)
        scores = [
            self.weights[r] * (self.single.rows.off(r, expected[r]) - penalty * expected[r].size)
            for r in candidates
        ]
        sensitivity = max(self.weights[r] for r in candidates)
        found = candidates[chosen(np.array(scores), self.now.choice, sensitivity)]
        self.measured.append(self.single.rows.measured(found, self.now.noise))
        self.model = self.single.fitted(self.measured, self.settings.iterations, self.model)
        moved = float(np.abs(self.model.marginal(found) - expected[found]).sum())
        if self.now.noise is not None and moved <= penalty * expected[found].size:
            assert self.now.choice is not None
            self.now = Paid(self.now.noise / 2, 2 * self.now.choice)

    def _candidates(self) -> list[Attributes]:
        """Sets with which the model stays small enough; those of single columns always do."""
        sizes = self.single.rows.sizes
        rounds = _UNPAID_ROUNDS * len(sizes)
        limit = self.settings.most_cells * (
            (len(self.measured) + 1) / rounds if self.share is None else self.share.used
        )
        known = [one.attributes for one in self.measured]
        assert self.model is not None
        tree = self.model.tree
        return [
            r
            for r in self.weights
            if len(r) == 1
            or tree.holder(r) is not None
            or (cells_of(sizes, r) <= limit and JunctionTree.of(sizes, [*known, r]).cells <= limit)
        ]


def _workload(columns: int, degree: int) -> dict[Attributes, float]:
    """All sets of at most ``degree`` columns with Σ_s |r ∩ s| over the sets s of just so many."""
    degree = min(degree, columns)
    whole = list(combinations(range(columns), degree))
    per_column = sum(0 in s for s in whole)  # the same for every column
    return {
        r: float(len(r) * per_column)
        for size in range(1, degree + 1)
        for r in combinations(range(columns), size)
    }
