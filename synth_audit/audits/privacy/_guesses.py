"""Guesses at secrets: what is known of people, the release rows near them, and what the guesses come to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Positions
from synth_audit.audits._targets import FEWEST_GUESSES, random_places
from synth_audit.encode.encoded import Encoded
from synth_audit.findings.measurement import (
    Exposure,
    IntervalEstimate,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
)
from synth_audit.neighbours.gower import Mixed
from synth_audit.neighbours.search import nearest_k
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import risk
from synth_audit.stats.proportions import Proportion
from synth_audit.table.schema import Column

NO_EXCESS = Reference(0.0, "as often as for people the generator never saw")


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows of train, control and release on the columns that an adversary knows, encoded once.

    Attributes:
        order: name of the column of each number, then of each label.
    """

    order: tuple[str, ...]
    train: Mixed
    control: Mixed
    release: Mixed

    @classmethod
    def of(
        cls, subject: Subject, columns: Sequence[Column], chosen: Sequence[Positions | None] = (None, None)
    ) -> KnownRows:
        """Encode the release and real rows, anchored on all real rows.

        Args:
            chosen: positions in train and in control; None for all rows.
        """
        encoded = Encoded([*subject.real, subject.synthetic], columns, subject.real)
        return cls(encoded.order, *encoded.mixed([*chosen, None]))

    @property
    def varying(self) -> tuple[str, ...]:
        """Names of the columns that vary in train, each once."""
        return tuple(dict.fromkeys(self.order))

    def places(self, names: Collection[str]) -> Positions:
        """Where columns stand among the numbers and labels of a row."""
        return np.array([i for i, name in enumerate(self.order) if name in names], dtype=np.intp)

    def without(self, name: str, rows: Mixed) -> Mixed:
        """Encoded rows without a column."""
        for place in self.places([name])[::-1]:
            rows = rows.without(int(place))
        return rows

    def asked(self, train: Positions | None = None, control: Positions | None = None) -> Mixed:
        """Rows of train, then of control, at these positions; all if left out.

        One search for both sides, since a search of half as many rows takes more than half as long.
        """
        sides = ((self.train, train), (self.control, control))
        mine, others = (rows if chosen is None else rows.take(chosen) for rows, chosen in sides)
        return mine.followed_by(others)

    def nearest(self, names: Collection[str], asked: Mixed, k: int, rng: np.random.Generator) -> Positions:
        """Positions of the k release rows nearest by some columns, ties at random, shape (asked, k)."""
        kept, place = self.places(names), random_places(len(self.release), rng)
        return nearest_k(asked.only(kept), self.release.only(kept), k, place)


def exposure(
    measurement: MeasurementId,
    columns: Sequence[str],
    chosen: Sequence[Positions],
    hits: Sequence[Bools],
) -> Exposure:
    """Whom an attack was tried on, and where it was right.

    Args:
        chosen: positions of the rows guessed at, in train and in control. hits: which guesses were right.
    """
    (train, control), (train_hits, control_hits) = chosen, hits
    return Exposure(measurement, tuple(columns), train, train[train_hits], control, control[control_hits])


def successes(exposed: Exposure) -> tuple[Proportion, Proportion]:
    """Guesses at train and at control rows, and how many were right."""
    return (
        Proportion(len(exposed.train_hit), len(exposed.train_tried)),
        Proportion(len(exposed.control_hit), len(exposed.control_tried)),
    )


def success_rate(
    quantity: Quantity, tally: Proportion, requested: int, level: float, *, column: str = ""
) -> Measurement:
    """A success rate with its interval."""
    made = int(tally.trials)
    requested = max(requested, made)
    found = tally.estimate(level)
    return quantity.at(found, column=column, n_requested=requested, n_achieved=made)


def risk_at(
    quantity: Quantity,
    found: IntervalEstimate,
    requested: int,
    achieved: float,
    column: str = "",
    null: Reference = NO_EXCESS,
) -> Measurement:
    """A risk as a measurement, which needs guesses at enough records of either side."""
    return quantity.at(
        found,
        column=column,
        n_requested=requested,
        n_achieved=int(achieved),
        n_minimum=FEWEST_GUESSES,
        reference=null,
    )


def risk_and_rates(
    quantities: Sequence[Quantity],
    sides: tuple[Proportion, Proportion],
    requested: int,
    level: float,
    column: str = "",
    null: Reference = NO_EXCESS,
) -> Iterator[Measurement]:
    """The risk, then the rates that it comes from, as far as they are asked for; none without a guess.

    Args:
        quantities: of the risk, of the rate on train and of that on control.
        sides: right guesses at train and at control rows.
    """
    achieved = min(side.trials for side in sides)
    yield risk_at(quantities[0], risk(*sides, level), requested, achieved, column, null)
    for quantity, side in zip(quantities[1:], sides, strict=False):
        if side.trials:
            yield success_rate(quantity, side, requested, level, column=column)
