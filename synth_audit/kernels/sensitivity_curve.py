"""From the answers to planted leaks to the leak that a value amounts to, and the smallest that shows."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

from synth_audit.kernels.intervals import critical_value

DETECTED = 0.95
"""Probability with which the minimum detectable leak must show."""


class Ends(NamedTuple):
    """A value with its interval, on a scale where higher is worse."""

    value: float
    low: float
    high: float


def oriented(value: float, low: float, high: float, *, lower_is_safer: bool) -> Ends:
    """The same numbers on a scale where higher is worse."""
    return Ends(value, low, high) if lower_is_safer else Ends(-value, -high, -low)


def separated(clean: Ends, full: Ends) -> bool:
    """True when the interval at a full copy lies wholly beyond the one at a clean release."""
    return full.low > clean.high and full.value > clean.value


def leak_equivalent(value: Ends, clean: Ends, full: Ends) -> Ends:
    """Share of copied rows that would give the value, on the line from a clean release to a full copy.

    ``f = (v − c) / (w − c)``. Interval by the method of variance estimates recovery: the distances of the
    three values to their interval ends, weighted by 1, 1 − f and f, are added in squares,
    ``low = f − sqrt((v − l_v)² + ((1 − f)(u_c − c))² + (f (u_w − w))²) / (w − c)``, ``high`` likewise with
    the other ends. Where the clean value is known without error, its interval has no width.
    Source: Zou & Donner 2008 for the method; the restatement is ours.

    Returns:
        Unclipped: below 0 when the value is better than a clean release shows.
    """
    span = full.value - clean.value
    f = (value.value - clean.value) / span
    below = math.hypot(
        value.value - value.low, (1 - f) * (clean.high - clean.value), f * (full.high - full.value)
    )
    above = math.hypot(
        value.high - value.value, (1 - f) * (clean.value - clean.low), f * (full.value - full.low)
    )
    return Ends(f, f - below / span, f + above / span)


def detection_probability(share: float, span: float, half_width: float, level: float) -> float:
    """Probability that an interval at a leak of this share lies wholly beyond the clean value.

    ``Φ(f · span / sd − z)`` with ``sd = half_width / z``: the value at f is normal around
    ``clean + f · span``, and its lower end is z · sd below it.
    """
    z = critical_value(level)
    if half_width <= 0:
        return 1.0 if share > 0 else 0.0
    return NormalDist().cdf(share * span * z / half_width - z)


def minimum_detectable(span: float, half_width: float, level: float) -> float | None:
    """Smallest share of copies that shows with probability :data:`DETECTED`; None when even all would not.

    ``f = (z + z_0.95) / z · half_width / span``, from :func:`detection_probability`.
    """
    z = critical_value(level)
    share = (1 + NormalDist().inv_cdf(DETECTED) / z) * max(half_width, 0.0) / span
    return share if share <= 1 else None
