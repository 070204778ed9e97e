"""Distance to the closest record: is the release nearer to its training rows than chance allows?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.audits.published.closest_record import neighbour_measures
from synth_audit.audits.published.closest_record.distances import (
    DISTANCES,
    FEWEST_ROWS,
    QUANTITIES,
    SHARE_LEAK,
    Distance,
    bootstrap_privacy_score,
    distance_curve,
    distance_ratio,
    privacy_score,
    proportion_privacy_score,
    shares,
    space_of,
)
from synth_audit.audits.published.closest_record.neighbour_measures import Fellows, StandIns
from synth_audit.encode.distances import robust_cells
from synth_audit.encode.embedding import EmbeddingSettings
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Direction,
    Findings,
    Interval,
    Measurement,
    Quantity,
    Reference,
    Series,
)
from synth_audit.neighbours.gower import least_disagreement, least_disagreement_among
from synth_audit.neighbours.search import Nearest, most_queries
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.resampling import enough_draws, percentile_interval, resampled_quantile

AGREEMENT = "agreement"
"""Setting of the score whose distance is the number of columns that disagree."""

PRIVACY_SCORE = Quantity(
    "privacy_score",
    "DCR privacy score",
    range=(float("-inf"), 1.0),
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
    the same reference set, so unequal sizes do not bias it. Where control has few rows and coins of ours
    divided the people, q is the quantile of d(control, train) and of d(t, train \\ t) together, which are
    distributed alike; see ``stand_ins``. Without a setting the distance is Euclidean;
    ``gower`` and ``embedding`` take Gower's distance and that in the contrastive embedding, ``ranks`` the
    Euclidean distance between ranks, which no change of unit, scale, code or spelling can alter;
    ``mirrored_ranks`` between their distances from the middle, which no reversed column alters either.
    ``robust`` is the Euclidean distance on the scale that ``gower`` has too, which neither a few extremes nor
    a code for "unknown" can set; see :class:`~synth_audit.stats.distributions.RobustScale`. The score in
    setting ``agreement`` takes the number of columns that disagree as distance (a number in part, up to 1/18
    of the robust range), which a few spoilt columns cannot swamp.

    ``share = P(the nearest real row of s is in train)``, whose expectation is n_train / (n_train + n_control)
    if the release is independent of the split; ``share_excess = share − expectation`` and
    ``share_leak = share_excess / (1 − expectation)``, the part of copied rows that would explain it.

    ε-identifiability, nearest-neighbour adversarial accuracy and the hitting rate, each with the same for
    control rows, are defined beside their computation in ``neighbour_measures``.

    Fields:
        distances: which of ``euclidean``, ``robust``, ``gower``, ``ranks``, ``mirrored_ranks`` and
            ``embedding`` to search by.
        embedding_settings: how the network of the embedding is built and trained.
        alpha: percentile of real distances that counts as close, in (0, 0.5].
        max_queries: at most this many rows of each table are looked up, drawn at random; all rows
            of train and control stay in the reference. The intervals are those of so many rows: at 10,000 of
            the release and of control, about ± 0.004 for the score of a release without copies at alpha 0.02
            and ± 0.01 for a share of one half. In more than 400,000 rows of train fewer are looked up, so
            that a search has a bound: 2,500 in 1,600,000, with intervals twice as wide.
        max_mirrored: no more than this many for ``mirrored_ranks``, whose share alone is judged: ± 0.02.
        max_within: at most this many rows of each table are looked up for what also needs the nearest other
            row of their own table.
        max_compared: at most this many rows of each table are compared column by column.
        n_bootstrap: bootstrap draws behind the intervals, or more where the level asks for it.

    Raises:
        NotApplicable: the embedding is asked for and has too little to learn from.

    Source: contrastive privacy metrics, equations 1–4; Platzer & Reutterer 2021; Yoon et al. 2020.
    """

    distances: tuple[Distance, ...] = ("euclidean", "gower", "ranks", "mirrored_ranks")
    embedding_settings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    alpha: float = 0.02
    max_queries: int = 10_000
    max_mirrored: int = 2_500
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
            "also be far from every record and still reveal what is typical of a group. Of transformations "
            "that keep every record recognisable, units, spellings, codes and reversed columns are looked "
            "through, and no others: not rotations, that is sums and differences of two columns in their "
            "place."
        ),
        quantities=(
            PRIVACY_SCORE,
            *QUANTITIES,
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
        if not self.distances or not set(self.distances) <= set(DISTANCES):
            raise ValueError(f"distances must be some of {', '.join(DISTANCES)}")
        if len(set(self.distances)) < len(self.distances):
            raise ValueError("distances must differ from one another")
        if not 0 < self.alpha <= 0.5:
            raise ValueError("alpha must be in (0, 0.5]")
        caps = (self.max_queries, self.max_mirrored, self.max_within, self.max_compared)
        if min(caps) < 1 or self.n_bootstrap < 100:
            raise ValueError(
                "max_queries, max_mirrored, max_within and max_compared must be positive and n_bootstrap "
                "at least 100"
            )

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Search neighbours among all train and control rows for at most ``max_queries`` rows each."""
        rng = context.rng
        stand_ins = StandIns.of(subject, context.child("closest record", "stand-ins").rng)
        apart = self._disagreements(subject, stand_ins, rng)
        found = [self._score(*apart, AGREEMENT, subject.level, rng)]
        series, notes = list[Series](), list[str]()
        if stand_ins:
            notes.append(
                f"{len(stand_ins.rows):,} rows of train, each beside those of others, say with control how "
                "near strangers are"
            )
        within_train = most_queries(self.max_within, subject.train.n_rows)
        for name in self.distances:
            by_distance = self._in_space(name, subject, stand_ins, rng, context)
            found += by_distance.measurements
            series += by_distance.series
            notes += by_distance.notes
        found += neighbour_measures.identifiability(subject, within_train, rng)
        found += neighbour_measures.adversarial_accuracy(subject, within_train, rng)
        found += neighbour_measures.hits(subject, self.max_compared, rng)
        return Findings(tuple(found), tuple(series), tuple(notes))

    def _in_space(
        self,
        name: Distance,
        subject: Subject,
        stand_ins: StandIns | None,
        rng: np.random.Generator,
        context: RunContext,
    ) -> Findings:
        """What one distance shows; its space goes with it, so that no two are held at a time."""
        n_train, level = subject.train.n_rows, subject.level
        most = self.max_queries if name != "mirrored_ranks" else min(self.max_queries, self.max_mirrored)
        most = most_queries(most, n_train)
        chosen = self._draw(subject.synthetic.n_rows, most, rng)
        space = space_of(subject, name, chosen, self.embedding_settings, context)
        every = np.arange(len(chosen))
        to_train = space.nearest("synthetic", every, "train")
        to_control = space.nearest("synthetic", every, "control")
        real = space.nearest("control", self._draw(space.size("control"), most, rng), "train")
        setting = "" if name == "euclidean" else name
        among = None
        if stand_ins:
            among = space.nearest_other("train", stand_ins.rows, stand_ins.whose).first
        score = self._score(to_train.first, real.first, among, setting, level, rng)
        share = shares(to_train, to_control, space.size("train"), space.size("control"), level, setting)
        if setting:
            return Findings((score, *(m for m in share if m.id.quantity == SHARE_LEAK.name)))
        asked = self._draw(n_train, most_queries(self.max_within, n_train), rng)
        within = space.nearest_other("train", asked, Fellows.of(subject.train).whose)
        medians, notes = self._medians(to_train, real, within.first, level, rng)
        curve = distance_curve(to_train, real, subject.suppression)
        return Findings((score, *share, *medians), (curve,), notes)

    def _draw(self, n: int, most: int, rng: np.random.Generator) -> Positions:
        """Positions to look up: all, or a random subset in ascending order."""
        return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))

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

    def _disagreements(
        self, subject: Subject, stand_ins: StandIns | None, rng: np.random.Generator
    ) -> tuple[Floats, Floats, Floats | None]:
        """Least disagreement with a train row, of sampled synthetic and control rows, and of stand-ins."""
        assert subject.control is not None
        tables = [subject.train, subject.synthetic, subject.control]
        most = most_queries(self.max_compared, subject.train.n_rows)
        asked = [None, *(self._draw(t.n_rows, most, rng) for t in tables[1:])]
        train, made, real = robust_cells(tables, subject.features, beside=[subject.control], rows=asked)
        among = None
        if stand_ins:
            among = least_disagreement_among(train, stand_ins.rows, stand_ins.whose)
        return least_disagreement(made, train), least_disagreement(real, train), among

    def _score(
        self,
        made: Floats,
        real: Floats,
        among: Floats | None,
        setting: str,
        level: float,
        rng: np.random.Generator,
    ) -> Measurement:
        """The score with a bootstrap interval, widened to the share's where resampling sees no spread."""
        strangers = real if among is None else np.concatenate([real, among])
        value = privacy_score(made, strangers, self.alpha)
        draws = bootstrap_privacy_score(
            made, real, self.alpha, enough_draws(self.n_bootstrap, level), rng, fellows=among
        )
        drawn = percentile_interval(draws, level)
        counted = proportion_privacy_score(made, strangers, self.alpha, level)
        return PRIVACY_SCORE.at(
            value,
            setting=setting,
            interval=Interval(
                min(drawn.low, counted.low),
                max(drawn.high, counted.high),
                level,
                f"bootstrap and {counted.method}",
            ),
            n_requested=len(made),
            n_achieved=len(made),
            n_minimum=FEWEST_ROWS,
            reference=Reference(0.0, "a release that is independent of the training rows"),
        )

    def _median(
        self, quantity: Quantity, values: Floats, real: Floats, level: float, rng: np.random.Generator
    ) -> Measurement:
        """A median with its bootstrap interval, beside the same for control rows."""

        def interval(sample: Floats) -> Interval:
            draws = resampled_quantile(np.sort(sample), 0.5, enough_draws(self.n_bootstrap, level), rng)
            return percentile_interval(draws, level)

        return quantity.at(
            float(np.median(values)),
            interval=interval(values),
            n_requested=len(values),
            n_achieved=len(values),
            reference=Reference(float(np.median(real)), "control rows", interval(real)),
        )
