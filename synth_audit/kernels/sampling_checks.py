"""Whether batches were Poisson samples, as the accountant was told: by their sizes and their members."""

from __future__ import annotations

import math

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Integers


def sizes_distance(sizes: Integers, n_rows: int, rate: float) -> float:
    """Largest distance of the sizes' distribution function from that of Bin(n_rows, rate).

    Args:
        sizes: of independent batches, shape (m,).
    """
    return _distance(sizes, n_rows, rate)


def recurrence_distance(drawn: Bools, rate: float) -> float:
    """Largest distance of how often a row is drawn in stretches of k = ⌈1 / rate⌉ batches from Bin(k, rate).

    Batches that divide the shuffled rows among them draw each row once in every stretch; batches of one size,
    drawn anew each time, are seen by their sizes.

    Args:
        drawn: whether the row was in each batch, in order, shape (m,).
    """
    stretch = math.ceil(1 / rate - 1e-9)
    whole = len(drawn) // stretch * stretch
    return _distance(drawn[:whole].reshape(-1, stretch).sum(axis=1), stretch, rate)


def largest_by_chance(m: int, alpha: float) -> float:
    """What such a distance exceeds with probability α at most: ``√(ln(2 / α) / 2 m)`` (Massart 1990)."""
    return math.sqrt(math.log(2 / alpha) / (2 * m)) if m else math.inf


def _distance(counts: Integers, trials: int, rate: float) -> float:
    from scipy.special import bdtr  # here, since a code location must not load it

    at = np.arange(trials + 1)
    expected: Floats = bdtr(at, trials, rate)
    seen = np.searchsorted(np.sort(counts), at, side="right") / max(1, len(counts))
    return float(np.abs(seen - expected).max())
