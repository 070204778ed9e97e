"""A limit on a measurement, as a suite states it: from below, from above, or both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from synth_audit.core import identity
from synth_audit.core.identity import MeasurementId

EVERY_SCOPE = "*"
"""As a gate's scope: each measurement of the quantity is judged, and the worst is the gate's result. What is
called ``*`` itself is written in quotes."""


@dataclass(frozen=True)
class LimitSide:
    """One side of a limit: everything beyond ``number`` is unsafe, and with ``strict`` the number itself.

    Attributes:
        upper: the number is the most that is allowed, and not the least.
    """

    number: float
    upper: bool
    strict: bool

    @property
    def end(self) -> str:
        """The end of an interval that is nearest to harm."""
        return "upper" if self.upper else "lower"

    @property
    def words(self) -> str:
        """What it asks for, before its number."""
        if self.upper:
            return "below" if self.strict else "at most"
        return "above" if self.strict else "at least"

    def allows(self, x: float) -> bool:
        """True when ``x`` lies on the safe side."""
        return self.excess(x) < 0 or (x == self.number and not self.strict)

    def excess(self, x: float) -> float:
        """How far ``x`` lies on the unsafe side; negative on the safe one."""
        return x - self.number if self.upper else self.number - x


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit on one measurement, which has one side or two.

    Attributes:
        measurement: what is judged.
        every: judge each measurement of its quantity, whatever its setting and column.
        minimum, maximum: one of them or both, finite, in the unit of the measurement.
        bound: ``upper`` (goes with a maximum), ``lower`` (with a minimum), ``both`` (with both), ``value``
            (the number itself, for counts and descriptions without an interval), or ``pessimistic``, which
            is the one of the first three that goes with the limit.
        strict: the limit itself is already unsafe.

    Raises:
        ValueError: a field is none of these. The optimistic end cannot be chosen: such a gate would
            pass whenever the evidence is too thin to fail.
    """

    measurement: MeasurementId
    every: bool = False
    bound: str = "pessimistic"
    minimum: float | None = None
    maximum: float | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.strict, bool):
            raise ValueError("`strict` must be true or false")  # noqa: TRY004
        if self.every and self.measurement != self.measurement.whole:
            raise ValueError("a limit on every measurement of a quantity names neither setting nor column")
        ends = [x for x in (self.minimum, self.maximum) if x is not None]
        if not ends or not all(map(is_finite_number, ends)):
            raise ValueError("give a finite `minimum`, a finite `maximum`, or both")
        if ends[0] > ends[-1] or (len(ends) == 2 and self.strict and ends[0] == ends[1]):
            raise ValueError("`minimum` must lie below `maximum`, or no value could pass")
        if self.bound not in ("pessimistic", "value", self.pessimistic_end):
            raise ValueError(f"`bound` must be {self.pessimistic_end}, value or pessimistic for this limit")

    @classmethod
    def read(cls, name: object, scope: object = "", **others: Any) -> Limit:
        """The limit on a measurement that a suite names.

        Args:
            name: ``audit.quantity``. scope: text inside the brackets of its name, or ``"*"`` for all.

        Raises:
            ValueError: see the class. MeasurementNameError: a text does not follow the grammar.
        """
        if not isinstance(name, str) or not isinstance(scope, str):
            raise ValueError("`name` and `scope` must be text")  # noqa: TRY004
        every = scope == EVERY_SCOPE
        measurement = identity.read_scoped(name, "" if every else scope)
        if not measurement.audit:
            raise ValueError("`name` must be <audit>.<quantity>")
        return cls(measurement=measurement, every=every, **others)

    @property
    def audit(self) -> str:
        """The audit that reports the measurement."""
        return self.measurement.audit

    @property
    def sides(self) -> tuple[LimitSide, ...]:
        """What each end asks for, from below and from above; a number is safe where every side allows it."""
        ends = ((self.minimum, False), (self.maximum, True))
        return tuple(LimitSide(float(x), upper, self.strict) for x, upper in ends if x is not None)

    @property
    def pessimistic_end(self) -> str:
        """The end of the interval that is nearest to harm; ``both`` where harm lies either way."""
        return "both" if len(self.sides) == 2 else self.sides[0].end

    @property
    def compared(self) -> str:
        """What is compared with the limit: upper, lower, both or value."""
        return "value" if self.bound == "value" else self.pessimistic_end

    @property
    def title(self) -> str:
        """The requirement in short."""
        scope = " (every scope)" if self.every else in_brackets(self.measurement)
        asked = " and ".join(f"{side.words} {format_number(side.number)}" for side in self.sides)
        return f"{self.measurement.name}{scope} {asked}"

    def applies_to(self, measurement: MeasurementId) -> bool:
        """True when the measurement is judged."""
        return (measurement.whole if self.every else measurement) == self.measurement

    def allows(self, x: float) -> bool:
        """True when ``x`` lies on the safe side, or between both."""
        return all(side.allows(x) for side in self.sides)


def format_number(x: float) -> str:
    """A number as a reader sees it: four significant digits."""
    return f"{x:.4g}"


def in_brackets(measurement: MeasurementId) -> str:
    """The scope as it stands behind a name in a sentence."""
    return f" ({measurement.scope})" if measurement.scope else ""


def is_finite_number(x: object) -> bool:
    """True for numbers that can be compared; truth values are none."""
    if not isinstance(x, (int, float)) or isinstance(x, bool):
        return False
    try:
        return math.isfinite(x)
    except OverflowError:  # a whole number of more digits than a float has
        return False
