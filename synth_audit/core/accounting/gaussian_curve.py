"""The exact privacy curve of Gaussian noise: what epsilon it has at which delta."""

from __future__ import annotations

import math

_ROUNDED = 1 - 1e-6  # of delta: far more than floats lose on the way, and less than 1e-6 of epsilon
_HALVINGS = 100  # more than floats have


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε, rounded up, at which a Gaussian mechanism is (ε, δ)-differentially private.

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), which falls with ε (Balle & Wang 2018, theorem 8). Mechanisms of
    μ₁, μ₂ … whose parameters were set beforehand are together one of √(μ₁² + μ₂² + …) (Dong et al. 2022).

    Args:
        mu: the largest L2 change of what noise is added to, over its standard deviation; above 0.
        delta: in (0, 1).

    Returns:
        0 or more.
    """
    wanted = delta * _ROUNDED
    if _delta(0.0, mu) <= wanted:
        return 0.0
    low, high = 0.0, mu
    while _delta(high, mu) > wanted:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _delta(middle, mu) > wanted else (low, middle)
    return high


def _delta(epsilon: float, mu: float) -> float:
    """e^ε Φ(b) is written as φ(a) Φ(b) / φ(b), in which nothing overflows: b² − a² = 2 ε."""
    from scipy.special import erfcx, ndtr  # here, so that looking around stays light

    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return float(ndtr(a) - math.exp(-a * a / 2) * erfcx(-b / math.sqrt(2)) / 2)
