"""What trees that tell tables apart may use of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.discrimination import MOST_BINS, SMALLEST_LEAF, TreeFeatures
from synth_audit.kernels.propensity import by_frequency


def tree_features(tables: Sequence[Table], columns: Sequence[Column]) -> TreeFeatures:
    """Numbers by their rank, since trees see nothing else; labels by their frequency."""
    bins = min(MOST_BINS, max(2 * SMALLEST_LEAF, sum(t.n_rows for t in tables) // SMALLEST_LEAF))
    values, discrete = [], []
    for column in columns:
        part = column.kind.part
        discrete.append(not isinstance(part, NumberPart))
        if isinstance(part, NumberPart):
            values.append(_ranks(np.concatenate([part.read(t.column(column.name)) for t in tables])))
        else:
            ranked = by_frequency(np.concatenate(codes(tables, column)))
            values.append(np.minimum(ranked, bins - 1).astype(np.float64))
    return TreeFeatures(np.column_stack(values), np.array(discrete), bins)


def _ranks(values: Floats) -> Floats:
    """0 … from low to high, and −1 for missing: trees refuse a column that has nothing else."""
    known = ~np.isnan(values)
    ranks = np.full(len(values), -1.0)
    ranks[known] = np.unique(values[known], return_inverse=True)[1]
    return ranks
