"""Errors that say what is wrong, where, what was expected and how to fix it, and never show a cell value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


class SynthAuditError(Exception):
    """Base of every error a user can cause or cure.

    Args:
        what: the problem in one sentence, without any cell value.
        where: the plan key, file, table or column concerned.
        expected: what would have been accepted.
        fix: what to do next.
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.what]
        for label in ("where", "expected", "fix"):
            if text := getattr(self, label):
                lines.append(f"  {label}: {text}")
        return "\n".join(lines)


class PlanError(SynthAuditError):
    """The plan is malformed or names something that does not exist."""


class DataError(SynthAuditError):
    """A table cannot be read, or does not hold what the plan says."""


class PluginError(SynthAuditError):
    """A plug-in cannot be found or imported, or broke its contract."""


class GateError(SynthAuditError):
    """A gate suite cannot be judged, so nothing may be released."""


class ReleaseRefused(SynthAuditError):
    """The evidence does not allow these bytes to leave."""


class BudgetSpent(SynthAuditError):
    """A mechanism would cost more privacy than was declared, so it did not run."""


class LedgerDamaged(SynthAuditError):
    """The ledger cannot be trusted, so nobody knows what was spent and nothing may be fitted."""


class NotApplicable(SynthAuditError):
    """Raised by an audit that cannot be asked of this table; its text must hold no cell value."""


def problems_of(error: ValidationError) -> str:
    """What pydantic found, as one line that names each key and repeats no input."""
    return "; ".join(_sentence(e) for e in error.errors(include_url=False, include_input=False))


def _sentence(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown key {place!r}"
    return f"{place}: {error['msg']}" if place else str(error["msg"])
