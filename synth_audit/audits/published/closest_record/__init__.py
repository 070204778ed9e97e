"""Distance to the closest record: is the release nearer to its training rows than chance allows?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.audits._shared import at_least, drawn, excess_over_control, risk_over_control, share, some_of
from synth_audit.audits.published.closest_record import identifiability as measures
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.encode.encoded import Encoded
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Direction,
    Findings,
    Interval,
    IntervalEstimate,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
    Series,
)
from synth_audit.neighbours import gower
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import Nearest, most_queries, nearest, nearest_other
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.proportions import Proportion, proportion_interval
from synth_audit.stats.resampling import enough_draws, percentile_interval, quantile_rank, resampled_quantile

Distance = Literal["euclidean", "gower", "embedding"]

DISTANCES: tuple[Distance, ...] = ("euclidean", "gower", "embedding")

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

_INDEPENDENT = "a release that is independent of the split"

PRIVACY_SCORE = risk_over_control(
    "privacy_score",
    "DCR privacy score",
    help="0: as close to training rows as control people are; 1: every row leaked; just below 0 is harmless.",
)
NNDR = Quantity(
    "nndr",
    "Nearest-neighbour distance ratio",
    unit="ratio",
    direction=Direction.HIGHER,
    proportional=False,  # a median stands still until half of the rows are copies
    help="Median of nearest over second-nearest distance to train; near 0 points at single records.",
)
MEDIAN_DCR = Quantity(
    "median_dcr",
    "Median distance to the closest record, normalised",
    unit="ratio",
    direction=Direction.HIGHER,
    range=(0.0, math.inf),
    proportional=False,
    help="Median distance of the release to train over the median distance within train.",
)


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
    return (close / alpha - 1) / (most - 1) if most > 1 + 1e-9 else math.nan


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
    in_train = measures.part_nearer(to_train, to_control)
    whose = np.where(in_train >= 0.5, to_train.index, n_train + to_control.index)
    return measures.worth(in_train, measures.independent_number(whose))


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
            quantity.at(value, interval=interval, n=n, n_minimum=measures.FEWEST_ROWS, reference=reference)
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


@dataclass(frozen=True, kw_only=True)
class ClosestRecord:
    """Compares distances of synthetic rows to train with those of rows the generator never saw.

    ``privacy_score = (DCR − 1) / (DCR_max − 1)`` with ``DCR = share{d(s, train) < q} / α``, q the α-quantile
    of d(control, train), and DCR_max its value for a copy of train (1/α unless q = 0). Both distances search
    the same reference set, so unequal sizes do not bias it. Without a setting the distance is Euclidean;
    ``gower`` and ``embedding`` take Gower's distance and that in the contrastive embedding.

    ``share = P(the nearest real row of s is in train)``, whose expectation is n_train / (n_train + n_control)
    if the release is independent of the split; ``share_excess = share − expectation``.

    ε-identifiability, nearest-neighbour adversarial accuracy and the hitting rate, each with the same for
    control rows, are defined beside their computation in ``identifiability``.

    Fields:
        distances: which of ``euclidean``, ``gower`` and ``embedding`` to search by.
        embedding_settings: how the network of the embedding is built and trained.
        alpha: percentile of real distances that counts as close, in (0, 0.5].
        max_queries: at most this many rows of each table are looked up, drawn at random; all rows
            of train and control stay in the reference. The intervals are those of so many rows: at 10,000 of
            the release and of control, about ± 0.004 for the score of a release without copies at alpha 0.02
            and ± 0.01 for a share of one half. In more than 400,000 rows of train fewer are looked up, so
            that a search has a bound: 2,500 in 1,600,000, with intervals twice as wide.
        max_within: at most this many rows of each table are looked up for what also needs the nearest other
            row of their own table.
        max_compared: at most this many rows of each table are compared column by column.
        n_bootstrap: bootstrap draws behind the intervals, or more where the level asks for it.

    Raises:
        NotApplicable: the embedding is asked for and has too little to learn from.

    Source: contrastive privacy metrics, equations 1–4; Platzer & Reutterer 2021; Yoon et al. 2020.
    """

    distances: tuple[Distance, ...] = ("euclidean", "gower")
    embedding_settings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    alpha: float = 0.02
    max_queries: int = 10_000
    max_within: int = 5_000
    max_compared: int = 10_000
    n_bootstrap: int = 1000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Closest records",
        question="Are synthetic rows closer to the people in the training data than to others like them?",
        threat_model=(
            "An adversary holds records of candidates and takes an unusually near synthetic row as a sign "
            "that the candidate was in the training data, or as a nearly true copy of the record."
        ),
        not_covered=(
            "Distances average over columns: a secret repeated in one column can hide in them. A release can "
            "also be far from every record and still reveal what is typical of a group. Copies in other "
            "units, codes or spellings look far; the audit `recognition` looks through these."
        ),
        quantities=(
            PRIVACY_SCORE,
            SHARE,
            SHARE_EXCESS,
            SHARE_P_VALUE,
            NNDR,
            MEDIAN_DCR,
            *measures.QUANTITIES,
        ),
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source=(
            "contrastive privacy metrics, eq. 1–4; Platzer & Reutterer 2021; Yoon et al. 2020; "
            "Yale et al. 2020"
        ),
    )

    def __post_init__(self) -> None:
        some_of(self, "distances", DISTANCES)
        share(self, "alpha", 0.5)
        at_least(self, max_queries=1, max_within=1, max_compared=1, n_bootstrap=100)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Search neighbours among all train and control rows for at most ``max_queries`` rows each."""
        rng = context.rng
        by_distance = [self._in_space(name, subject, rng, context) for name in self.distances]
        found = [m for of_one in by_distance for m in of_one.measurements]
        within_train = most_queries(self.max_within, subject.train.n_rows)
        found += measures.identifiability(subject, within_train, rng)
        found += measures.adversarial_accuracy(subject, within_train, rng)
        found += measures.hits(subject, self.max_compared, rng)
        pictures = (s for of_one in by_distance for s in of_one.series)
        return Findings(tuple(found), tuple(pictures), tuple(n for x in by_distance for n in x.notes))

    def _in_space(
        self, name: Distance, subject: Subject, rng: np.random.Generator, context: RunContext
    ) -> Findings:
        """What one distance shows; its space goes with it, so that no two are held at a time."""
        n_train, level = subject.train.n_rows, subject.level
        most = most_queries(self.max_queries, n_train)
        chosen = drawn(np.arange(subject.synthetic.n_rows), most, rng)
        train, control, made = in_space(subject, name, chosen, self.embedding_settings, context)
        to_train = nearest(made, train)
        real = nearest(control.take(drawn(np.arange(len(control)), most, rng)), train)
        score = self._score(to_train.first, real.first, "" if name == "euclidean" else name, level, rng)
        if name != "euclidean":
            return Findings((score,))
        share = shares(to_train, nearest(made, control), len(train), len(control), level)
        asked = drawn(np.arange(n_train), most_queries(self.max_within, n_train), rng)
        within = nearest_other(train, asked, measures.persons_of(subject.train))
        medians, notes = self._medians(to_train, real, within.first, level, rng)
        curve = distance_curve(to_train, real, subject.suppression)
        return Findings((score, *share, *medians), (curve,), notes)

    def _medians(
        self, to_train: Nearest, real: Nearest, within: Floats, level: float, rng: np.random.Generator
    ) -> tuple[list[Measurement], tuple[str, ...]]:
        """The two medians, or a note where the second has no unit."""
        ratios = distance_ratio(to_train), distance_ratio(real)
        found = [self._median(NNDR, *ratios, level, rng)]
        if not 0 < (typical := float(np.median(within))) < np.inf:
            what = "most training rows have a duplicate" if typical == 0 else "train is of one person"
            return found, (f"{what}, so the median distance cannot be normalised",)
        scaled = to_train.first / typical, real.first / typical
        return [*found, self._median(MEDIAN_DCR, *scaled, level, rng)], ()

    def _score(
        self, made: Floats, real: Floats, setting: str, level: float, rng: np.random.Generator
    ) -> Measurement:
        """The score with a bootstrap interval, widened to the share's where resampling sees no spread."""
        draws = bootstrap_privacy_score(made, real, self.alpha, enough_draws(self.n_bootstrap, level), rng)
        resampled = percentile_interval(draws, level)
        counted = proportion_privacy_score(made, real, self.alpha, level)
        ends = min(resampled.low, counted.low), max(resampled.high, counted.high)
        return PRIVACY_SCORE.at(
            privacy_score(made, real, self.alpha),
            setting=setting,
            interval=Interval(*ends, level, f"bootstrap and {counted.method}"),
            n=len(made),
            n_minimum=measures.FEWEST_ROWS,
            reference=Reference(0.0, "a release that is independent of the training rows"),
        )

    def _median(
        self, quantity: Quantity, values: Floats, real: Floats, level: float, rng: np.random.Generator
    ) -> Measurement:
        """A median with its bootstrap interval, beside the same for control rows."""

        def median(sample: Floats) -> IntervalEstimate:
            draws = resampled_quantile(np.sort(sample), 0.5, enough_draws(self.n_bootstrap, level), rng)
            return IntervalEstimate(float(np.median(sample)), percentile_interval(draws, level))

        found, beside = median(values), median(real)
        reference = Reference(beside.value, "control rows", beside.interval)
        return quantity.at(found, n=len(values), reference=reference)
