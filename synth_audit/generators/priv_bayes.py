"""A Bayesian network of low degree, chosen by the exponential mechanism, from counts with Laplace noise."""

from dataclasses import dataclass
from typing import ClassVar

from synth_audit.generators._marginal.model import BinnedModel, CountedNetwork
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo
from synth_audit.table.table import Table


@dataclass(frozen=True, kw_only=True)
class PrivBayes(CountedNetwork):
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
        minimum_people: who have a label that is drawn, where neither the plan declares it nor a budget asks
            for noise; another label of the column takes its place. 1 for all labels.

    Source: Zhang, Cormode, Procopiuc, Srivastava & Xiao 2017, with its score R.
    """

    degree: Count = 1
    bins: Count = 25
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="PrivBayes",
        summary="Differentially private Bayesian network, by counts with Laplace noise; δ may be 0.",
        source="Zhang et al. 2017",
    )

    def fit(self, train: Table, context: FitContext) -> BinnedModel:
        """Count values, choose the network, count; each is paid for before it looks at a row.

        Raises:
            BudgetSpent: the budget does not bear it.
        """
        return self.fit_network(train, context)
