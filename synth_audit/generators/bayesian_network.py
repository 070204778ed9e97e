"""A Bayesian network of low degree by mutual information (DataSynthesizer's model)."""

from dataclasses import dataclass
from typing import ClassVar

from synth_audit.generators._marginal.model import BinnedModel, CountedNetwork, information
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo
from synth_audit.table.table import Table


@dataclass(frozen=True, kw_only=True)
class BayesianNetwork(CountedNetwork):
    """P(x) = Π_i P(x_i | parents), each column given at most ``degree`` columns drawn before it.

    Greedily, the column and the parents come next whose mutual information is the largest, by Akaike's
    criterion. As published, without that, the parents with the most cells win, and many a row's is its own.

    Under a budget it is ``priv_bayes`` of this degree: half the L1 distance of counts from independence takes
    the place of mutual information, whose sensitivity depends on the number of rows.

    Attributes:
        degree: parents of a column at most.
        margins: of a number, how bins come about: above 0 of much the same share of rows, and under a budget
            the share of ε that this costs; 0 for equal width, as published.
        bins: of a number at most.
        share: of the rest of ε for the network.
        most_cells: of one table; where a table would have more, a column gets fewer parents.
        minimum_people: who have a label that is drawn, where neither the plan declares it nor a budget asks
            for noise; another label of the column takes its place. 1 for all labels.

    Source: Ping, Stoyanovich & Howe 2017 (DataSynthesizer); Zhang et al. 2017.
    """

    degree: Count = 2
    bins: Count = 20
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Bayesian network",
        summary="Each column from counts given up to two others; with a budget, PrivBayes of that degree.",
        source="Ping et al. 2017",
    )

    def fit(self, train: Table, context: FitContext) -> BinnedModel:
        """Choose the network and count; under a budget with noise, each paid for before it looks at a row.

        Raises:
            BudgetSpent: the budget does not bear it.
        """
        return self.fit_network(train, context, score=information, fewer=True)
