"""Rows that a large release repeats because of its size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth_audit.core.arrays import Codes32
from synth_audit.core.subject import Subject
from synth_audit.kernels.repeats import repeated_at_most, row_kinds


def without_repeats(subject: Subject, synthetic: Codes32) -> tuple[Subject, Codes32]:
    """The release, as it stands in the subject and coded, with rows once that its size lets repeat.

    With r rows for each training row a copied record is there about r times, and no description of it fits
    exactly one row. So of equal rows that are at most ⌈r⌉ the first stays. Where more are equal they stay
    together: as many people may be alike.

    Args:
        synthetic: shape (d, n).
    """
    most = -(-synthetic.shape[1] // subject.train.n_rows)
    if most < 2:
        return subject, synthetic
    kept = repeated_at_most(row_kinds(synthetic.T), most)
    rows = np.ascontiguousarray(synthetic[:, kept])
    return replace(subject, synthetic=subject.synthetic.take(kept)), rows
