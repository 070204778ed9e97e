"""Every column drawn on its own: the floor of usefulness."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from synth_audit.encode.univariate import MarginMethod, Univariate, univariate
from synth_audit.generators._model_files import FitsWhole, SavedWhole
from synth_audit.plugins.generator import FEWEST_PEOPLE, Count, FitContext, GeneratorInfo
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table, assemble

_NO_NOISE = "the column distributions are fitted to train without noise"


@dataclass(frozen=True, eq=False)
class IndependentModel(SavedWhole):
    """The fitted distribution of each column.

    Attributes:
        schema: the columns of the synthetic table.
        columns: the distributions by column name.
    """

    schema: Schema = field(repr=False)
    columns: Mapping[str, Univariate] = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows, each column on its own."""
        return assemble(self.schema, {name: column.sample(n, rng) for name, column in self.columns.items()})


@dataclass(frozen=True, kw_only=True)
class Independent(FitsWhole):
    """Draw each column from its own distribution, so that no relation between columns survives.

    P(x) = Π_j P_j(x_j). Labels keep their frequencies, missing values their rate; numbers come from a
    smooth density and are not copied, apart from values that many rows share. Another label of the column
    takes the place of one that too few people have, unless the plan declares it.

    Attributes:
        margins: ``kde`` for a kernel density, ``empirical`` for the sample's own distribution, whose
            extremes recur.
        minimum_people: who have a label that is drawn; 1 for all labels.
    """

    margins: MarginMethod = "kde"
    minimum_people: Count = FEWEST_PEOPLE
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Independent columns",
        summary="Each column from its own distribution; shows what is left when all relations are cut.",
        cost="instant",
    )

    def fit(self, train: Table, context: FitContext) -> IndependentModel:
        """Learn the distribution of every column of ``train`` but identifiers."""
        context.accountant.void(_NO_NOISE)
        train = train.released_only()
        columns = {c.name: univariate(train, c, self.margins) for c in train.schema}
        return IndependentModel(train.schema, columns)
