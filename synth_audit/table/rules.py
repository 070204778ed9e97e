"""Rules that rows obey, beside what single columns hold: what a plan states in short text, and the rule."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from synth_audit.errors import PlanError
from synth_audit.table.arrow import microseconds
from synth_audit.table.kind import Order

if TYPE_CHECKING:
    from synth_audit.table.schema import Column, Schema


Value: TypeAlias = float | datetime
Operator: TypeAlias = Literal["<", "<=", ">", ">=", "=="]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_PLAIN = re.compile(r"[^\W\d]\w*")
_ENDLESS = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_MOST_SHOWN = 8

FORMS = (
    "`age between 18 and 110`, `age >= 18`, `stage in [I, II, 'III b']`, `admitted <= discharged` or "
    "`zip, street -> city`; operators <, <=, >, >= and ==, dates as 2024-12-31, and column names with spaces "
    "or signs in backticks"
)

_LONGEST = 20_000
"""Characters of a rule; a list of more labels than fit is no rule that anybody checks."""

_SHOWN = 200
"""Characters of a rule, or of what is wrong in it, that an error repeats."""


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


def as_number(value: Value) -> float:
    """The value as columns hold it: dates in microseconds since 1970, UTC unless they say otherwise."""
    return microseconds(value) if isinstance(value, datetime) else value


def quoted(name: str) -> str:
    """A column's name as a rule must write it."""
    if _PLAIN.fullmatch(name) and not misread(name):
        return name
    return f"`{name}`" if "`" not in name else f'"{name}"'


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


def declared_rules(schema: Schema) -> tuple[Rule, ...]:
    """The plan's rules, then its bounds and categories as rules, each meaning once."""
    of_columns = [rule for column in schema.features for rule in _of_column(column)]
    return tuple(dict.fromkeys([*schema.rules, *of_columns]))


def _of_column(column: Column) -> list[Rule]:
    found: list[Rule] = []
    name, kind = column.name, column.kind
    if column.declared_bounds is not None:
        low, high = column.declared_bounds
        ends = " and ".join(kind.bound_text(x) for x in (low, high))
        found.append(
            Within(f"{quoted(name)} between {ends}", name, low, high, dates=kind.order is Order.DATES)
        )
    if column.declared_categories is not None:
        values = tuple(sorted(column.declared_categories))
        listed = [_quoted_value(v) for v in values]
        if len(listed) > _MOST_SHOWN:
            listed = [*listed[: _MOST_SHOWN - 1], f"… {len(listed)} in all"]
        found.append(OneOf(f"{quoted(name)} in [{', '.join(listed)}]", name, values))
    return found


def _quoted_value(value: str) -> str:
    if not misread(value) and (_PLAIN.fullmatch(value) or _NUMBER.fullmatch(value)):
        return value
    return f'"{value}"' if "'" in value else f"'{value}'"


def check_rules(rules: Sequence[Rule], schema: Schema) -> None:
    """Raise ``PlanError`` for a rule on a column that is unknown, never leaves, or holds other values."""
    for rule in rules:
        for name in rule.columns:
            if name not in schema.names:
                raise _misplaced(
                    rule,
                    f"names column {name!r}, which the table does not have",
                    f"one of {', '.join(schema.names)}",
                    "correct the name; for a label write `column in [label]`",
                )
            if not schema[name].released:
                raise _misplaced(
                    rule,
                    f"names column {name!r}, which is never released",
                    "columns that are neither identifier nor split key",
                    "drop the rule",
                )
        if why := _unfit(rule, [schema[name] for name in rule.columns]):
            raise _misplaced(rule, *why)


def _misplaced(rule: Rule, what: str, expected: str, fix: str) -> PlanError:
    return PlanError(f"the rule {rule.text!r} {what}", where="rules", expected=expected, fix=fix)


def _unfit(rule: Rule, columns: Sequence[Column]) -> tuple[str, str, str] | None:
    """What is wrong, expected and to be done where the columns' kinds do not go with a rule."""
    known = [c for c in columns if not c.typeless]
    ranked = ordering([rule])
    for column in known:
        if column.name in ranked and column.kind.order is None:
            return (
                f"asks for an order in column {column.name!r}, which is {column.kind}",
                "numbers or dates",
                "declare its kind under `columns`, or convert it at its source; for labels write "
                "`column in [label, …]`",
            )
    orders = {c.kind.order for c in known}
    match rule:
        case Within() if orders == {Order.NUMBERS if rule.dates else Order.DATES}:
            mixed = "numbers with a date" if rule.dates else "dates with a number"
            return f"compares {mixed}", "values of one kind", "write dates as 2024-12-31"
        case Ordered() if Order.DATES in orders and len(orders) > 1:
            return "compares a date with something else", "two columns of one kind", "drop the rule"
        case OneOf() if known and any(known[0].kind.meant(v) is None for v in rule.allowed):
            return (
                "lists values that its column cannot hold",
                f"values that are {known[0].kind}",
                "correct the values, or declare `kind: categorical` under `columns`",
            )
    return None


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Read the rules of a plan.

    Raises:
        PlanError: a text is no rule, or two say the same.
    """
    found: dict[Rule, str] = {}
    for i, text in enumerate(texts):
        rule = parse_rule(text, where=f"rules.{i}")
        if rule in found:
            raise PlanError(
                f"the rules {_cut(found[rule])!r} and {_cut(rule.text)!r} say the same",
                where=f"rules.{i}",
                fix="drop one of them",
            )
        found[rule] = rule.text
    return tuple(found)


def parse_rule(text: str, *, where: str = "rules") -> Rule:
    """Read one rule.

    ``COLUMN between VALUE and VALUE``, ``COLUMN in [VALUE, …]``, ``COLUMN OPERATOR VALUE``,
    ``COLUMN OPERATOR COLUMN``, ``COLUMN, … -> COLUMN``. On the right of an operator, what reads as a number
    or an ISO date is a value unless it stands in backticks; anything else is a column. What has the form of
    a number or date and is none, such as ``1e400``, ``nan`` or ``2024-02-30``, must be quoted in a list and
    stand in backticks as a column.

    Raises:
        PlanError: it is none of these, or can never or must always hold; the error names the character.
    """
    from synth_audit.table.rule_grammar import NotARule, read

    text = text.strip()
    if len(text) > _LONGEST:
        raise PlanError(
            f"the rule {_cut(text)!r} is {len(text):,} characters long",
            where=where,
            expected=f"at most {_LONGEST:,} characters",
            fix="declare long lists of values as `categories` of the column",
        )
    try:
        return read(text)
    except NotARule as error:
        raise PlanError(
            f"the rule {_cut(text)!r} cannot be read at character {error.at + 1:,}: {_cut(error.why)}",
            where=where,
            expected=FORMS,
            fix=_cut(error.fix) or "write it in one of these forms",
        ) from None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
