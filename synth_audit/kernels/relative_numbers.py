"""Numbers by what stays where one secret of a person or a group moved, scaled or turned all of them alike."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Floats

_DIGITS = 9
"""Of a share of the range: less is what floats lose."""

_APART = 4e3
"""Further than two logarithms of numbers can be from one another."""


def in_range(values: Floats, low: float, high: float) -> Floats:
    """Numbers as shares of a range, ``(x − low) / (high − low)``; shape (n,)."""
    wide = max(high / 2 - low / 2, np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        return (values / 2 - low / 2) / wide


def folded(shares: Floats) -> Floats:
    """How far shares of a range are from its middle, ``|u − ½|``: this stays where they were turned round."""
    return np.abs(shares - 0.5)


def difference(one: Floats, other: Floats, *, circular: bool) -> Floats:
    """``u − v``, which stays where both were moved by one share of their ranges, shape (n,).

    Args:
        circular: mod 1, since what passed one end of its range may have come in again at the other.
    """
    with np.errstate(invalid="ignore"):
        apart = one - other
        return np.mod(np.round(apart, _DIGITS), 1.0) if circular else apart


def ratio(one: Floats, other: Floats) -> Floats:
    """``log |x / y|``, which stays where both were scaled by one factor, shape (n,).

    Pairs of other signs, or with a zero, lie far from all others.
    """
    sizes = [np.log(np.abs(np.where(x == 0, 1.0, x))) for x in (one, other)]
    apart = np.where((one == 0) | (other == 0), 0.0, sizes[0] - sizes[1])
    return apart + _APART * (3 * np.sign(one) + np.sign(other))
