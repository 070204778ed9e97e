"""Rows of train, drawn again: the leak that every audit must see."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table, load_table, save_table

_COPIES = "every synthetic row is a copy of a training row"


@dataclass(frozen=True)
class ResampleModel:
    """The training rows themselves.

    Attributes:
        train: the rows that are drawn.
    """

    train: Table = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` training rows with replacement."""
        return self.train.take(rng.integers(0, self.train.n_rows, size=n).astype(np.intp))

    def save(self, folder: Path) -> None:
        """Write the rows as Parquet."""
        save_table(self.train, folder, "train")


@dataclass(frozen=True, kw_only=True)
class Resample:
    """Draw training rows with replacement: perfect usefulness, no privacy, a yardstick only.

    P(row = x_i) = 1/n for each training row.

    Source: Efron, B. (1979), Bootstrap methods: another look at the jackknife.
    """

    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Resampled training rows",
        summary="Copies training rows: a deliberate leak to test audits with; never release it.",
        cost="instant",
        source="Efron 1979",
    )
    minimum_people: ClassVar[int] = 1
    """Rows are copied with all that is in them."""

    def fit(self, train: Table, context: FitContext) -> ResampleModel:
        """Keep the rows of ``train``, without identifiers."""
        context.accountant.void(_COPIES)
        return ResampleModel(train.released_only())

    def load(self, folder: Path) -> ResampleModel:
        """The rows that were saved there."""
        return ResampleModel(load_table(folder, "train"))
