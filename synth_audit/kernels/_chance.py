"""How much mutual information chance alone puts into a table of counts."""

from __future__ import annotations

from functools import cache

import numpy as np

from synth_audit.core.arrays import Floats

_STEPS, _LARGEST = 256, 8
"""Steps of the table to a unit of ``√λ``, and the ``√λ`` beyond which it is level."""


def chance_information(of_a: Floats, of_b: Floats, n: int) -> Floats:
    """What each cell of a table of two independent columns adds to ``n I`` on average, given its margins.

    A cell's count N is nearly Poisson with mean ``λ = n_i n_j / n``, which would add
    ``h(λ) = E[N log N] − λ log λ``. Fixed margins take the share ``c = 1 − (1 − n_i/n)(1 − n_j/n)`` of its
    variance away, and with it ``c λ E[Δ² N log N] / 2``, to the first order of Charlier's expansion. Both are
    read off a table; summed over the cells this is the expectation of Vinh, Epps & Bailey 2010, which would
    cost time in proportion to the counts.

    Args:
        of_a, of_b: rows in each cell of either column, shapes (r,) and (k,).

    Returns:
        shape (r, k), in nats.
    """
    excess, lessened = _of_poisson()
    place = np.sqrt(of_a / n)[:, None] * (_STEPS * np.sqrt(of_b)) + 0.5
    at = np.minimum(place, len(excess) - 1).astype(np.int32)
    kept = (1 - of_a / n)[:, None] * (1 - of_b / n)
    chance: Floats = excess[at] - (1 - kept) * lessened[at]
    return chance


@cache
def _of_poisson() -> tuple[Floats, Floats]:
    """``h(λ) = λ (E[log(N + 1)] − log λ)`` and ``λ E[Δ² N log N] / 2`` on a grid of ``√λ``."""
    root = np.arange(_LARGEST * _STEPS + 1) / _STEPS
    mean = np.maximum(root**2, 1e-12)
    counts = np.arange(4.0 * _LARGEST**2)
    logs = np.log(counts + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(logs)[:-1]])
    share = np.exp(counts * np.log(mean)[:, None] - mean[:, None] - log_factorials)
    bent = (
        counts * np.log(np.maximum(counts, 1)) - 2 * (counts + 1) * logs + (counts + 2) * np.log(counts + 2)
    )
    return mean * ((share * logs).sum(axis=1) - np.log(mean)), mean * (share * bent).sum(axis=1) / 2
