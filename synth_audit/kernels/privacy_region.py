"""What (ε, δ)-differential privacy leaves any attacker: rates of detection, and the advantage."""

from __future__ import annotations

import math

LARGEST_EPSILON = 700.0
"""Of a larger one the exponential overflows, and nothing is promised anyway."""


def most_found(false_alarms: float, epsilon: float, delta: float) -> float:
    """The largest true-positive rate at a rate of false alarms, ``min(1, e^ε f + δ, 1 − e^−ε (1 − δ − f))``.

    The two tables differ by what the guarantee hides. Concave in ``f``: it holds for a mean over several
    games too.

    Args:
        false_alarms: f, in [0, 1]. epsilon: at least 0. delta: in [0, 1).

    Returns:
        In [f, 1].

    Source: Wasserman & Zhou 2010; Kairouz, Oh & Viswanath 2015.
    """
    factor = math.exp(min(epsilon, LARGEST_EPSILON))
    rising = factor * false_alarms + delta
    falling = 1 - (1 - delta - false_alarms) / factor
    return min(1.0, rising, falling)


def most_advantage(epsilon: float, delta: float) -> float:
    """The largest difference of both rates, ``(e^ε − 1 + 2δ) / (e^ε + 1)``, where the two lines above meet.

    Source: Kairouz, Oh & Viswanath 2015; Humphries et al. 2023.
    """
    factor = math.exp(min(epsilon, LARGEST_EPSILON))
    return (factor - 1 + 2 * delta) / (factor + 1)


def of_replacing(epsilon: float, delta: float) -> tuple[float, float]:
    """The guarantee against one row in another's place, where that of adding or removing one is given.

    Two steps between neighbours: ``(2 ε, (1 + e^ε) δ)``. Source: Dwork & Roth 2014, group privacy.
    """
    return 2 * epsilon, min(1.0, (1 + math.exp(min(epsilon, LARGEST_EPSILON))) * delta)
