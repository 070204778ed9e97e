"""Intervals from bootstrap draws, and of games that are played several times."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Positions
from synth_audit.findings.measurement import BOX_LINES, Interval


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


def reference_rows(n_rows: int, excluded: npt.ArrayLike, size: int, rng: np.random.Generator) -> Positions:
    """Positions of at most ``size`` of ``n_rows`` rows, drawn without replacement, ascending.

    Args:
        excluded: positions that must not be drawn, such as targets that play outsiders.
        size: at least 1; fewer rows come back when fewer are there.
    """
    allowed = np.ones(n_rows, dtype=bool)
    allowed[np.asarray(excluded, dtype=np.intp)] = False
    candidates = np.flatnonzero(allowed)
    return np.sort(rng.choice(candidates, min(size, len(candidates)), replace=False)).astype(np.intp)


def mean_interval(values: Floats, level: float) -> Interval:
    """Student's interval of the mean of independent iterations: ``x̄ ± t_{n−1} · s / √n``.

    Args:
        values: one per iteration, shape (n,), n ≥ 2.
        level: coverage, in (0, 1).

    Raises:
        ValueError: fewer than two values.

    Source: Student 1908.
    """
    from scipy.special import stdtrit  # here, since a code location must not load it

    n = len(values)
    if n < 2:
        raise ValueError("an interval over iterations needs at least two of them")
    mean = float(np.mean(values))
    half = float(stdtrit(n - 1, 0.5 + level / 2)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Interval(mean - half, mean + half, level, "student t over iterations")


def ratio_interval(numerators: Floats, denominators: Floats, level: float) -> Interval:
    """Student's interval of ``ρ = Σ a / Σ b`` over iterations, by the delta method.

    The residuals ``(a − ρ b) / b̄`` have mean 0; their standard error is that of ρ. Numerator and denominator
    come from the same iteration, so that what they share cancels.

    Args:
        numerators, denominators: one per iteration, shape (n,) each, n ≥ 2; the mean of ``b`` is not 0.

    Raises:
        ValueError: fewer than two iterations, or a mean of 0 below.

    Source: Cochran 1977, section 6.4.
    """
    below = float(np.mean(denominators))
    if below == 0:
        raise ValueError("a ratio needs a denominator other than 0")
    ratio = float(np.mean(numerators)) / below
    around = mean_interval((numerators - ratio * denominators) / below, level)
    half = (around.high - around.low) / 2
    return Interval(ratio - half, ratio + half, level, "student t over iterations, ratio")


def box_lines(groups: Sequence[Floats]) -> dict[str, tuple[float, ...]]:
    """Lines of a series of boxes: minimum, quartiles and maximum of each group, shape (n_i,), n_i ≥ 1."""
    marks = [np.quantile(group, [0.0, 0.25, 0.5, 0.75, 1.0]) for group in groups]
    return {name: tuple(float(m[i]) for m in marks) for i, name in enumerate(BOX_LINES)}
