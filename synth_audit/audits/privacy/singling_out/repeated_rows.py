"""Rows that a large release repeats because of its size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth_audit.core.subject import Subject
from synth_audit.kernels.predicates import CodedRows, ColumnCodebook
from synth_audit.kernels.repeats import repeated_at_most, row_kinds


def without_repeats(
    subject: Subject, synthetic: CodedRows, lexicon: ColumnCodebook
) -> tuple[Subject, CodedRows]:
    """The release, as it stands in the subject and coded, with rows once that its size lets repeat.

    With r rows for each training row a copied record is there about r times, and no description of it fits
    exactly one row. So of equal rows that are at most ⌈r⌉ the first stays. Where more are equal they stay
    together: as many people may be alike.
    """
    most = -(-len(synthetic) // subject.train.n_rows)
    if most < 2:
        return subject, synthetic
    kept = repeated_at_most(row_kinds(synthetic.codes.T), most)
    lasts = [lexicon.last(j) for j in range(len(lexicon))]
    rows = CodedRows.of(np.ascontiguousarray(synthetic.codes[:, kept]), lasts)
    return replace(subject, synthetic=subject.synthetic.take(kept)), rows
