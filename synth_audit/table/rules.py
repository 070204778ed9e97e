"""Rules that rows obey, beside what single columns hold: what they say, and how a plan writes them.

Their grammar is for the parser generator lark. Importing it takes some 100 ms, so it is imported where a rule
is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, cast

from synth_audit.errors import PlanError
from synth_audit.table.arrow import microseconds

if TYPE_CHECKING:
    from lark import Lark, Token

Value: TypeAlias = float | datetime
Operator: TypeAlias = Literal["<", "<=", ">", ">=", "=="]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_PLAIN = re.compile(r"[^\W\d]\w*")
_ENDLESS = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)

FORMS = (
    "`age between 18 and 110`, `age >= 18`, `stage in [I, II, 'III b']`, `admitted <= discharged` or "
    "`zip, street -> city`; operators <, <=, >, >= and ==, dates as 2024-12-31, and column names with spaces "
    "or signs in backticks"
)

_LONGEST = 20_000
"""Characters of a rule; a list of more labels than fit is no rule that anybody checks."""

_SHOWN = 200
"""Characters of a rule, or of what is wrong in it, that an error repeats."""

# A keyword is one only where the grammar asks for it, so a column may be called `in`; and it ends where a
# word would. A word may hold a hyphen, but no arrow.
GRAMMAR = r"""
?start: _text _BETWEEN _text _AND _text      -> between
      | _text _IN "[" _text ("," _text)* "]" -> one_of
      | _text OPERATOR _text                 -> compared
      | determinants _ARROW _text            -> determines
determinants: _text ("," _text)*
_text: WORD | BACKTICKS | DOUBLE | SINGLE

