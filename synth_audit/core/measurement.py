"""What an audit may say: quantities with intervals, and its findings as a whole; never a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from synth_audit.core.arrays import Positions
from synth_audit.core.identity import MeasurementId
from synth_audit.core.series import Series


class Direction(StrEnum):
    """Which way is safer (privacy) or better (fidelity, utility)."""

    LOWER = "lower is better"
    HIGHER = "higher is better"
    NEUTRAL = "descriptive"


@dataclass(frozen=True)
class Interval:
    """Confidence interval.

    Attributes:
        low, high: ends in the unit of the value, unclipped.
        level: coverage in (0, 1).
        method: how it was computed, for example ``"wilson"``.
    """

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; None where nothing is known of its precision."""

    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Reference:
    """What the value would be for a release nobody would object to.

    Attributes:
        meaning: what it was measured on, in words.
        interval: None for a value that is known exactly.
        candidate: the candidate's own number on as many rows as the reference was measured on; None where
            the value itself is. Distances between samples grow as samples shrink, so the two may be
            compared at one size only.
    """

    value: float
    meaning: str
    interval: Interval | None = None
    candidate: Estimate | None = None


class SampleCounts(TypedDict):
    """How many were asked for, made and needed: what several measurements of one audit share."""

    n_requested: int
    n_achieved: int
    n_minimum: int


@dataclass(frozen=True)
class Measurement:
    """One number with everything needed to judge it.

    Attributes:
        id: what it is called; its audit is empty until the runner has stamped it.
        value: the number, unclipped; NaN only if it could not be computed, which no gate passes.
        n_requested, n_achieved: guesses, rows or repeats asked for and actually made.
        n_minimum: below this many achieved the number is insufficient evidence.
    """

    id: MeasurementId
    value: float
    interval: Interval | None = None
    n_requested: int | None = None
    n_achieved: int | None = None
    n_minimum: int | None = None
    unit: str = "share"
    direction: Direction = Direction.LOWER
    reference: Reference | None = None

    @property
    def short(self) -> bool:
        """True when fewer were achieved than the stated minimum."""
        return self.n_minimum is not None and (self.n_achieved or 0) < self.n_minimum

    @property
    def finite(self) -> bool:
        """True when the value and both ends of its interval are finite numbers."""
        ends = (self.interval.low, self.interval.high) if self.interval else ()
        return all(math.isfinite(x) for x in (self.value, *ends))


@dataclass(frozen=True)
class Quantity:
    """A number that an audit declares: its name, unit, direction, range and meaning in one place.

    Attributes:
        name: the quantity in the identity of its measurements.
        title: what a reader sees.
        range: closed interval outside which a value is a fault of the audit.
        help: one sentence on how to read it.
        proportional: the value moves in proportion to the share of copied rows, so that it can be turned
            into one. Not so for a median, which stands still until half of the rows are copies.
    """

    name: str
    title: str
    unit: str = "share"
    direction: Direction = Direction.LOWER
    range: tuple[float, float] = (0.0, 1.0)
    help: str = ""
    proportional: bool = True

    def id(self, setting: str = "", column: str = "") -> MeasurementId:
        """Identity of its measurement in a setting and about a column; the audit is stamped later."""
        return MeasurementId("", self.name, setting, column)

    def derived(self, of: MeasurementId, column: str = "") -> MeasurementId:
        """Identity of what is worked out from a measurement, for a column of its own where it has one."""
        return MeasurementId(of.audit, self.name, column=column, derived_from=of)

    def at(
        self,
        value: float,
        *,
        setting: str = "",
        column: str = "",
        interval: Interval | None = None,
        n_requested: int | None = None,
        n_achieved: int | None = None,
        n_minimum: int | None = None,
        reference: Reference | None = None,
    ) -> Measurement:
        """Make the measurement of this quantity."""
        return Measurement(
            id=self.id(setting, column),
            value=float(value),
            interval=interval,
            n_requested=n_requested,
            n_achieved=n_achieved,
            n_minimum=n_minimum,
            unit=self.unit,
            direction=self.direction,
            reference=reference,
        )


@dataclass(frozen=True, eq=False)
class Exposure:
    """Which real records one attack was tried on and which it got right.

    Positions never leave the restricted workspace; the review sees rates of groups that are large enough.

    Attributes:
        measurement: the number that says what the attack is worth; it vouches for subgroups of the records.
        columns: names of the columns through which a hit record is exposed.
        train_tried, train_hit: positions in train, ascending, each once; hit is a part of tried.
        control_tried, control_hit: the same in control; empty where the attack has no such trial.
    """

    measurement: MeasurementId
    columns: tuple[str, ...]
    train_tried: Positions
    train_hit: Positions
    control_tried: Positions
    control_hit: Positions


@dataclass(frozen=True)
class Findings:
    """Everything an audit returns."""

    measurements: tuple[Measurement, ...]
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    exposures: tuple[Exposure, ...] = ()
