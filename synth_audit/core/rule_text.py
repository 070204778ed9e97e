"""Rules as a plan writes them: a short readable text becomes a rule, or an error says how to write it."""

from __future__ import annotations

from collections.abc import Sequence

from synth_audit.core.errors import PlanError
from synth_audit.core.rules import Rule

FORMS = (
    "`age between 18 and 110`, `age >= 18`, `stage in [I, II, 'III b']`, `admitted <= discharged` or "
    "`zip, street -> city`; operators <, <=, >, >= and ==, dates as 2024-12-31, and column names with spaces "
    "or signs in backticks"
)

_LONGEST = 20_000
"""Characters of a rule; a list of more labels than fit is no rule that anybody checks."""

_SHOWN = 200
"""Characters of a rule, or of what is wrong in it, that an error repeats."""


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
    from synth_audit.core.rule_grammar import NotARule, read

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
