"""Confidence intervals for shares, differences of shares, medians and bootstrap draws; pure and cited."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.measurement import Interval


def critical_value(level: float) -> float:
    """z with P(|Z| ≤ z) = level for a standard normal Z; ``level`` in (0, 1)."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(successes: float, n: float, level: float) -> Interval:
    """Wilson score interval of a share.

    ``centre = (s + z²/2) / (n + z²)``,
    ``half-width = z / (n + z²) · sqrt(s (n − s) / n + z² / 4)``.

    Args:
        successes: s, between 0 and n; need not be whole when ties count in part.
        n: trials, > 0; may be an effective number.

    Raises:
        ValueError: n is not positive or successes are outside [0, n].

    Source: Wilson 1927; contrastive privacy metrics, section 3.4.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError("wilson needs n > 0 and 0 <= successes <= n")
    z = critical_value(level)
    centre = (successes + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(successes * (n - successes) / n + z * z / 4)
    low = 0.0 if successes == 0 else max(0.0, centre - half)  # exactly, where rounding would leave a trace
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high, level, "wilson")


def clopper_pearson(successes: int, n: int, level: float) -> Interval:
    """Exact interval of a share from the binomial distribution: never covers less than its level.

    ``low = B(α/2; s, n − s + 1)``, ``high = B(1 − α/2; s + 1, n − s)`` with B the quantile of the beta
    distribution; 0 and 1 at the ends. For rare events, where Wilson's may cover a little too little.
    Source: Clopper & Pearson 1934.

    Raises:
        ValueError: n is not positive or successes are outside [0, n].
    """
    from scipy.special import betaincinv  # here, since a code location must not load it

    if n <= 0 or not 0 <= successes <= n:
        raise ValueError("clopper_pearson needs n > 0 and 0 <= successes <= n")
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1 - tail))
    return Interval(low, high, level, "clopper-pearson")


def newcombe(successes_a: float, n_a: float, successes_b: float, n_b: float, level: float) -> Interval:
    """Interval of the difference of two independent shares a − b from their Wilson intervals.

    ``low = (a − b) − sqrt((a − l_a)² + (u_b − b)²)``, ``high = (a − b) + sqrt((u_a − a)² + (b − l_b)²)``.
    Source: Newcombe 1998, method 10.
    """
    a, b = successes_a / n_a, successes_b / n_b
    of_a, of_b = wilson(successes_a, n_a, level), wilson(successes_b, n_b, level)
    low = (a - b) - math.hypot(a - of_a.low, of_b.high - b)
    high = (a - b) + math.hypot(of_a.high - a, b - of_b.low)
    return Interval(low, high, level, "newcombe")


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
