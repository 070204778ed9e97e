"""Distance to the closest record: is the release nearer to its training rows than chance allows?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.audits._declarations import at_least, risk_over_control, share, some_of
from synth_audit.audits._targets import drawn
from synth_audit.audits.published.closest_record import distances as dcr
from synth_audit.audits.published.closest_record import neighbour_measures
from synth_audit.audits.published.closest_record.neighbour_measures import Fellows
from synth_audit.encode.embedding import EmbeddingSettings
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Direction,
    Findings,
    Interval,
    IntervalEstimate,
    Measurement,
    Quantity,
    Reference,
    Series,
)
from synth_audit.neighbours.search import Nearest, most_queries, nearest, nearest_other
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.resampling import enough_draws, percentile_interval, resampled_quantile

PRIVACY_SCORE = risk_over_control(
    "privacy_score",
    "DCR privacy score",
    help="0: as close to training rows as strangers are; 1: every row leaked; a little below 0 is harmless.",
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
    range=(0.0, float("inf")),
    proportional=False,
    help="Median distance of the release to train over the median distance within train.",
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
    control rows, are defined beside their computation in ``neighbour_measures``.

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

    distances: tuple[dcr.Distance, ...] = ("euclidean", "gower")
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
            *dcr.QUANTITIES,
            NNDR,
            MEDIAN_DCR,
            *neighbour_measures.QUANTITIES,
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
        some_of(self, "distances", dcr.DISTANCES)
        share(self, "alpha", 0.5)
        at_least(self, max_queries=1, max_within=1, max_compared=1, n_bootstrap=100)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Search neighbours among all train and control rows for at most ``max_queries`` rows each."""
        rng = context.rng
        found, series, notes = list[Measurement](), list[Series](), list[str]()
        within_train = most_queries(self.max_within, subject.train.n_rows)
        for name in self.distances:
            by_distance = self._in_space(name, subject, rng, context)
            found += by_distance.measurements
            series += by_distance.series
            notes += by_distance.notes
        found += neighbour_measures.identifiability(subject, within_train, rng)
        found += neighbour_measures.adversarial_accuracy(subject, within_train, rng)
        found += neighbour_measures.hits(subject, self.max_compared, rng)
        return Findings(tuple(found), tuple(series), tuple(notes))

    def _in_space(
        self, name: dcr.Distance, subject: Subject, rng: np.random.Generator, context: RunContext
    ) -> Findings:
        """What one distance shows; its space goes with it, so that no two are held at a time."""
        n_train, level = subject.train.n_rows, subject.level
        most = most_queries(self.max_queries, n_train)
        chosen = drawn(np.arange(subject.synthetic.n_rows), most, rng)
        train, control, made = dcr.in_space(subject, name, chosen, self.embedding_settings, context)
        to_train = nearest(made, train)
        real = nearest(control.take(drawn(np.arange(len(control)), most, rng)), train)
        score = self._score(to_train.first, real.first, "" if name == "euclidean" else name, level, rng)
        if name != "euclidean":
            return Findings((score,))
        share = dcr.shares(to_train, nearest(made, control), len(train), len(control), level)
        asked = drawn(np.arange(n_train), most_queries(self.max_within, n_train), rng)
        within = nearest_other(train, asked, Fellows.of(subject.train).whose)
        medians, notes = self._medians(to_train, real, within.first, level, rng)
        curve = dcr.distance_curve(to_train, real, subject.suppression)
        return Findings((score, *share, *medians), (curve,), notes)

    def _medians(
        self, to_train: Nearest, real: Nearest, within: Floats, level: float, rng: np.random.Generator
    ) -> tuple[list[Measurement], tuple[str, ...]]:
        """The two medians, or a note where the second has no unit."""
        ratios = dcr.distance_ratio(to_train), dcr.distance_ratio(real)
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
        draws = dcr.bootstrap_privacy_score(
            made, real, self.alpha, enough_draws(self.n_bootstrap, level), rng
        )
        resampled = percentile_interval(draws, level)
        counted = dcr.proportion_privacy_score(made, real, self.alpha, level)
        ends = min(resampled.low, counted.low), max(resampled.high, counted.high)
        return PRIVACY_SCORE.at(
            dcr.privacy_score(made, real, self.alpha),
            setting=setting,
            interval=Interval(*ends, level, f"bootstrap and {counted.method}"),
            n=len(made),
            n_minimum=dcr.FEWEST_ROWS,
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
