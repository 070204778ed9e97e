"""What scores of membership are worth: areas, rates at few false alarms, precision, and a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.privacy._attacker_limit import AttackerLimit
from synth_audit.core.accounting import PrivacyGuarantee
from synth_audit.core.arrays import Floats
from synth_audit.core.entities import persons
from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Measurement, Quantity, Reference, SampleCounts
from synth_audit.core.series import Series
from synth_audit.core.subject import Subject
from synth_audit.kernels import membership
from synth_audit.kernels.attack_success import corrected_level, worst_interval
from synth_audit.kernels.proportion_interval import proportion_difference, proportion_interval
from synth_audit.kernels.roc import auroc, auroc_interval

FEWEST_TESTED = 50
"""With fewer members or strangers tested the interval of the area is wider than ±0.1 at chance."""

ONE_PERCENT, ONE_PER_MILLE = 0.01, 0.001

AUC = Quantity(
    "auc",
    "Area under the attacker's curve",
    unit="probability",
    help="Chance that the attack ranks a training row above a stranger. 0.5: as by guessing; 1: always.",
)
WORST_AUC = Quantity(
    "worst_auc",
    "Area under the curve of the best attack",
    unit="probability",
    help="The largest area over the scores, with an interval that holds for all of them.",
)
TPR_1 = Quantity(
    "tpr_at_fpr_1pct",
    "Training rows found at 1 % false alarms",
    proportional=False,  # on Adult 0.11 at a tenth copied and 0.28 at all, for the trees
    help="Share of training rows the attack names while it names 1 % of strangers.",
)
TPR_01 = Quantity(
    "tpr_at_fpr_01pct",
    "Training rows found at 0.1 % false alarms",
    proportional=False,  # natural duplicates share the top with copies
    help="Share of training rows the attack names while it names 0.1 % of strangers.",
)
PRECISION = Quantity(
    "precision",
    "Named records that are training rows",
    proportional=False,  # a ratio, which bends
    help="Had the attacker asked about as many training rows as strangers; 0.5 is guessing.",
)
RECALL = Quantity(
    "recall",
    "Training rows that are named",
    proportional=False,  # the attacker's threshold moves with the release
    help="To be read beside the share of strangers named, its reference.",
)
ADVANTAGE = Quantity(
    "advantage",
    "Training rows named more often than strangers",
    range=(-1.0, 1.0),
    proportional=False,
    help="Share of training rows named less share of strangers named.",
)


QUANTITIES = (AUC, WORST_AUC, TPR_1, TPR_01, PRECISION, RECALL, ADVANTAGE)

_GUESSING = Reference(0.5, "guessing")
_NO_MORE = Reference(0.0, "naming members no more often than strangers")

TOLD_RATES = {TPR_1: ONE_PERCENT, TPR_01: ONE_PER_MILLE}
"""The quantities that report a rate of detection, and the rate of false alarms at which they do."""


@dataclass(frozen=True, eq=False)
class Scored:
    """One attack: its name, scores, higher for likelier members, and the score above which it names one.

    Attributes:
        threshold: None for an attack that only ranks.
    """

    name: str
    members: Floats
    others: Floats
    threshold: float | None = None

    def flagged(self, threshold: float) -> tuple[int, int]:
        """How many members and how many others are above a threshold."""
        return int(np.sum(self.members > threshold)), int(np.sum(self.others > threshold))


def told(rate: float, n_others: int) -> bool:
    """Whether any threshold on so many strangers can have this rate of false alarms."""
    return rate * (n_others + 1) >= 1 - 1e-9


def rates(attack: Scored, level: float) -> list[Measurement]:
    """Every measurement of one attack."""
    members, others = attack.members, attack.others
    n = len(others)
    found = [
        AUC.at(
            auroc(members, others),
            setting=attack.name,
            interval=auroc_interval(members, others, level),
            reference=_GUESSING,
            **_counted(attack),
        )
    ]
    for quantity, rate in TOLD_RATES.items():
        if told(rate, n):
            detected = membership.detection(members, others, rate, level)
            found.append(
                quantity.at(
                    detected.value,
                    setting=attack.name,
                    interval=detected.interval,
                    n_requested=n,
                    n_achieved=n,
                    n_minimum=round(1 / rate),
                    reference=Reference(rate, "naming members no more often than strangers"),
                )
            )
    return found if attack.threshold is None else [*found, *_named(attack, attack.threshold, level)]


def _counted(attack: Scored) -> SampleCounts:
    n = min(len(attack.members), len(attack.others))
    return {"n_requested": n, "n_achieved": n, "n_minimum": FEWEST_TESTED}


def _named(attack: Scored, threshold: float, level: float) -> list[Measurement]:
    """Precision, recall and advantage at the attack's own threshold; no precision where nobody is named."""
    name, counted = attack.name, _counted(attack)
    hits, alarms = attack.flagged(threshold)
    m, n = len(attack.members), len(attack.others)
    sure = membership.precision(hits, m, alarms, n, level)
    found = [
        RECALL.at(
            hits / m,
            setting=name,
            interval=proportion_interval(hits, m, level),
            reference=Reference(
                alarms / n, "share of strangers named", proportion_interval(alarms, n, level)
            ),
            **counted,
        ),
        ADVANTAGE.at(
            hits / m - alarms / n,
            setting=name,
            interval=proportion_difference(hits, m, alarms, n, level),
            reference=_NO_MORE,
            **counted,
        ),
    ]
    if hits + alarms:
        found.append(
            PRECISION.at(sure.value, setting=name, interval=sure.interval, reference=_GUESSING, **counted)
        )
    return found


def worst(scored: Sequence[Scored], level: float) -> Measurement:
    """The largest area; both ends of its interval are the largest of intervals that hold for all scores."""
    each = corrected_level(level, len(scored))
    intervals = [auroc_interval(a.members, a.others, each) for a in scored]
    return WORST_AUC.at(
        max(auroc(a.members, a.others) for a in scored),
        interval=worst_interval(intervals, level, f"{len(scored)} scores"),
        reference=_GUESSING,
        **_counted(scored[0]),
    )


def _about_people(subject: Subject) -> PrivacyGuarantee | None:
    """The guarantee; None where it is made to single rows and some people have several, all in train."""
    guarantee = subject.guarantee
    if guarantee is None or guarantee.covers_entities:
        return guarantee
    return guarantee if len(np.unique(persons(subject.train))) == subject.train.n_rows else None


def curves(scored: Sequence[Scored], subject: Subject) -> Series:
    """The attackers' curves, in steps of the smallest count that may be shown, below what is promised."""
    grid, suppression = np.linspace(0.0, 1.0, 51), subject.suppression
    by_coin = subject.random_split is not None and subject.random_split.train is not None
    promise = AttackerLimit.of(_about_people(subject), replaced=not by_coin)

    def found(attack: Scored) -> tuple[float, ...]:
        counts = [float(alarms.sum()) for alarms in membership.alarms(attack.members, attack.others, grid)]
        return tuple(count // suppression * suppression / len(attack.members) for count in counts)

    return Series(
        id=MeasurementId("", "attackers_curve"),
        title="Training rows found against false alarms",
        kind="line",
        x_label="share of strangers named",
        y_label="share of training rows named",
        x=tuple(grid.tolist()),
        lines={
            **{a.name.replace("_", " "): found(a) for a in scored},
            **({promise.label: tuple(map(promise.most_found, grid.tolist()))} if promise else {}),
        },
    )