_BETWEEN: /between(?=->|[\s,\[\]<>=!`"']|$)/i
_AND: /and(?=->|[\s,\[\]<>=!`"']|$)/i
_IN: /in(?=->|[\s,\[\]<>=!`"']|$)/i
_ARROW: "->"
OPERATOR: "<=" | ">=" | "==" | "<" | ">"
WORD: /((?!->)[^\s,\[\]<>=!`"'])+/
BACKTICKS: /`[^`]+`/
DOUBLE: /"[^"]+"/
SINGLE: /'[^']+'/
%ignore /\s+/
"""

_WANTED = {
    "_BETWEEN": ("`between` wants two values", "write `column between 0 and 10`; both ends are allowed"),
    "_IN": (
        "`in` wants a list in brackets",
        "write `stage in [I, II]`; quote values with spaces or signs",
    ),
    "_ARROW": (
        "`->` wants columns before it and one column after it",
        "write `zip, street -> city`, one rule for each column that is determined",
    ),
    "OPERATOR": (
        "{verb!r} wants one value or column after it",
        "for two limits write `between`; quote a value of several words, a name in backticks",
    ),
    "COMMA": ("{verb!r} follows the column", "write `zip, street -> city`, or a list in brackets"),
}


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
    text = text.strip()
    if len(text) > _LONGEST:
        raise PlanError(
            f"the rule {_cut(text)!r} is {len(text):,} characters long",
            where=where,
            expected=f"at most {_LONGEST:,} characters",
            fix="declare long lists of values as `categories` of the column",
        )
    try:
        return _read(text)
    except NotARule as error:
        raise PlanError(
            f"the rule {_cut(text)!r} cannot be read at character {error.at + 1:,}: {_cut(error.why)}",
            where=where,
            expected=FORMS,
            fix=_cut(error.fix) or "write it in one of these forms",
        ) from None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class NotARule(Exception):
    """Why a text is no rule, what to do about it, and the place in the text that shows it."""

    def __init__(self, why: str, fix: str = "", at: int = 0) -> None:
        super().__init__(why)
        self.why, self.fix, self.at = why, fix, at


def _read(text: str) -> Rule:
    """The rule that a text states.

    Raises:
        NotARule: it is none, or it can never or must always hold.
    """
    from lark.exceptions import UnexpectedInput

    parsing = _parser().parse_interactive(text)
    known: list[Token] = []  # keeps what was read before an error
    try:
        known.extend(parsing.iter_parse())
        tree = parsing.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        ended = getattr(getattr(error, "token", None), "type", "") == "$END"
        at = len(text) if ended else cast(int, error.pos_in_stream)
        _refuse_form(text, at, [t for t in known if cast(int, t.start_pos) < at])
    match tree.data:
        case "between":
            return _between(text, *tree.children)
        case "one_of":
            return _one_of(text, *tree.children)
        case "compared":
            return _compared(text, *tree.children)
    left, right = tree.children
    return _determines(text, left.children, right)


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr")


def _refuse_form(text: str, at: int, known: Sequence[Token]) -> NoReturn:
    """Say what the grammar wants at a place, given the tokens before it."""
    verb = next((t for t in known if t.type in _WANTED), None)
    found = _first(text[at:])
    if found in ("`", '"', "'"):
        raise NotARule("a quotation mark or backtick is left open or holds nothing", at=at)
    if verb is not None:
        why, fix = _WANTED["_ARROW" if verb.type == "COMMA" and "->" in text else verb.type]
        raise NotARule(why.format(verb=str(verb)), fix, at)
    if "->" in text[at:]:
        raise NotARule(*_WANTED["_ARROW"], at=at)
    if not known:
        raise NotARule("a column's name is missing" + (f" before {found!r}" if found else ""), at=at)
    if not found:
        raise NotARule("it names a column and says nothing of it", at=at)
    if found in ("=", "!"):
        raise NotARule(f"{found!r} is no operator", "write `==` for equal; unequal cannot be asked", at)
    fix = f"put a name of several words in backticks, as in `` `{_bare(known[0])} {found}` >= 0 ``"
    raise NotARule(f"{found!r} follows the column", "" if found in ("[", "]") else fix, at)


def _first(rest: str) -> str:
    """The word that a text begins with, without quotation marks, or the sign; empty for an empty text."""
    from lark.exceptions import UnexpectedInput

    try:
        token = next(iter(_parser().lex(rest)), None)
        return "" if token is None else _bare(token)
    except UnexpectedInput:
        return rest[:1]


def _bare(token: Token) -> str:
    return token[1:-1] if token.type in ("BACKTICKS", "DOUBLE", "SINGLE") else str(token)


def _between(text: str, column: Token, first: Token, last: Token) -> Rule:
    """``column between first and last``."""
    low, high = (_value(token, "leave an end open by `>=` or `<=`") for token in (first, last))
    for token, end in ((first, low), (last, high)):
        if end is None:
            _refuse(token, f"{_bare(token)!r} is neither a number nor a date")
    assert low is not None
    assert high is not None
    if isinstance(low, datetime) != isinstance(high, datetime):
        _refuse(last, "one end is a date and the other a number")
    if as_number(low) > as_number(high):
        _refuse(first, "the first end lies above the second", "give the lower one first")
    return _within(text, column, low, high)


def _one_of(text: str, column: Token, *listed: Token) -> Rule:
    """``column in [listed, …]``."""
    values = set[str]()
    for token in listed:
        if token.type == "WORD":
            _value(token, "quote it if it is a label")
        if _bare(token) in values:
            _refuse(token, "a value is listed twice")
        values.add(_bare(token))
    return OneOf(text, _bare(column), tuple(sorted(values)))


def _compared(text: str, column: Token, sign: Token, operand: Token) -> Rule:
    """``column <= operand``, which is a value if it reads as one and stands in no backticks."""
    operator = cast(Operator, str(sign))
    value = _value(operand, "put it in backticks if it is a column")
    if value is None:
        if _bare(operand) == _bare(column):
            _refuse(operand, "it compares a column with itself")
        return make_ordered(text, _bare(column), operator, _bare(operand))
    low = value if operator in (">", ">=", "==") else None
    high = value if operator in ("<", "<=", "==") else None
    return _within(text, column, low, high, strict_low=operator == ">", strict_high=operator == "<")


def _determines(text: str, left: Sequence[Token], right: Token) -> Rule:
    """``left, … -> right``."""
    names = [_bare(t) for t in left]
    if len({*names, _bare(right)}) <= len(names):
        _refuse(right, "a column occurs twice")
    return Determines(text, tuple(sorted(names)), _bare(right))


def _within(text: str, column: Token, low: Value | None, high: Value | None, **strict: bool) -> Rule:
    ends = [None if x is None else as_number(x) for x in (low, high)]
    dates = isinstance(low if low is not None else high, datetime)
    return Within(text, _bare(column), ends[0], ends[1], dates=dates, **strict)


def _value(token: Token, fix: str) -> Value | None:
    """The number or date that a token is; None for any other text, and for what is in backticks.

    Raises:
        NotARule: it has the form of one and is none.
    """
    if token.type == "BACKTICKS":
        return None
    if why := misread(_bare(token)):
        _refuse(token, f"{_bare(token)!r} {why}", fix)
    return read_value(_bare(token))


def _refuse(token: Token, why: str, fix: str = "") -> NoReturn:
    raise NotARule(why, fix, token.start_pos or 0)
