"""A limit on a measurement, as a suite states it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from synth_audit.core import identity
from synth_audit.core.identity import MeasurementId

EVERY_SCOPE = "*"
"""As a gate's scope: each measurement of the quantity is judged, and the worst is the gate's result. What is
called ``*`` itself is written in quotes."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit on one measurement.

    Attributes:
        measurement: what is judged.
        every: judge each measurement of its quantity, whatever its setting and column.
        minimum, maximum: exactly one of them, finite, in the unit of the measurement.
        bound: ``upper`` (goes with a maximum), ``lower`` (with a minimum), ``value`` (the number
            itself, for counts and descriptions without an interval), or ``pessimistic``, which is
            ``upper`` for a maximum and ``lower`` for a minimum.
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
        if len(ends) != 1 or not is_finite_number(ends[0]):
            raise ValueError(
                "give exactly one finite limit, `minimum` or `maximum`; write two gates for both"
            )
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
    def number(self) -> float:
        """The limit."""
        return float(self.maximum if self.maximum is not None else self.minimum or 0.0)

    @property
    def pessimistic_end(self) -> str:
        """The end of the interval that is nearest to harm."""
        return "upper" if self.maximum is not None else "lower"

    @property
    def compared(self) -> str:
        """What is compared with the limit: upper, lower or value."""
        return "value" if self.bound == "value" else self.pessimistic_end

    @property
    def title(self) -> str:
        """The requirement in short."""
        scope = " (every scope)" if self.every else in_brackets(self.measurement)
        side = ("below" if self.strict else "at most") if self.maximum is not None else ""
        side = side or ("above" if self.strict else "at least")
        return f"{self.measurement.name}{scope} {side} {format_number(self.number)}"

    def applies_to(self, measurement: MeasurementId) -> bool:
        """True when the measurement is judged."""
        return (measurement.whole if self.every else measurement) == self.measurement

    def allows(self, x: float) -> bool:
        """True when ``x`` lies on the safe side."""
        if x == self.number:
            return not self.strict
        return x < self.number if self.maximum is not None else x > self.number


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
