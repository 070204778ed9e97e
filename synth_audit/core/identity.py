"""What a measurement is called: a value, and the one place where its text is made and read.

The grammar, in which ``[…]`` without quotes may be left out::

    id     = [audit "."] quantity ["[" scope "]"]
    scope  = [setting] ["by" column] ["of" id]            in this order, one space between them, not empty

``audit`` and ``quantity`` are words of letters, digits and ``_``; ``setting`` and ``column`` may hold ``.``
and ``-`` after the first sign; none is ``by`` or ``of``. Any other name is a JSON string. Behind ``of`` an id
without an audit is of the same audit, and one that begins with ``.`` of none. Examples::

    closest_record.privacy_score[ranks]
    inference.risk[by income]
    singling_out.worst_subgroup[by "baby weight" of risk[univariate]]
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import total_ordering
from typing import Any

from synth_audit.core.errors import MeasurementNameError

SCOPE_GRAMMAR = "setting, by column, setting by column, or of quantity[scope]"
GRAMMAR = f"audit.quantity or audit.quantity[scope], where scope is {SCOPE_GRAMMAR}"
"""The form of a text, for messages."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\w[\w.-]*")
_BY, _OF = "by", "of"


@total_ordering
@dataclass(frozen=True)
class MeasurementId:
    """The identity of a measurement; equal identities are the same measurement.

    Attributes:
        audit: plug-in name; empty until the runner has stamped it.
        quantity: as the audit declares it.
        setting: which variant of the attack or measure; empty for the only or the usual one.
        column: the column it is about; empty when it is about all of them.
        derived_from: the measurement it was worked out from; None for one that an audit made itself.

    Raises:
        ValueError: ``derived_from`` is derived itself.
    """

    audit: str
    quantity: str
    setting: str = ""
    column: str = ""
    derived_from: MeasurementId | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.derived_from is not None and self.derived_from.derived_from is not None:
            raise ValueError("a derived measurement rests on one that an audit made")

    def __str__(self) -> str:
        return f"{self.name}[{self.scope}]" if self.scope else self.name

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, MeasurementId):
            return NotImplemented
        return self._key < other._key

    @property
    def _key(self) -> tuple[Any, ...]:
        of = self.derived_from
        return (self.audit, self.quantity, self.setting, self.column, () if of is None else of._key)

    @property
    def name(self) -> str:
        """``audit.quantity``: all numbers of one kind have it in common."""
        quantity = _written(self.quantity, _WORD)
        return f"{_written(self.audit, _WORD)}.{quantity}" if self.audit else quantity

    @property
    def scope(self) -> str:
        """The text inside the brackets; empty when the number stands for the whole table."""
        parts = [_written(self.setting, _NAME)] if self.setting else []
        if self.column:
            parts.append(f"{_BY} {_written(self.column, _NAME)}")
        if (of := self.derived_from) is not None:
            own = replace(of, audit="") if of.audit == self.audit else of
            parts.append(f"{_OF} {'' if of.audit or not self.audit else '.'}{own}")
        return " ".join(parts)

    @property
    def label(self) -> str:
        """The scope for a reader: names as they are, without quotes; several scopes may look alike."""
        own = (
            f"{self.setting} by {self.column}"
            if self.setting and self.column
            else self.setting or self.column
        )
        if self.derived_from is None:
            return own
        of = self.derived_from
        return ", ".join(x for x in (own, f"{of.quantity} ({of.label})" if of.label else of.quantity) if x)

    @property
    def whole(self) -> MeasurementId:
        """The same quantity for the whole table, in the usual setting."""
        return MeasurementId(self.audit, self.quantity)

    def stamped(self, audit: str) -> MeasurementId:
        """The same measurement as that of an audit."""
        return replace(self, audit=audit)


def read(text: str) -> MeasurementId:
    """The identity that a text names: ``read(str(x)) == x``.

    Raises:
        MeasurementNameError: the text does not follow the grammar.
    """
    reader = _TextScanner(text)
    found = reader.identity()
    reader.end()
    return found


def read_scoped(name: str, scope: str = "") -> MeasurementId:
    """The identity of ``audit.quantity`` and of the text inside its brackets.

    ``read_scoped(x.name, x.scope) == x`` for every identity.

    Raises:
        MeasurementNameError: one of them does not follow the grammar.
    """
    of_name, of_scope = _TextScanner(name), _TextScanner(scope)
    audit, quantity = of_name.qualified()
    of_name.end()
    found = MeasurementId(audit, quantity) if not scope else of_scope.scope(audit, quantity)
    of_scope.end()
    return found


def _written(name: str, plain: re.Pattern[str]) -> str:
    if plain.fullmatch(name) and name not in (_BY, _OF):
        return name
    return json.dumps(name, ensure_ascii=False)


class _TextScanner:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def identity(self) -> MeasurementId:
        audit, quantity = self.qualified()
        return self.bracketed(audit, quantity)

    def bracketed(self, audit: str, quantity: str, *, derived: bool = False) -> MeasurementId:
        if not self.taken("["):
            return MeasurementId(audit, quantity)
        found = self.scope(audit, quantity, derived=derived)
        self.need("]")
        return found

    def qualified(self) -> tuple[str, str]:
        """``audit.quantity``, or a quantity alone."""
        first = self.name(_WORD)
        if not self.taken("."):
            return "", first
        if not first:
            raise self.fault()
        return first, self.name(_WORD)

    def scope(self, audit: str, quantity: str, *, derived: bool = False) -> MeasurementId:
        """What stands inside the brackets; ``derived``: inside those of what another is derived from."""
        opened = self.text.startswith((f"{_BY} ", f"{_OF} "), self.at)
        setting = "" if opened else self.name(_NAME)
        column = self.name(_NAME) if self.part(_BY, first=not setting) else ""
        of = None
        if not derived and self.part(_OF, first=not (setting or column)):
            of = self.target(audit)
        if not (setting or column or of):
            raise self.fault()
        return MeasurementId(audit, quantity, setting, column, derived_from=of)

    def target(self, audit: str) -> MeasurementId:
        """What another measurement, of ``audit``, is derived from."""
        if audit and self.taken("."):
            return self.bracketed("", self.name(_WORD), derived=True)
        own, quantity = self.qualified()
        return self.bracketed(own or audit, quantity, derived=True)

    def name(self, plain: re.Pattern[str]) -> str:
        """A plain word or a JSON string."""
        if self.text[self.at : self.at + 1] == '"':
            return self.quoted()
        found = plain.match(self.text, self.at)
        if found is None or found.group() in (_BY, _OF):
            raise self.fault()
        self.at = found.end()
        return found.group()

    def quoted(self) -> str:
        try:
            name, end = json.JSONDecoder().raw_decode(self.text, self.at)
            str(name).encode()  # half a surrogate pair is no text
        except ValueError:
            raise self.fault() from None
        self.at = int(end)
        return str(name)

    def part(self, word: str, *, first: bool) -> bool:
        """Whether the part of a scope that the word begins comes next."""
        return self.taken(f"{word} " if first else f" {word} ")

    def taken(self, sign: str) -> bool:
        found = self.text.startswith(sign, self.at)
        self.at += len(sign) * found
        return found

    def need(self, sign: str) -> None:
        if not self.taken(sign):
            raise self.fault()

    def end(self) -> None:
        if self.at != len(self.text):
            raise self.fault()

    def fault(self) -> MeasurementNameError:
        return MeasurementNameError(
            f"the name of a measurement cannot be read from its sign {self.at + 1} on",
            expected=GRAMMAR,
            fix="put a name that is not one plain word in double quotes, as JSON does",
        )
