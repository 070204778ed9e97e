"""Distance to the closest record: is the release nearer to its training rows than chance allows?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from synth_audit.core.measurement import (
    Direction,
    Findings,
    Interval,
    Measurement,
    Quantity,
    Reference,
    Series,
)
from synth_audit.core.plugin import AuditInfo, Need
from synth_audit.core.subject import Subject
from synth_audit.kernels import closeness
from synth_audit.kernels.agreement import cells, least_disagreement
from synth_audit.kernels.encode import Coordinates, EuclideanEncoder
from synth_audit.kernels.intervals import percentile_interval, resampled_quantile, wilson
from synth_audit.kernels.neighbours import Nearest, nearest, nearest_other

Floats = npt.NDArray[np.float64]

AGREEMENT = "agreement"
"""Scope of the score whose distance is the number of columns that disagree."""

FEWEST_ROWS = 100
"""Fewer synthetic rows than this decide nothing."""

PRIVACY_SCORE = Quantity(
    "privacy_score",
    "DCR privacy score",
    range=(float("-inf"), 1.0),
    help="0: as close to training rows as strangers are; 1: every row leaked; a little below 0 is harmless.",
)
SHARE = Quantity("share", "Synthetic rows nearer to train than to control", unit="share")
SHARE_EXCESS = Quantity(
    "share_excess",
    "Closest-record share beyond chance",
    range=(-1.0, 1.0),
    help="The share less what a release that is independent of train would show.",
)
SHARE_LEAK = Quantity(
    "share_leak",
    "Copied rows that would explain the closest-record share",
    range=(float("-inf"), 1.0),
    help="0: none; 1: all. The excess over chance as a part of the most that the split allows.",
)
SHARE_P_VALUE = Quantity(
    "share_p_value",
    "p-value of the closest-record share",
    unit="probability",
    direction=Direction.HIGHER,
    help="Chance of so large a share if the release were independent of train.",
)
NNDR = Quantity(
    "nndr",
    "Nearest-neighbour distance ratio",
    unit="ratio",
    direction=Direction.HIGHER,
    help="Median of nearest over second-nearest distance to train; near 0 points at single records.",
)
MEDIAN_DCR = Quantity(
    "median_dcr",
    "Median distance to the closest record, normalised",
    unit="ratio",
    direction=Direction.HIGHER,
    range=(0.0, float("inf")),
    help="Median distance of the release to train over the median distance within train.",
)


@dataclass(frozen=True, kw_only=True)
class ClosestRecord:
    """Compares distances of synthetic rows to train with those of rows the generator never saw.

    ``privacy_score = (DCR − 1) / (DCR_max − 1)`` with ``DCR = share{d(s, train) < q} / α``, q the α-quantile
    of d(control, train), and DCR_max its value for a copy of train (1/α unless q = 0). Both distances search
    the same reference set, so unequal sizes do not bias it. The score of scope ``agreement`` takes the
    number of columns that disagree as distance (a number in part, up to 1/30 of train's range), which a few
    spoilt columns cannot swamp.

    ``share = P(the nearest real row of s is in train)``, whose expectation is n_train / (n_train + n_control)
    if the release is independent of the split; ``share_excess = share − expectation`` and
    ``share_leak = share_excess / (1 − expectation)``, the part of copied rows that would explain it.

    Fields:
        alpha: percentile of real distances that counts as close, in (0, 0.5].
        max_queries: at most this many rows of each table are looked up, drawn at random; all rows
            of train and control stay in the reference.
        max_within: at most this many train rows are looked up for the typical distance within train.
        max_compared: at most this many rows of each table are compared column by column.
        n_bootstrap: bootstrap draws behind the intervals.

    Source: contrastive privacy metrics, equations 1–4; Platzer & Reutterer 2021.
    """

    alpha: float = 0.02
    max_queries: int = 50_000
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
            "also be far from every record and still reveal what is typical of a group."
        ),
        quantities=(PRIVACY_SCORE, SHARE, SHARE_EXCESS, SHARE_LEAK, SHARE_P_VALUE, NNDR, MEDIAN_DCR),
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="contrastive privacy metrics, eq. 1–4; Platzer & Reutterer 2021",
    )

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 0.5:
            raise ValueError("alpha must be in (0, 0.5]")
        if min(self.max_queries, self.max_within, self.max_compared) < 1 or self.n_bootstrap < 100:
            raise ValueError(
                "max_queries, max_within and max_compared must be positive and n_bootstrap at least 100"
            )

    def run(self, subject: Subject, rng: np.random.Generator) -> Findings:
        """Search neighbours among all train and control rows for at most ``max_queries`` rows each."""
        assert subject.control is not None
        encoder = EuclideanEncoder.anchored_on(subject.train, subject.features)
        train, control, synthetic = encoder.encode([subject.train, subject.control, subject.synthetic])
        chosen = self._draw(len(synthetic), rng)
        to_train = nearest(synthetic.take(chosen), train)
        to_control = nearest(synthetic.take(chosen), control)
        real_to_train = nearest(control.take(self._draw(len(control), rng)), train)
        within = self._within(train, rng)
        found = [
            self._score(to_train.first, real_to_train.first, "", subject.level, rng),
            self._score(*self._disagreements(subject, rng), AGREEMENT, subject.level, rng),
            *_shares(to_train, to_control, len(train), len(control), subject.level),
            self._median(
                NNDR,
                closeness.distance_ratio(to_train),
                closeness.distance_ratio(real_to_train),
                subject.level,
                rng,
            ),
        ]
        notes: tuple[str, ...] = ()
        if (typical := float(np.median(within))) > 0:
            found.append(
                self._median(
                    MEDIAN_DCR, to_train.first / typical, real_to_train.first / typical, subject.level, rng
                )
            )
        else:
            notes = ("most training rows have a duplicate, so the median distance cannot be normalised",)
        return Findings(tuple(found), (_curve(to_train, real_to_train, subject.suppression),), notes)

    def _draw(self, n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
        """Positions to look up: all, or a random subset in ascending order."""
        if n <= self.max_queries:
            return np.arange(n)
        return np.sort(rng.choice(n, self.max_queries, replace=False))

    def _within(self, train: Coordinates, rng: np.random.Generator) -> Floats:
        """Distances of train rows to their nearest other train row, a sample of them if there are many."""
        few = min(len(train), self.max_within)
        return nearest_other(train, np.sort(rng.choice(len(train), few, replace=False))).first

    def _disagreements(self, subject: Subject, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Least disagreement with a train row, of sampled synthetic and of sampled control rows."""
        assert subject.control is not None
        train, synthetic, control = cells(
            [subject.train, subject.synthetic, subject.control], subject.features
        )
        few = [
            rng.choice(len(t), min(len(t), self.max_compared), replace=False) for t in (synthetic, control)
        ]
        made, real = synthetic.take(np.sort(few[0])), control.take(np.sort(few[1]))
        return least_disagreement(made, train), least_disagreement(real, train)

    def _score(
        self, made: Floats, real: Floats, scope: str, level: float, rng: np.random.Generator
    ) -> Measurement:
        """The score with a bootstrap interval, widened to Wilson's where resampling sees no spread."""
        value = closeness.privacy_score(made, real, self.alpha)
        draws = closeness.bootstrap_privacy_score(made, real, self.alpha, self.n_bootstrap, rng)
        drawn = percentile_interval(draws, level)
        counted = closeness.wilson_privacy_score(made, real, self.alpha, level)
        return PRIVACY_SCORE.at(
            value,
            scope=scope,
            interval=Interval(
                min(drawn.low, counted.low), max(drawn.high, counted.high), level, "bootstrap and wilson"
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
            draws = resampled_quantile(np.sort(sample), 0.5, self.n_bootstrap, rng)
            return percentile_interval(draws, level)

        return quantity.at(
            float(np.median(values)),
            interval=interval(values),
            n_requested=len(values),
            n_achieved=len(values),
            reference=Reference(float(np.median(real)), "control rows", interval(real)),
        )


def _shares(
    to_train: Nearest, to_control: Nearest, n_train: int, n_control: int, level: float
) -> list[Measurement]:
    share, n_effective = closeness.closest_share(to_train, to_control, n_train)
    null = n_train / (n_train + n_control)
    around = wilson(share * n_effective, n_effective, level)
    method = "wilson on the effective number of rows"
    z = (share - null) / math.sqrt(null * (1 - null) / n_effective)
    n = len(to_train.first)
    independent = "a release that is independent of the split"
    return [
        SHARE.at(
            share,
            interval=Interval(around.low, around.high, level, method),
            n_requested=n,
            n_achieved=n,
            n_minimum=FEWEST_ROWS,
            reference=Reference(null, independent),
        ),
        SHARE_EXCESS.at(
            share - null,
            interval=Interval(around.low - null, around.high - null, level, method),
            n_requested=n,
            n_achieved=n,
            n_minimum=FEWEST_ROWS,
            reference=Reference(0.0, independent),
        ),
        SHARE_LEAK.at(
            (share - null) / (1 - null),
            interval=Interval(
                (around.low - null) / (1 - null), (around.high - null) / (1 - null), level, method
            ),
            n_requested=n,
            n_achieved=n,
            n_minimum=FEWEST_ROWS,
            reference=Reference(0.0, independent),
        ),
        SHARE_P_VALUE.at(NormalDist().cdf(-z), n_requested=n, n_achieved=n),
    ]


def _curve(to_train: Nearest, real: Nearest, suppression: int) -> Series:
    """Cumulative distribution of both distances, in steps of the smallest count that may be shown."""
    grid = np.linspace(0.0, float(np.quantile(np.concatenate([to_train.first, real.first]), 0.99)), 61)

    def cumulative(values: Floats) -> tuple[float, ...]:
        counts = np.searchsorted(np.sort(values), grid, side="right")
        return tuple((counts // suppression * suppression / len(values)).tolist())

    return Series(
        name="distance_to_train",
        title="Distance to the closest training row",
        kind="line",
        x_label="distance (standard deviations)",
        y_label="share of rows at most this far",
        x=tuple(grid.tolist()),
        lines={"synthetic rows": cumulative(to_train.first), "control rows": cumulative(real.first)},
    )
