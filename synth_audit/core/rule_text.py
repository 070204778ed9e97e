"""The grammar of rules: a short readable text becomes a rule, or an error says how to write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from synth_audit.core.errors import PlanError
from synth_audit.core.rules import (
    Determines,
    OneOf,
    Operator,
    Rule,
    Value,
    Within,
    as_number,
    make_ordered,
    misread,
    read_value,
)

FORMS = (
    "`age between 18 and 110`, `age >= 18`, `stage in [I, II, 'III b']`, `admitted <= discharged` or "
    "`zip, street -> city`; operators <, <=, >, >= and ==, dates as 2024-12-31, and column names with spaces "
    "or signs in backticks"
)

_OPERATORS: tuple[Operator, ...] = ("<=", ">=", "==", "<", ">")
_TOKEN = re.compile(
    r"\s*(?:(?P<sign>->|<=|>=|==|[<>,\[\]=!])"
    r"|`(?P<tick>[^`]+)`|\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)'"
    r"|(?P<word>(?:(?!->)[^\s,\[\]<>=!`\"'])+))"
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    def says(self, word: str) -> bool:
        return self.kind == "word" and self.text.casefold() == word


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
                f"the rules {found[rule]!r} and {rule.text!r} say the same",
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
        PlanError: it is none of these, or can never or must always hold.
    """
    return _Parser(text.strip(), where).rule()


class _Parser:
    """One text on its way to a rule."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.tokens = self._tokens()

    def rule(self) -> Rule:
        signs = [t.text for t in self.tokens if t.kind == "sign"]
        if "->" in signs:
            return self._determines()
        column, verb, *rest = [*self.tokens, *[_Token("end", "")] * 2]
        rest = [t for t in rest if t.kind != "end"]
        self._name(column)
        if verb.says("between"):
            return self._between(column.text, rest)
        if verb.says("in"):
            return self._one_of(column.text, rest)
        for operator in _OPERATORS:
            if verb == _Token("sign", operator):
                return self._compared(column.text, operator, rest)
        return self._not_understood(column, verb)

    def _not_understood(self, column: _Token, verb: _Token) -> NoReturn:
        if verb.kind == "end":
            self._refuse("it names a column and says nothing of it")
        if verb.text in ("=", "!"):
            self._refuse(f"{verb.text!r} is no operator", "write `==` for equal; unequal cannot be asked")
        if verb.kind == "sign":
            self._refuse(f"{verb.text!r} follows the column")
        self._refuse(
            f"{verb.text!r} follows the column",
            f"put a name of several words in backticks, as in `` `{column.text} {verb.text}` >= 0 ``",
        )

    def _tokens(self) -> list[_Token]:
        found, at = [], 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                self._refuse("a quotation mark or backtick is left open or holds nothing")
            kind = match.lastgroup or ""
            found.append(_Token(kind, match[kind]))
            at = match.end()
        return found

    def _name(self, token: _Token) -> str:
        if token.kind in ("sign", "end") or not token.text:
            self._refuse("a column's name is missing" + (f" before {token.text!r}" if token.text else ""))
        return token.text

    def _between(self, column: str, rest: list[_Token]) -> Rule:
        if len(rest) != 3 or not rest[1].says("and"):
            self._refuse(
                "`between` wants two values", "write `column between 0 and 10`; both ends are allowed"
            )
        low, high = (self._value(rest[i]) for i in (0, 2))
        if isinstance(low, datetime) != isinstance(high, datetime):
            self._refuse("one end is a date and the other a number")
        if as_number(low) > as_number(high):
            self._refuse("the first end lies above the second", "give the lower one first")
        return self._within(column, low=low, high=high)

    def _one_of(self, column: str, rest: list[_Token]) -> Rule:
        shape = [t.text if t.kind == "sign" else "x" for t in rest]
        values = tuple(t.text for t in rest if t.kind != "sign")
        if not values or shape != ["[", *[x for _ in values for x in ("x", ",")][:-1], "]"]:
            self._refuse(
                "`in` wants a list in brackets", "write `stage in [I, II]`; quote values with spaces or signs"
            )
        for token in rest:
            if token.kind == "word":
                self._refuse_misread(token, "quote it if it is a label")
        if len(set(values)) < len(values):
            self._refuse("a value is listed twice")
        return OneOf(self.text, column, tuple(sorted(values)))

    def _compared(self, column: str, operator: Operator, rest: list[_Token]) -> Rule:
        if len(rest) != 1:
            self._refuse(
                f"{operator!r} wants one value or column after it",
                "for two limits write `between`; quote a value of several words, a name in backticks",
            )
        [operand] = rest
        value = None if operand.kind == "tick" else read_value(operand.text)
        if value is None:
            self._refuse_misread(operand, "put it in backticks if it is a column")
            self._name(operand)
            if operand.text == column:
                self._refuse("it compares a column with itself")
            return make_ordered(self.text, column, operator, operand.text)
        low = value if operator in (">", ">=", "==") else None
        high = value if operator in ("<", "<=", "==") else None
        return self._within(
            column, low=low, high=high, strict_low=operator == ">", strict_high=operator == "<"
        )

    def _within(self, column: str, *, low: Value | None, high: Value | None, **strict: bool) -> Within:
        ends = [None if x is None else as_number(x) for x in (low, high)]
        dates = isinstance(low if low is not None else high, datetime)
        return Within(self.text, column, ends[0], ends[1], dates=dates, **strict)

    def _determines(self) -> Rule:
        left = self.tokens[: self.tokens.index(_Token("sign", "->"))]
        right = self.tokens[len(left) + 1 :]
        names = [t for t in left if t != _Token("sign", ",")]
        shape = [t.text if t.kind == "sign" else "x" for t in left]
        if len(right) != 1 or not names or shape != [x for _ in names for x in ("x", ",")][:-1]:
            self._refuse(
                "`->` wants columns before it and one column after it",
                "write `zip, street -> city`, one rule for each column that is determined",
            )
        determinants = tuple(sorted(self._name(t) for t in names))
        dependent = self._name(right[0])
        if dependent in determinants or len(set(determinants)) < len(determinants):
            self._refuse("a column occurs twice")
        return Determines(self.text, determinants, dependent)

    def _value(self, token: _Token) -> Value:
        value = None if token.kind in ("tick", "sign") else read_value(token.text)
        if value is None:
            self._refuse_misread(token, "leave an end open by `>=` or `<=`")
            self._refuse(f"{token.text!r} is neither a number nor a date")
        return value

    def _refuse_misread(self, token: _Token, fix: str) -> None:
        why = None if token.kind == "tick" else misread(token.text)
        if why is not None:
            self._refuse(f"{token.text!r} {why}", fix)

    def _refuse(self, why: str, fix: str = "") -> NoReturn:
        raise PlanError(
            f"the rule {self.text!r} cannot be read: {why}", where=self.where, expected=FORMS, fix=fix
        )
