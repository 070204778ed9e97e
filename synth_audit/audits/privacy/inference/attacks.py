"""What attacks on secrets came to: the quantities of the inference audit, each from its tallies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits._targets import FEWEST_GUESSES, rate
from synth_audit.core.arrays import Bools, Positions
from synth_audit.core.measurement import Direction, Exposure, Interval, Measurement, Quantity, Reference
from synth_audit.kernels.attack_success import AttackRisk, SuccessCount, corrected_level, risk, worst_interval

_NULL = Reference(0.0, "as often as for people the generator never saw")

OVERALL_RISK = Quantity(
    "overall_risk",
    "Inference risk over all secrets",
    range=(float("-inf"), 1.0),
    help="Part of the secrets of people in the training data that only this release gives away; 0 is none.",
)
WORST_RISK = Quantity(
    "worst_risk",
    "Inference risk of the most exposed secret",
    range=(float("-inf"), 1.0),
    help="The largest of the risks below, with an interval that allows for their number.",
)
RISK = Quantity(
    "risk",
    "Inference risk",
    range=(float("-inf"), 1.0),
    help="Part of the people in the training data whose secret only this release gives away; 0 is none.",
)
TRAIN_RATE = Quantity(
    "train_rate",
    "Training records whose secret was guessed",
    direction=Direction.NEUTRAL,
    help="Share of right guesses from the nearest synthetic row.",
)
CONTROL_RATE = Quantity(
    "control_rate",
    "Control records whose secret was guessed",
    direction=Direction.NEUTRAL,
    help="The same for people the generator never saw: what the population gives away, not the release.",
)
NAIVE_RATE = Quantity(
    "naive_rate",
    "Training records guessed without looking",
    direction=Direction.NEUTRAL,
    help="Right guesses of one who always says the commonest value, or the median, of control.",
)
MODEL_RATE = Quantity(
    "model_rate",
    "Training records guessed by a model of control",
    direction=Direction.NEUTRAL,
    help="Right guesses of one who has real data of other people and no release. Inference that does no "
    "better is what the population gives away.",
)


@dataclass(frozen=True)
class SecretAttack:
    """What became of the guesses at one secret.

    Attributes:
        train, control: guesses from the release. without: those at train rows by attackers without it.
    """

    train: SuccessCount
    control: SuccessCount
    without: tuple[SuccessCount, ...]
    exposure: Exposure

    @classmethod
    def of(
        cls,
        secret: str,
        chosen: Sequence[Positions],
        hits: Sequence[Bools],
        without: Sequence[Bools],
    ) -> SecretAttack:
        """Count the guesses, and keep whose they were.

        Args:
            chosen: positions of the rows guessed at, in train and in control.
            hits: which guesses at these rows were right.
            without: the same of attackers who lack the release, at train rows.
        """
        exposure = Exposure(
            measurement=RISK.id(column=secret),
            columns=(secret,),
            train_tried=chosen[0],
            train_hit=chosen[0][hits[0]],
            control_tried=chosen[1],
            control_hit=chosen[1][hits[1]],
        )
        train, control, *others = (SuccessCount.of(h) for h in (*hits, *without))
        return cls(train, control, tuple(others), exposure)

    @property
    def guesses(self) -> int:
        """Guesses made on the side with fewer."""
        return min(self.train.guesses, self.control.guesses)

    def risk(self, level: float) -> AttackRisk:
        """How much better guesses at train rows are than those at control rows."""
        return risk(self.train, self.control, level)

    def measured(self, requested: int, level: float) -> Iterator[Measurement]:
        """The risk, and the rates it comes from; a rate without a guess is left out."""
        secret, left = self.exposure.measurement.column, self.risk(level)
        yield _risk_as(RISK, left.value, left.interval, requested, self.guesses, secret)
        quantities = (TRAIN_RATE, CONTROL_RATE, NAIVE_RATE, MODEL_RATE)
        for quantity, tally in zip(quantities, (self.train, self.control, *self.without), strict=False):
            if tally.guesses:
                yield rate(quantity, tally, requested, level, column=secret)


def overall(attacks: Sequence[SecretAttack], requested: int, level: float) -> Measurement:
    """The risk over the guesses at all secrets; those at one record succeed or fail together, as one."""
    train = _together([(a.exposure.train_tried, a.exposure.train_hit) for a in attacks])
    control = _together([(a.exposure.control_tried, a.exposure.control_hit) for a in attacks])
    found = risk(train, control, level)
    records = min(
        len(np.unique(np.concatenate(rows)))
        for rows in (
            [a.exposure.train_tried for a in attacks],
            [a.exposure.control_tried for a in attacks],
        )
    )
    return _risk_as(OVERALL_RISK, found.value, found.interval, max(requested, records), records)


def _together(tried: Sequence[tuple[Positions, Positions]]) -> SuccessCount:
    """One tally of several attacks on the same table, given the positions tried and hit by each."""
    rows = np.concatenate([t for t, _ in tried])
    if not len(rows):
        return SuccessCount(0.0, 0)
    n = int(rows.max()) + 1
    tries = np.bincount(rows, minlength=n)
    hits = np.bincount(np.concatenate([h for _, h in tried]), minlength=n)
    return SuccessCount.of_clusters(hits[tries > 0], tries[tries > 0])


def worst(attacks: Sequence[SecretAttack], requested: int, level: float) -> Measurement:
    """The largest risk; a secret that could not be tried leaves it open."""
    together = [attack.risk(corrected_level(level, len(attacks))) for attack in attacks]
    tried = [attack.risk(level).value for attack in attacks if attack.guesses]
    value = max(tried, default=math.nan)
    interval = worst_interval([r.interval for r in together], level, f"{len(attacks)} secrets")
    return _risk_as(WORST_RISK, value, interval, requested, min(attack.guesses for attack in attacks))


def _risk_as(
    quantity: Quantity, value: float, interval: Interval, requested: int, achieved: int, secret: str = ""
) -> Measurement:
    return quantity.at(
        value,
        column=secret,
        interval=interval,
        n_requested=requested,
        n_achieved=achieved,
        n_minimum=FEWEST_GUESSES,
        reference=_NULL,
    )
