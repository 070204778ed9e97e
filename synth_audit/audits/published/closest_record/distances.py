"""Distances to the closest record in one space, closer shares, and their picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.audits._declarations import excess_over_control
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.encode.encoded import Encoded
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Direction,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
    Series,
)
from synth_audit.neighbours import gower
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import Nearest
from synth_audit.plugins.audit import Subject
from synth_audit.stats.proportions import Proportion, proportion_interval
from synth_audit.stats.resampling import quantile_rank

Distance = Literal["euclidean", "gower", "embedding"]

DISTANCES: tuple[Distance, ...] = ("euclidean", "gower", "embedding")

FEWEST_ROWS = 100
"""Fewer synthetic rows than this decide nothing."""

SHARE = Quantity(
    "share",
    "Synthetic rows nearer to train than to control",
    proportional=False,  # its scale depends on the sizes of train and control
)

SHARE_EXCESS = excess_over_control(
    "share_excess",
    "Closest-record share beyond chance",
    proportional=False,
    help="The share less what a release that is independent of train would show.",
)

SHARE_P_VALUE = Quantity(
    "share_p_value",
    "p-value of the closest-record share",
    unit="probability",
    direction=Direction.HIGHER,
    help="Chance of so large a share if the release were independent of train.",
)

QUANTITIES = (SHARE, SHARE_EXCESS, SHARE_P_VALUE)

_INDEPENDENT = "a release that is independent of the split"


class Threshold(NamedTuple):
    """The α-quantile of the real distances, with the part of its ties that makes up exactly α."""

    distance: float
    tie_part: float


def threshold(distances: Floats, alpha: float) -> Threshold:
    """Quantile q and tie part γ with ``P(D < q) + γ·P(D = q) = α`` on a sample, shape (n,)."""
    n = len(distances)
    rank = quantile_rank(n, alpha) - 1
    q = float(np.partition(distances, rank)[rank])
    below, at = np.count_nonzero(distances < q), np.count_nonzero(distances == q)
    return Threshold(q, float((alpha - below / n) / (at / n)))


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
    limit = threshold(control, alpha)
    return score_of(_close(synthetic, limit), limit, alpha)


def proportion_privacy_score(synthetic: Floats, control: Floats, alpha: float, level: float) -> Interval:
    """Scores of the ends of the interval for the share of close rows, control rows taken as fixed.

    A resample of rows none of which is close has none either: where the bootstrap sees no spread,
    this still says how many close rows may have been missed.
    """
    limit = threshold(control, alpha)
    n = len(synthetic)
    ends = proportion_interval(_close(synthetic, limit) * n, n, level)
    return Interval(score_of(ends.low, limit, alpha), score_of(ends.high, limit, alpha), level, ends.method)


def _close(synthetic: Floats, limit: Threshold) -> float:
    """Share of rows nearer than the threshold, those at it counting in part."""
    at = float(np.mean(synthetic == limit.distance))
    return min(1.0, float(np.mean(synthetic < limit.distance)) + limit.tie_part * at)


def bootstrap_privacy_score(
    synthetic: Floats, control: Floats, alpha: float, n_draws: int, rng: np.random.Generator
) -> Floats:
    """Privacy scores of resampled synthetic and control rows, shape (n_draws,).

    How many resampled synthetic rows fall below or at the threshold is multinomial in the original shares, so
    it is drawn as such: the same distribution, without the rows.
    """
    n, k = len(synthetic), len(control)
    ordered = np.sort(synthetic)
    draws = np.empty(n_draws)
    for i in range(n_draws):
        limit = threshold(control[rng.integers(0, k, k)], alpha)
        low, high = (int(np.searchsorted(ordered, limit.distance, side)) for side in ("left", "right"))
        n_below, n_at, _ = rng.multinomial(n, [low / n, (high - low) / n, max(0.0, 1 - high / n)]).tolist()
        draws[i] = score_of((n_below + limit.tie_part * n_at) / n, limit, alpha)
    return draws


def closest_share(to_train: Nearest, to_control: Nearest, n_train: int) -> Proportion:
    """P(the nearest real row is a training row), a tie counting by how many of the tied rows are.

    Picking one of the tied rows at random makes the expectation exactly n_train / (n_train + n_control)
    for a release that is independent of the split; half a point per tie would not, for unequal sizes, and
    would let a copy of a table with many duplicates pass.

    Several synthetic rows may share one nearest real row and then count as one draw, so the number
    of independent draws is ``n² / Σ_r w_r²`` with w_r the synthetic rows whose nearest row is r.
    """
    in_train = part_nearer(to_train, to_control)
    whose = np.where(in_train >= 0.5, to_train.index, n_train + to_control.index)
    return worth(in_train, independent_number(whose))


def worth(parts: Bools | Floats, n_effective: float) -> Proportion:
    """A mean of zeros and ones (ties in part), and how many independent draws it is worth."""
    # Rounding must not pass the whole.
    return Proportion(min(float(np.mean(parts)) * n_effective, n_effective), n_effective)


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


def in_space(
    subject: Subject, distance: Distance, asked: Positions, settings: EmbeddingSettings, context: RunContext
) -> Sequence[Coordinates] | Sequence[gower.Mixed]:
    """All rows of train and control, and rows of the release, in the space of a distance.

    Args:
        asked: positions of the rows of the release.
        settings: of the embedding.

    Raises:
        NotApplicable: the embedding is asked for and has too little to learn from.
        PluginError: the embedding is asked for and torch is not installed.
    """
    tables, columns = [*subject.real, subject.synthetic], subject.features
    match distance:
        case "gower":
            return Encoded(tables, columns, subject.real).mixed((None, None, asked))
        case "euclidean":
            return Encoded(tables, columns).coordinates((None, None, asked))
        case "embedding":
            some = [*subject.real, subject.synthetic.take(asked)]
            return embed(subject.train, some, columns, settings=settings, context=context)


def shares(
    to_train: Nearest, to_control: Nearest, n_train: int, n_control: int, level: float
) -> list[Measurement]:
    """Share of synthetic rows nearest to train, with its interval on the independent number of rows."""
    found, n = closest_share(to_train, to_control, n_train), len(to_train.first)
    null, around = n_train / (n_train + n_control), found.interval(level)
    measured = []
    for quantity, origin in ((SHARE, 0.0), (SHARE_EXCESS, null)):
        ends = around.low - origin, around.high - origin
        interval = Interval(*ends, level, f"{around.method} on the effective number of rows")
        reference = Reference(null - origin, _INDEPENDENT)
        value = found.share - origin
        measured.append(
            quantity.at(value, interval=interval, n=n, n_minimum=FEWEST_ROWS, reference=reference)
        )
    z = (found.share - null) / math.sqrt(null * (1 - null) / found.trials)
    return [*measured, SHARE_P_VALUE.at(NormalDist().cdf(-z), n=n)]


def distance_curve(to_train: Nearest, real: Nearest, suppression: int) -> Series:
    """Cumulative distribution of both distances, in steps of the smallest count that may be shown."""
    grid = np.linspace(0.0, float(np.quantile(np.concatenate([to_train.first, real.first]), 0.99)), 61)

    def cumulative(values: Floats) -> tuple[float, ...]:
        counts = np.searchsorted(np.sort(values), grid, side="right")
        return tuple((counts // suppression * suppression / len(values)).tolist())

    return Series(
        id=MeasurementId("", "distance_to_train"),
        title="Distance to the closest training row",
        kind="line",
        x_label="distance (standard deviations)",
        y_label="share of rows at most this far",
        x=tuple(grid.tolist()),
        lines={"synthetic rows": cumulative(to_train.first), "control rows": cumulative(real.first)},
    )
