"""A tree of pairs of columns, chosen privately, and the distribution of highest entropy for it."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from synth_audit.generators._marginal import marginals
from synth_audit.generators._marginal.binning import counted_binning
from synth_audit.generators._marginal.model import BinnedModel
from synth_audit.generators._model_files import FitsWhole
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo, Part, Share
from synth_audit.table.table import Table

Score = Literal["share", "rows"]

_LEAST_MIXED = 0.1
"""Columns of which fewer pairs of rows differ are taken for as mixed as that: the choice's noise grows with
the largest of what distances are divided by."""


@dataclass(frozen=True, kw_only=True)
class Mst(FitsWhole):
    """P(x) with the noisy counts of single columns and of the d − 1 pairs of a spanning tree.

    Under a budget the counts of single columns and of the pairs get Gaussian noise; in between the pairs are
    chosen one by one, by exponential mechanisms on the L1 distance of the counts of a pair from what the
    noisy single columns would have if they were independent (sensitivity 1). Cells of a column below three
    standard deviations of the noise are merged.

    That distance is ``2 n (1 − max(Σ p², Σ q²))`` at most for columns with shares p and q: by rows, as
    published, a column of two uneven labels (an income, a death) is hardly ever joined to what it depends on.
    By ``share`` the distance is divided by that, from the noisy counts.

    Attributes:
        margins: share of ε that buys how often the values of each number occur; 0 for none, as published.
        bins: of a number at most, of much the same share of rows; of equal width without ``margins``.
        score: of a pair: its distance as a ``share`` of the largest that its columns allow, or in ``rows``,
            as published.
        share: of zero-concentrated privacy for choosing the pairs; the rest is measured with one noise.
        most_cells: of the table of a pair; larger ones are no candidates.
        iterations: of mirror descent at most.

    Source: McKenna, Miklau & Sheldon 2021.
    """

    margins: Share = 0.2
    bins: Count = 25
    score: Score = "share"
    share: Part = 1 / 3
    most_cells: Count = 1_000_000
    iterations: Count = 1000
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="MST",
        summary="Differentially private tree of pairs, from counts with Gaussian noise.",
        source="McKenna, Miklau & Sheldon 2021",
        trial={"iterations": 50},
    )

    def fit(self, train: Table, context: FitContext) -> BinnedModel:
        """Count values, measure columns, choose pairs, measure them; each is paid for before it looks.

        Raises:
            BudgetSpent: the budget does not bear it, or has no delta.
        """
        context.accountant.check_delta()
        train = train.released_only()
        binning = counted_binning(train, context, self.bins, self.margins)
        noise, choice = self._bought(len(binning.sizes), context)
        rows = marginals.NoisyCounts(binning.codes(train), binning.sizes, context)
        single = marginals.SingleColumns.of(rows, noise)
        pairs = self._pairs(single, choice)
        measured = [single.rows.measured(pair, noise) for pair in pairs]
        model = single.fitted(measured, self.iterations)
        return BinnedModel(binning, model.conditionals(), single.merging)

    def _bought(self, columns: int, context: FitContext) -> tuple[float | None, float | None]:
        """The noise of a table of counts, and ε of one choice; None for neither, where nothing is bought."""
        accountant = context.accountant
        if accountant.unpaid(marginals.UNPAID_COUNTS):
            return None, None
        pairs, choice = columns - 1, None
        if pairs:
            rho = accountant.most_concentrated() * self.share
            choice = min((8 * rho / pairs) ** 0.5, 999.0)
            accountant.exponential(choice, what="choice of the pairs of columns", count=pairs)
        noise = accountant.least_noise(steps=columns + pairs)
        accountant.gaussian(noise, what="counts of each column", count=columns)
        if pairs:
            accountant.gaussian(noise, what="counts of the chosen pairs", count=pairs)
        return noise, choice

    def _pairs(self, single: marginals.SingleColumns, epsilon: float | None) -> list[marginals.Attributes]:
        """A spanning tree after Kruskal, of as many parts as the largest table allows."""
        sizes = single.rows.sizes
        weights = {
            # One over the largest distance from independence, in parts of all rows, by the noisy counts.
            pair: 1.0 if self.score == "rows" else 0.5 / max(min(map(single.mixed, pair)), _LEAST_MIXED)
            for pair in combinations(range(len(sizes)), 2)
            if marginals.cells_of(sizes, pair) <= self.most_cells
        }
        left = {p: weight * single.rows.off(p, single.independent(*p)) for p, weight in weights.items()}
        sensitivity = max(weights.values(), default=1.0)  # one row moves a distance by 1, no weight
        part = list(range(len(sizes)))
        tree: list[marginals.Attributes] = []
        while left:
            candidates = list(left)
            found = candidates[marginals.chosen(np.array([*left.values()]), epsilon, sensitivity)]
            tree.append(found)
            joined, gone = (part[a] for a in found)
            part = [joined if p == gone else p for p in part]
            left = {pair: off for pair, off in left.items() if part[pair[0]] != part[pair[1]]}
        return tree
