"""Train and another table as points of one space, for the balls of the coverage audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from synth_audit.audits.fidelity.coverage.pair import RowsInSpace
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.encoding.embedding import embed
from synth_audit.encoding.euclidean import EuclideanEncoder
from synth_audit.encoding.row_groups import row_groups
from synth_audit.kernels.coordinates import Coordinates
from synth_audit.kernels.embedding_settings import EmbeddingSettings
from synth_audit.kernels.support import tamed

SpaceName = Literal["features", "embedding"]

SPACES: tuple[SpaceName, ...] = ("features", "embedding")


@dataclass(frozen=True, eq=False)
class AnchoredSpace:
    """A space that all of train anchors, whichever rows are put into it.

    ``features``: numeric columns standardised, beyond ten standard deviations by logarithm; discrete ones
    one-hot; missing an indicator of its own. ``embedding``: the contrastive embedding of these settings.
    """

    name: SpaceName
    subject: Subject
    encoder: EuclideanEncoder
    settings: EmbeddingSettings
    context: RunContext

    @classmethod
    def on(
        cls, name: SpaceName, subject: Subject, settings: EmbeddingSettings, context: RunContext
    ) -> AnchoredSpace:
        """Raises ``NotApplicable`` where no column varies in train."""
        encoder = EuclideanEncoder.anchored_on(subject.train, subject.features)
        if len(encoder.constant) == len(subject.features):
            raise NotApplicable("no column varies in train, so that there is no centre to be near to")
        return cls(name, subject, encoder, settings, context)

    def rows(self, known: Table, other: Table) -> RowsInSpace:
        """Rows of train and of another table, and which of them stand in both."""
        varying = [c for c in self.subject.features if c.name not in self.encoder.constant]
        groups = row_groups([known, other], varying)
        met = np.isin(groups[0], groups[1]), np.isin(groups[1], groups[0])
        of_train, of_other = self.coordinates([known, other])
        return RowsInSpace(of_train, of_other, *met)

    def coordinates(self, tables: Sequence[Table]) -> list[Coordinates]:
        """Tables in one space.

        Raises:
            NotApplicable: the embedding has too little to learn from.
            PluginError: the embedding is asked for and torch is not installed.
        """
        train, columns = self.subject.train, self.subject.features
        if self.name == "embedding":
            return embed(train, tables, columns, settings=self.settings, context=self.context)
        with np.errstate(over="ignore"):  # an absurd value, infinitely many deviations away, is tamed
            points = self.encoder.encode(tables)
        return [tamed(rows) for rows in points]
