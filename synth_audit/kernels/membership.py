"""Whom scores name at a few false alarms, and the precision of naming."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.measurement import Interval
from synth_audit.kernels.intervals import critical_value


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
    ordered = np.sort(others)
    upto = np.searchsorted(ordered, scores, "right")
    level = upto - np.searchsorted(ordered, scores, "left")
    above = len(ordered) - upto
    return np.clip((rate * (len(others) + 1) - above) / (1 + level), 0.0, 1.0)


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
