"""How much the values of a column tell rows apart."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Codes


def entropy(codes: Codes) -> float:
    """Shannon entropy ``−Σ p log₂ p`` over the distinct codes in bits, missing counted as one.

    Args:
        codes: shape (n,), n ≥ 1.

    Returns:
        0 or more; equal for equal sets of frequencies, whatever the codes.
    """
    shares = np.sort(np.unique(codes, return_counts=True)[1]) / len(codes)
    return abs(float(np.sum(shares * np.log2(shares))))
