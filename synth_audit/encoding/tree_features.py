"""What trees that tell tables apart may use of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.discrimination import MOST_BINS, SMALLEST_LEAF, TreeFeatures
from synth_audit.kernels.propensity import by_frequency


def tree_features(tables: Sequence[Table], columns: Sequence[Column]) -> TreeFeatures:
    """Numbers by their rank, since trees see nothing else; labels by their frequency."""
    bins = min(MOST_BINS, max(2 * SMALLEST_LEAF, sum(t.n_rows for t in tables) // SMALLEST_LEAF))
    values = [
        _ranks(np.concatenate([t.numbers(c.name) for t in tables]))
        if c.kind.numeric
        else np.minimum(by_frequency(np.concatenate(codes(tables, c))), bins - 1)
        for c in columns
    ]
    return TreeFeatures(np.column_stack(values), np.array([not c.kind.numeric for c in columns]), bins)


def _ranks(values: Floats) -> Floats:
    """0 … from low to high, and −1 for missing: trees refuse a column that has nothing else."""
    known = ~np.isnan(values)
    ranks = np.full(len(values), -1.0)
    ranks[known] = np.unique(values[known], return_inverse=True)[1]
    return ranks
