"""Confidence intervals from bootstrap draws, and quantiles of resamples; not those of shares."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.measurement import Interval


def critical_value(level: float) -> float:
    """z with P(|Z| ≤ z) = level for a standard normal Z; ``level`` in (0, 1)."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def enough_draws(asked: int, level: float) -> int:
    """Bootstrap draws of which five lie beyond either end of a central interval, or more if asked for."""
    return max(asked, math.ceil(10 / (1 - level) - 1e-9))


def percentile_interval(draws: Floats, level: float, method: str = "bootstrap percentile") -> Interval:
    """Central interval of bootstrap draws, shape (n_draws,)."""
    low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level, method)


def normal_interval(value: float, draws: Floats, level: float) -> Interval:
    """``value ± z · standard deviation of the bootstrap draws``.

    For statistics that are biased upwards by noise (distances between distributions), where a
    percentile interval would add the bias a second time and could miss the value itself.
    """
    half = critical_value(level) * float(np.std(draws, ddof=1))
    return Interval(value - half, value + half, level, "bootstrap standard error")


def resampled_quantile(ordered: Floats, q: float, n_draws: int, rng: np.random.Generator) -> Floats:
    """The q-quantile of ``n_draws`` bootstrap resamples of a sorted sample, without resampling.

    The quantile is the order statistic of rank k = ⌈q·n⌉. In a resample of n values the k-th smallest is
    ``ordered[⌊n·U⌋]`` where U is the k-th smallest of n uniforms, which is Beta(k, n − k + 1): the draws have
    exactly the distribution of the resampled statistic, at no cost in n.

    Args:
        ordered: sorted ascending, shape (n,), n ≥ 1.
        q: in (0, 1].

    Returns:
        shape (n_draws,).
    """
    n = len(ordered)
    rank = quantile_rank(n, q)
    uniform = rng.beta(rank, n - rank + 1, size=n_draws)
    return ordered[np.minimum((uniform * n).astype(np.int64), n - 1)]


def quantile_rank(n: int, q: float) -> int:
    """Rank k = ⌈q·n⌉ of the order statistic used as q-quantile, at least 1."""
    return min(n, max(1, math.ceil(q * n - 1e-9)))
