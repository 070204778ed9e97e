"""Numbers that few people have, smoothed within the group of rows that they are drawn from.

Numbers are told by their level under the distribution function of their column, where all densities are near
1 and one bandwidth serves tails and middle.
"""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.kernels.margins import ATOM_ROWS, ATOM_SHARE

FEW = 5
"""Of fewer numbers in a group no spread can be told: another is drawn from anywhere in the column."""


def rare_numbers(numbers: Floats, weights: Floats, fewest: float) -> Bools:
    """Which values fewer people than ``fewest`` have, shape (n,).

    Args:
        numbers: shape (n,), without NaN. weights: of the rows, shape (n,); those of one person sum to 1 at
            most.
    """
    _, place = np.unique(numbers, return_inverse=True)
    rare: Bools = np.bincount(place, weights=weights)[place] < fewest
    return rare


def once_for_each_person(numbers: Floats, weights: Floats, fewest: float) -> Floats:
    """Each value as often as people have it, for a density in which none of few people is a peak.

    The rows of one person then count once where they agree. A value that fewer people than ``fewest`` have
    occurs less often than :func:`~synth_audit.kernels.margins.kde_margin` asks of what it gives a probability
    of its own, which would be drawn exactly.

    Args:
        numbers, weights: see :func:`rare_numbers`.
    """
    values, place = np.unique(numbers, return_inverse=True)
    people = np.bincount(place, weights=weights)
    times = np.ceil(people - 1e-9).astype(np.intp)
    rare = people < fewest
    peaks = rare & (times >= ATOM_ROWS) & ((times >= ATOM_SHARE * times.sum()) | (rare.sum() == 1))
    if peaks.any():
        times[rare] = np.minimum(times[rare], ATOM_ROWS - 1)
    return np.repeat(values, times)


def bandwidths(levels: Floats, group: Positions, least: float) -> Floats:
    """Half the width of the window from which a level is drawn in the place of each, shape (n,).

    √3 h, that of a uniform kernel of standard deviation ``h = 1.06 min(s, IQR / 1.34) m^(−1/5)`` (Silverman
    1986) of the m levels of a group. A kernel over a fixed number of people, of whom somebody is one in
    twenty, would tell who is among them.

    Args:
        levels: in [0, 1], shape (n,). group: shape (n,), in which each lies. least: of all windows.
    """
    found = np.empty(len(levels))
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        found[rows] = 1.0 if len(rows) < FEW else np.sqrt(3) * _silverman(levels[rows])
    return np.clip(found, least, 1.0)


def _silverman(levels: Floats) -> float:
    low, high = np.quantile(levels, [0.25, 0.75])
    spreads = [s for s in (float(np.std(levels)), float(high - low) / 1.34) if s > 0]
    return 1.06 * min(spreads, default=0.0) * float(len(levels) ** -0.2)


def smoothed(levels: Floats, widths: Floats, uniform: Floats) -> Floats:
    """A level from the window around each, reflected at 0 and 1, shape (n,).

    Args:
        widths: of :func:`bandwidths`, at most 1. uniform: in [0, 1), shape (n,).
    """
    moved = np.abs(levels + widths * (2 * uniform - 1))
    inside: Floats = 1 - np.abs(1 - moved)
    return inside
