"""What the logistic model that tells tables apart may use of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.coordinates import labels_that_fit
from synth_audit.kernels.linear import Scaling
from synth_audit.kernels.propensity import MOST_LABELS, MOST_TERMS, ROWS_PER_TERM, by_frequency


def propensity_terms(tables: Sequence[Table], columns: Sequence[Column]) -> Floats:
    """What the model may use: numbers, indicators of labels and of missing values, shape (rows of all, p).

    Numbers are standardised on all rows, missing read as the mean; columns without spread are 0.
    """
    values, labelled = [], []
    for column in columns:
        part = column.kind.part
        if isinstance(part, NumberPart):
            values.append(np.concatenate([part.read(t.column(column.name)) for t in tables]))
        else:
            labelled.append(by_frequency(np.concatenate(codes(tables, column))))
    n = sum(t.n_rows for t in tables)
    gaps = [np.isnan(v) for v in values if np.isnan(v).any()]
    room = min(MOST_TERMS, n // ROWS_PER_TERM) - len(values) - len(gaps)
    # Of each column one label has no term, since it follows from the others.
    most = labels_that_fit([int(c.max(initial=0)) for c in labelled], room, MOST_LABELS)
    blocks = [np.column_stack(values)] if values else []
    blocks += [np.column_stack(gaps).astype(np.float64)] if gaps else []
    blocks += [_indicators(c, most) for c in labelled]
    design = np.hstack(blocks)
    return Scaling.of(design).apply(design)


def _indicators(ranked: Codes, most: int) -> Floats:
    """1 where a row holds the k-th most frequent label, k < ``most``, shape (n, ≤ most)."""
    kept = np.arange(min(most, int(ranked.max(initial=0)) + 1))
    return np.asarray(ranked[:, None] == kept, dtype=np.float64)
