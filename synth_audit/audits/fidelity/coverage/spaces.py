"""Train and another table as points of one space, for the balls of the coverage audit."""

from __future__ import annotations

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
from synth_audit.kernels.embedding_settings import EmbeddingSettings
from synth_audit.kernels.support import tamed

SpaceName = Literal["features", "embedding"]

SPACES: tuple[SpaceName, ...] = ("features", "embedding")


def placed(
    space: SpaceName, subject: Subject, table: Table, settings: EmbeddingSettings, context: RunContext
) -> RowsInSpace:
    """Rows of train and of ``table`` in one space that is anchored on train.

    ``features``: numeric columns standardised, beyond ten standard deviations by logarithm; discrete ones
    one-hot; missing an indicator of its own. ``embedding``: the contrastive embedding
    of these settings.

    Raises:
        NotApplicable: no column varies in train, or the embedding has too little to learn from.
        PluginError: the embedding is asked for and torch is not installed.
    """
    tables = [subject.train, table]
    encoder = EuclideanEncoder.anchored_on(subject.train, subject.features)
    varying = [c for c in subject.features if c.name not in encoder.constant]
    if not varying:
        raise NotApplicable("no column varies in train, so that there is no centre to be near to")
    groups = row_groups(tables, varying)
    met = np.isin(groups[0], groups[1]), np.isin(groups[1], groups[0])
    if space == "embedding":
        known, other = embed(subject.train, tables, subject.features, settings=settings, context=context)
        return RowsInSpace(known, other, *met)
    with np.errstate(over="ignore"):  # an absurd value may be infinitely many deviations away, and is tamed
        points = encoder.encode(tables)
    known, other = map(tamed, points)
    return RowsInSpace(known, other, *met)
