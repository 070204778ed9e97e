"""Areas under ROC curves with intervals, and true positive rates at few false positives."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.findings.measurement import Interval, IntervalEstimate
from synth_audit.stats.proportions import NOTHING_SEEN, unseen_share
from synth_audit.stats.resampling import critical_value


def placement_values(these: Floats, those: Floats) -> Floats:
    """Share of ``those`` below each of ``these``, ties half, shape of ``these``; their mean is the AUROC.

    Source: DeLong, DeLong & Clarke-Pearson 1988.
    """
    ordered = np.sort(those)
    both = np.searchsorted(ordered, these, "left") + np.searchsorted(ordered, these, "right")
    share: Floats = both / (2 * len(those))
    return share


def auroc(members: Floats, others: Floats) -> float:
    """``AUROC = P(member > other) + ½ P(member = other)`` of scores, shapes (m,) and (n,); in [0, 1]."""
    return float(placement_values(members, others).mean())


def resampled_auroc(scores: Floats, member: Bools, weights: Floats) -> Floats:
    """:func:`auroc` of every resample of the rows, all at once.

    Args:
        scores, member: shape (m,) each. weights: how often each row counts, shape (d, m).

    Returns:
        shape (d,); NaN where a resample holds no member, or nobody else.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    ordered = weights[:, order]
    everyone = np.add.reduceat(ordered, starts, axis=1)
    members = np.add.reduceat(ordered * member[order], starts, axis=1)
    others = everyone - members
    below = np.cumsum(others, axis=1) - 0.5 * others
    pairs = members.sum(axis=1) * others.sum(axis=1)
    found = np.einsum("ij,ij->i", members, below)
    areas: Floats = np.where(pairs > 0, found / np.where(pairs > 0, pairs, 1.0), np.nan)
    return areas


@dataclass(frozen=True, eq=False)
class PlacementValues:
    """Where each row of two groups stands among the scores of the other; ties count half.

    Attributes:
        members: share of the others below each member, shape (m,).
        others: share of the members above each of the others, shape (n,).
    """

    members: Floats
    others: Floats

    @classmethod
    def of(cls, members: Floats, others: Floats) -> "PlacementValues":
        """From the scores of both groups, shapes (m,) and (n,)."""
        return cls(placement_values(members, others), 1 - placement_values(others, members))

    @property
    def auroc(self) -> float:
        """See :func:`auroc`."""
        return float(self.members.mean())

    @property
    def variance(self) -> float:
        """DeLong's, of :attr:`auroc`: ``var(members) / m + var(others) / n``; a group of one adds nothing."""
        return float(sum(np.var(x, ddof=1) / len(x) for x in (self.members, self.others) if len(x) > 1))

    def less(self, other: "PlacementValues") -> "PlacementValues":
        """Differences row by row, whose mean and variance are those of the difference of two areas."""
        return PlacementValues(self.members - other.members, self.others - other.others)


def auroc_interval(members: Floats, others: Floats, level: float) -> Interval:
    """The wider at each end of DeLong's interval and Newcombe's.

    DeLong's knows the true spread of the scores, but has none where the two groups do not overlap or are few;
    Newcombe's (fifth method) inverts ``(AUC − θ)² = z² V(θ)``,
    ``V(θ) = θ(1 − θ) [2N − 1 − (3N − 3) / ((2 − θ)(1 + θ))] / (m n)`` with ``N = (m + n) / 2``, so it has
    some at either end. Sources: DeLong et al. 1988; Hanley & McNeil 1982; Newcombe 2006.
    """
    placed, z = PlacementValues.of(members, others), critical_value(level)
    value, half = placed.auroc, z * math.sqrt(placed.variance)
    m, n = len(members), len(others)

    def apart(theta: float) -> float:
        half_sum = (m + n) / 2
        inside = 2 * half_sum - 1 - (3 * half_sum - 3) / ((2 - theta) * (1 + theta))
        return abs(theta - value) - z * math.sqrt(max(0.0, theta * (1 - theta) * inside / (m * n)))

    low, high = _crossing(apart, 0.0, value), _crossing(apart, 1.0, value)
    ends = max(0.0, min(low, value - half)), min(1.0, max(high, value + half))
    return Interval(*ends, level, "delong and newcombe")


def auroc_influence(scores: Floats, member: Bools) -> tuple[float, Floats]:
    """AUROC of members against the rest, and what each row adds to its error.

    ``ψ = (placement value − AUROC) / sqrt(k (k − 1))`` with k the rows of its own side, so that ``Σ ψ²`` is
    DeLong's variance of the AUROC, and ``Σ (ψ − ψ')²`` that of a difference between two models on the same
    rows.

    Args:
        scores: shape (m,). member: at least two rows on either side, shape (m,).

    Returns:
        AUROC, and ψ, shape (m,).
    """
    placed = PlacementValues.of(scores[member], scores[~member])
    placement = np.empty(len(scores))
    placement[member], placement[~member] = placed.members, placed.others
    sizes = np.where(member, member.sum(), (~member).sum()).astype(np.float64)
    return placed.auroc, (placement - placed.auroc) / np.sqrt(sizes * (sizes - 1.0))


def mean_auroc(folds: Sequence[PlacementValues]) -> float:
    """Mean of the areas of all folds."""
    return float(np.mean([f.auroc for f in folds]))


def cross_fitted_interval(folds: Sequence[PlacementValues], level: float) -> Interval:
    """Interval of :func:`mean_auroc`: ``± z · sqrt(2 Σ v) / folds`` with DeLong's variance v of each fold.

    Folds learn from each other: what the rows of one teach about those of another, these teach about the
    first as well. Between tables that are alike, where all is chance, such pairs count twice, which at most
    doubles the variance. Where no two rows ever change places the interval is as wide as a share's for
    something that none of the rows of the smaller table showed.
    """
    value = mean_auroc(folds)
    half = critical_value(level) * float(np.sqrt(2 * sum(f.variance for f in folds))) / len(folds)
    if half > 0:
        return Interval(value - half, value + half, level, "delong, doubled for shared rows")
    rows = min(sum(len(f.members) for f in folds), sum(len(f.others) for f in folds))
    room = unseen_share(rows, level)
    return Interval(value - room, value + room, level, NOTHING_SEEN)


def _crossing(apart: Callable[[float], float], outer: float, inner: float) -> float:
    """Where ``apart`` turns from negative at ``inner`` to positive towards ``outer``, by halving.

    At an ``inner`` of 0 or 1 it is 0 as well, which a search for roots would take for the answer.
    """
    if outer == inner:
        return outer
    for _ in range(60):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if apart(middle) > 0 else (outer, middle)
    return outer


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


def precision(hits: int, n_members: int, false_alarms: int, n_others: int, level: float) -> IntervalEstimate:
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
    return IntervalEstimate(value, Interval(min(low, value), max(high, value), level, "katz"))
