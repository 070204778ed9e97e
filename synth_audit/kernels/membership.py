"""How well scores tell training records from strangers: rates at a few false alarms, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.measurement import Interval
from synth_audit.kernels.intervals import critical_value
from synth_audit.kernels.proportion_interval import clopper_pearson


class Rate(NamedTuple):
    """A share with its interval."""

    value: float
    interval: Interval


def alarm(scores: Floats, others: Floats, rate: float) -> Floats:
    """How surely each record is called a member when a stranger is with probability ``rate``, shape (m,).

    With G and E the number of the n strangers above and at a score, the smoothed rank
    ``(G + U (1 + E)) / (n + 1)`` with U uniform is itself uniform for one more stranger, whatever the ties;
    the record is called a member where it is at most ``rate``, so
    ``alarm = clip(((n + 1) · rate − G) / (1 + E), 0, 1)``, whose mean over strangers is ``rate`` exactly.
    Source: smoothed conformal p-values, Vovk et al. 2005.
    """
    return _beyond(scores, others, rate * (len(others) + 1))


def alarms(scores: Floats, others: Floats, rates: Floats) -> Iterator[Floats]:
    """What :func:`alarm` tells at each of several rates."""
    above, level = _above(scores, others)
    for rate in rates.tolist():
        yield np.clip((rate * (len(others) + 1) - above) / (1 + level), 0.0, 1.0)


def own_alarm(others: Floats, rate: float) -> Floats:
    """The same for each of the strangers against the rest of them, shape (n,)."""
    ordered = np.sort(others)
    above = len(ordered) - np.searchsorted(ordered, others, "right")
    level = np.searchsorted(ordered, others, "right") - np.searchsorted(ordered, others, "left")
    return np.clip((rate * len(others) - above) / level, 0.0, 1.0)


def detection(members: Floats, others: Floats, rate: float, level: float) -> Rate:
    """True-positive rate at a false-positive rate, with an interval that pays for not knowing the threshold.

    The score that strangers exceed with probability ``rate`` lies between the B-th and the (B + 1)-th largest
    of n strangers, B binomial(n, rate). Half of the error goes to the range of B, half to Clopper–Pearson's
    interval of the members beyond its two ends; with too few strangers the low end is 0. Ties count in part.

    Args:
        members: scores, shape (m,). others: shape (n,). rate: in (0, 1).
    """
    from scipy.stats import binom  # here, since a code location must not load it

    m, n = len(members), len(others)
    half_level = 1 - (1 - level) / 2
    few, many = (int(b) for b in binom.ppf([(1 - half_level) / 2, (1 + half_level) / 2], n, rate))
    fewest = math.floor(float(np.sum(_beyond(members, others, few))) + 1e-9)
    most = math.ceil(float(np.sum(_beyond(members, others, many + 1))) - 1e-9)
    low = clopper_pearson(fewest, m, half_level).low if few else 0.0
    high = clopper_pearson(min(m, most), m, half_level).high
    value = float(np.mean(alarm(members, others, rate)))
    return Rate(value, Interval(min(low, value), max(high, value), level, "clopper-pearson over thresholds"))


def precision(hits: int, n_members: int, false_alarms: int, n_others: int, level: float) -> Rate:
    """Share of members among the flagged, had as many members as others been asked about.

    ``TPR / (TPR + FPR)``, with Katz's interval of ``log(FPR / TPR)`` (½ added to every count, after Walter
    1975) carried through. NaN if nobody is flagged.
    """
    tpr, fpr = hits / n_members, false_alarms / n_others
    a, m, b, n = hits + 0.5, n_members + 0.5, false_alarms + 0.5, n_others + 0.5
    centre = math.log(b / n) - math.log(a / m)
    half = critical_value(level) * math.sqrt(1 / a - 1 / m + 1 / b - 1 / n)
    value = tpr / (tpr + fpr) if hits + false_alarms else math.nan
    low, high = (1 / (1 + math.exp(x)) for x in (centre + half, centre - half))
    return Rate(value, Interval(min(low, value), max(high, value), level, "katz"))


def _beyond(scores: Floats, others: Floats, rank: float) -> Floats:
    """How surely each score is beyond the ``rank``-th largest of the others, ties at random, shape (m,)."""
    above, level = _above(scores, others)
    return np.clip((rank - above) / (1 + level), 0.0, 1.0)


def _above(scores: Floats, others: Floats) -> tuple[Positions, Positions]:
    """How many of the others are above each score, and how many at it, shape (m,)."""
    ordered = np.sort(others)
    upto = np.searchsorted(ordered, scores, "right")
    return len(ordered) - upto, upto - np.searchsorted(ordered, scores, "left")
