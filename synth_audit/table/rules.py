"""Rules that rows obey, beside what single columns hold, and how their parts are written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, TypeAlias

from synth_audit.table.arrow import microseconds

Value: TypeAlias = float | datetime
Operator: TypeAlias = Literal["<", "<=", ">", ">=", "=="]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_PLAIN = re.compile(r"[^\W\d]\w*")
_ENDLESS = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class Within:
    """A column's values lie between two ends, which may be left open or excluded."""

    text: str = field(compare=False)
    column: str
    low: float | None = None
    high: float | None = None
    strict_low: bool = False
    strict_high: bool = False
    dates: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.column,)


@dataclass(frozen=True)
class OneOf:
    """A column holds one of some values only; written as text, in the plan's spelling, sorted."""

    text: str = field(compare=False)
    column: str
    allowed: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.column,)


@dataclass(frozen=True)
class Ordered:
    """Two columns of one row stand in an order, or are equal."""

    text: str = field(compare=False)
    left: str
    operator: Operator
    right: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.left, self.right)


@dataclass(frozen=True)
class Determines:
    """Rows that agree in the determinants, sorted, agree in the dependent column: a functional dependency."""

    text: str = field(compare=False)
    determinants: tuple[str, ...]
    dependent: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (*self.determinants, self.dependent)


Rule: TypeAlias = Within | OneOf | Ordered | Determines


def read_value(text: str) -> Value | None:
    """A finite number or an ISO date; None for any other text."""
    if _NUMBER.fullmatch(text):
        return float(text) if math.isfinite(float(text)) else None
    if not _DATE.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def misread(text: str) -> str | None:
    """Why a text that has the form of a number or of a date is neither; None for any other text."""
    if "`" in text or read_value(text) is not None:
        return None
    if _NUMBER.fullmatch(text) or _ENDLESS.fullmatch(text):
        return "is not a finite number"
    return "is a date that does not exist or cannot be read" if _DATE.fullmatch(text) else None


def as_number(value: float | date) -> float:
    """The value as columns hold it: dates in microseconds since 1970, UTC unless they say otherwise."""
    return microseconds(value) if isinstance(value, date) else float(value)


def quoted(name: str) -> str:
    """A column's name as a rule must write it."""
    if _PLAIN.fullmatch(name) and not misread(name):
        return name
    return f"`{name}`" if "`" not in name else f'"{name}"'


def quoted_value(value: str) -> str:
    """A label as a rule must write it in a list."""
    if not misread(value) and (_PLAIN.fullmatch(value) or _NUMBER.fullmatch(value)):
        return value
    return f'"{value}"' if "'" in value else f"'{value}'"


def nameable(name: str) -> bool:
    """False for a name that holds both backticks and double quotes, which no rule can write."""
    return "`" not in name or '"' not in name


def determines(determinants: Sequence[str], dependent: str) -> Determines:
    """The rule that some columns determine another."""
    text = f"{', '.join(map(quoted, determinants))} -> {quoted(dependent)}"
    return Determines(text, tuple(sorted(determinants)), dependent)


def ordered(left: str, operator: Operator, right: str) -> Ordered:
    """The rule that two columns stand in an order."""
    return make_ordered(f"{quoted(left)} {operator} {quoted(right)}", left, operator, right)


def make_ordered(text: str, left: str, operator: Operator, right: str) -> Ordered:
    """``a > b`` as ``b < a``, and equality in one order, so that equal meanings are equal."""
    if operator in (">", ">="):
        return Ordered(text, right, "<" if operator == ">" else "<=", left)
    if operator == "==":
        left, right = sorted((left, right))
    return Ordered(text, left, operator, right)


def ordering(rules: Iterable[Rule]) -> frozenset[str]:
    """Columns that must be numbers for the rules to mean anything."""
    asked = [r for r in rules if isinstance(r, Within) or (isinstance(r, Ordered) and r.operator != "==")]
    return frozenset(name for rule in asked for name in rule.columns)
