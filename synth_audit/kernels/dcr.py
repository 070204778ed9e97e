"""Closest-record statistics on arrays of distances: pure functions, ties counted."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.measurement import Interval
from synth_audit.kernels.intervals import quantile_rank
from synth_audit.kernels.neighbours import Nearest
from synth_audit.kernels.proportion_interval import proportion_interval

Places = npt.NDArray[np.int32]

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class Threshold(NamedTuple):
    """The α-quantile of the real distances, with the part of its ties that makes up exactly α."""

    distance: float
    tie_part: float


def threshold(ordered: Floats, alpha: float) -> Threshold:
    """Quantile q and tie part γ with ``P(D < q) + γ·P(D = q) = α`` on a sorted sample, shape (n,)."""
    q = float(ordered[quantile_rank(len(ordered), alpha) - 1])
    below, upto = np.searchsorted(ordered, q, "left"), np.searchsorted(ordered, q, "right")
    n = len(ordered)
    return Threshold(q, float((alpha - below / n) / ((upto - below) / n)))


def score_of(close: float, limit: Threshold, alpha: float) -> float:
    """DCR privacy score from the share of close synthetic rows.

    ``score = (DCR − 1) / (DCR_max − 1)``, ``DCR = close / α``. A copy of train has distance 0 everywhere, so
    DCR_max = 1/α, which gives the published ``(α/100)(DCR − 1)/(1 − α/100)``. Where real duplicates are so
    common that q = 0, DCR_max = γ/α: the scale still runs to 1 at a full copy instead of hiding it.

    Returns:
        At most 1; NaN where a full copy cannot be told from chance (every control row is a duplicate).
    """
    most = (1.0 if limit.distance > 0 else limit.tie_part) / alpha
    return (close / alpha - 1) / (most - 1) if most > 1 + 1e-9 else float("nan")


def privacy_score(synthetic: Floats, control: Floats, alpha: float) -> float:
    """DCR privacy score in its size-correct form.

    Args:
        synthetic: d(s, train), shape (n_s,). control: d(c, train), shape (n_c,): the same reference set.
        alpha: share of real distances that counts as close.

    Returns:
        0 no perceived risk, 1 everything leaked; see :func:`score_of`.
    """
    limit = threshold(np.sort(control), alpha)
    return score_of(_close(synthetic, limit), limit, alpha)


def proportion_privacy_score(synthetic: Floats, control: Floats, alpha: float, level: float) -> Interval:
    """Scores of the ends of the interval for the share of close rows, control rows taken as fixed.

    A resample of rows none of which is close has none either: where the bootstrap sees no spread,
    this still says how many close rows may have been missed.
    """
    limit = threshold(np.sort(control), alpha)
    n = len(synthetic)
    ends = proportion_interval(_close(synthetic, limit) * n, n, level)
    return Interval(score_of(ends.low, limit, alpha), score_of(ends.high, limit, alpha), level, ends.method)


def _close(synthetic: Floats, limit: Threshold) -> float:
    """Share of rows nearer than the threshold, those at it counting in part."""
    at = float(np.mean(synthetic == limit.distance))
    return min(1.0, float(np.mean(synthetic < limit.distance)) + limit.tie_part * at)


def bootstrap_privacy_score(
    synthetic: Floats,
    control: Floats,
    alpha: float,
    n_draws: int,
    rng: np.random.Generator,
    *,
    fellows: Floats | None = None,
) -> Floats:
    """Privacy scores of resampled synthetic and control rows, shape (n_draws,).

    Control rows are resampled, and so are people of train beside them, half as many and each twice, since two
    who are each other's nearest are one draw. How many resampled synthetic rows fall below or at the
    threshold is multinomial in the original shares, so it is drawn as such: the same distribution, without
    the rows.

    Args:
        fellows: distance of people of train to the nearest of the others; none if left out.
    """
    n, k = len(synthetic), len(control)
    among = np.empty(0) if fellows is None else fellows
    real, places = _ranked(np.concatenate([control, among]))
    ends = _ends(real, real)
    below, upto = _ends(np.sort(synthetic), real)
    draws = np.empty(n_draws)
    for i in range(n_draws):
        drawn = places[rng.integers(0, k, k)]
        if len(among):
            twice = np.repeat(rng.integers(k, len(places), max(len(among) // 2, 1)), 2)
            drawn = np.concatenate([drawn, places[twice]])
        place, limit = _resampled_threshold(real, ends, drawn, alpha)
        low, high = int(below[place]), int(upto[place])
        n_below, n_at, _ = rng.multinomial(n, [low / n, (high - low) / n, max(0.0, 1 - high / n)]).tolist()
        draws[i] = score_of((n_below + limit.tie_part * n_at) / n, limit, alpha)
    return draws


def _ranked(values: Floats) -> tuple[Floats, Places]:
    """Values in order, and the place of each in it, shape (n,) both."""
    order = np.argsort(values, kind="stable")
    places = np.empty(len(values), dtype=np.int32)
    places[order] = np.arange(len(values), dtype=np.int32)
    return values[order], places


def _ends(ordered: Floats, values: Floats) -> tuple[Places, Places]:
    """How many lie below each value and how many up to it, shape (n,) both."""
    below, upto = (np.searchsorted(ordered, values, side).astype(np.int32) for side in _SIDES)
    return below, upto


def _resampled_threshold(
    ordered: Floats, ends: tuple[Places, Places], drawn: Places, alpha: float
) -> tuple[int, Threshold]:
    """:func:`threshold` of ``ordered[drawn]``, and its place: only the few up to it are put in order.

    Args:
        ends: how many of ``ordered`` lie below each of it, and up to it.
    """
    n, rank = len(drawn), quantile_rank(len(drawn), alpha)
    low = drawn[drawn < rank + 8 * math.isqrt(rank) + 8]
    low = low if len(low) >= rank else drawn.copy()
    low.partition(rank - 1)
    place = int(low[rank - 1])
    below, upto = (np.count_nonzero(drawn < end[place]) for end in ends)
    return place, Threshold(float(ordered[place]), float((alpha - below / n) / ((upto - below) / n)))


class ClosestShare(NamedTuple):
    """Share of synthetic rows whose nearest real row is in train, and how many rows that is worth."""

    share: float
    n_effective: float


def closest_share(to_train: Nearest, to_control: Nearest, n_train: int) -> ClosestShare:
    """P(the nearest real row is a training row), a tie counting by how many of the tied rows are.

    Picking one of the tied rows at random makes the expectation exactly n_train / (n_train + n_control)
    for a release that is independent of the split; half a point per tie would not, for unequal sizes, and
    would let a copy of a table with many duplicates pass.

    Several synthetic rows may share one nearest real row and then count as one draw, so the number
    of independent draws is ``n² / Σ_r w_r²`` with w_r the synthetic rows whose nearest row is r.
    """
    in_train = part_nearer(to_train, to_control)
    whose = np.where(in_train >= 0.5, to_train.index, n_train + to_control.index)
    return ClosestShare(float(in_train.mean()), independent_number(whose))


def part_nearer(one: Nearest, other: Nearest) -> Floats:
    """Chance that the nearest of both reference sets' rows is one of the first, shape (n,).

    0 or 1, and among tied rows the part that is of the first set. Its expectation is the first set's part of
    all rows if both are drawn alike, exactly and whatever the ties.
    """
    tied = one.first == other.first
    return np.where(tied, one.ties / (one.ties + other.ties), one.first < other.first)


def independent_number(nearest_row: Positions, own: Positions | None = None) -> float:
    """How many independent draws queries are worth when they share nearest rows or are each other's.

    Whether the nearest row is of a certain kind has one answer for all queries that share it, and one for two
    queries that are each other's nearest: such a group of w is worth one draw, so all of them are worth
    ``n² / Σ w²``. Source: Henze 1988, for the role of such pairs in the variance.

    Args:
        nearest_row: position of the row nearest to each of n queries.
        own: positions of the queries themselves in the same count, each once; None when no query can be the
            nearest row of another.
    """
    group = nearest_row
    if own is not None:
        where = np.full(max(int(own.max()), int(nearest_row.max())) + 1, -1, dtype=np.intp)
        where[own] = np.arange(len(own))
        partner = where[nearest_row]
        mutual = (partner >= 0) & (nearest_row[partner] == own)
        group = np.where(mutual, np.minimum(own, nearest_row), nearest_row)
    weights = np.bincount(group).astype(np.float64)
    return len(group) ** 2 / float(np.sum(weights**2))


def distance_ratio(found: Nearest) -> Floats:
    """d1/d2 of each row, shape (n,); 1 where both are 0, since a duplicated record singles nobody out.

    And 1 where both are infinite, since what is so far from everybody is near to nobody.
    """
    told = (found.second > 0) & np.isfinite(found.first)
    return np.divide(found.first, found.second, out=np.ones_like(found.first), where=told)
