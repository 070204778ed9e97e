"""Errors that say what is wrong, where, what was expected and how to fix it, and never show a cell value."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from synth_audit.text import clean, meant, one_line, shortened

if TYPE_CHECKING:
    from pydantic import ValidationError


_MOST_PROBLEMS = 10
"""Problems that one message names: a person mends the first ones and runs again."""

_LONGEST_FIX = 10_000
"""A plug-in that does not import shows its whole traceback here."""

OUT_OF_TIME = "ran out of time"

PROCESS_LOST = "a process ended before it answered: killed, out of memory, or broken by a library"


class SynthAuditError(Exception):
    """Base of every error a user can cause or cure.

    Every part is cut to a readable length and cleaned of control characters, since it may repeat a name or
    path as the user wrote it.

    Args:
        what: the problem in one sentence, without any cell value.
        where: the plan key, file, table or column concerned.
        expected: what would have been accepted.
        fix: what to do next.
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "", fix: str = "") -> None:
        self.what, self.where, self.expected = (shortened(one_line(x)) for x in (what, where, expected))
        self.fix = clean(shortened(fix, _LONGEST_FIX))
        super().__init__(self.what)

    def __str__(self) -> str:
        lines = [self.what]
        for label in ("where", "expected", "fix"):
            if text := getattr(self, label):
                lines.append(f"  {label}: {text}")
        return "\n".join(lines)


class PlanError(SynthAuditError):
    """The plan is malformed or names something that does not exist."""

    @classmethod
    def joined(cls, errors: Sequence[PlanError], where: str) -> PlanError:
        """One error for all mistakes in a plan; a single one stays as it is."""
        if len(errors) == 1:
            return errors[0]
        return cls(
            "; ".join(f"{e.where}: {e.what}" if e.where != where else e.what for e in errors),
            where=where,
            expected="; ".join(dict.fromkeys(e.expected for e in errors if e.expected)),
            fix="\n    ".join(dict.fromkeys(e.fix for e in errors if e.fix)),
        )


class DataError(SynthAuditError):
    """A table cannot be read, or does not hold what the plan says."""


class Unavailable(DataError):
    """Something is locked, or does not answer: the same may succeed a little later."""


class Altered(DataError):
    """What was filed is not there as it was filed."""


class ReleaseUncertain(SynthAuditError):
    """A target was lost in the moment of replacing the table, so nobody knows here whether it has."""


def may_pass(error: BaseException) -> bool:
    """Whether the same may succeed later: a lock, a server that does not answer, or a full disk behind it."""
    if isinstance(error, Unavailable | ReleaseUncertain):
        return True
    behind = error.__cause__ or error.__context__
    return is_full(error) or (behind is not None and may_pass(behind))


def is_full(error: BaseException) -> bool:
    """Whether a disk or a quota is used up."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class MeasurementNameError(SynthAuditError):
    """A text does not follow the grammar of measurements' names."""


class PluginError(SynthAuditError):
    """A plug-in cannot be found or imported, or broke its contract."""


class GateError(SynthAuditError):
    """A gate suite cannot be judged, so nothing may be released."""


class ReleaseRefused(SynthAuditError):
    """The evidence does not allow these bytes to leave."""


class NotAsAudited(ReleaseRefused):
    """Evidence, bytes, plan or suite are not those that were audited and filed: nobody decided anything."""


class ApprovalMissing(ReleaseRefused):
    """The evidence allows these bytes to leave, and the people whom the plan asks have not approved yet."""


class EvidenceInsufficient(ReleaseRefused):
    """No gate has failed, and one that decides could not be decided."""


class BudgetSpent(SynthAuditError):
    """A mechanism would cost more privacy, or a report be one more, than was declared, so there is none."""


class LedgerDamaged(SynthAuditError):
    """The ledger cannot be trusted, so nobody knows what was spent and nothing may be fitted."""


class NotApplicable(SynthAuditError):
    """Raised by an audit that cannot be asked of this table; its text must hold no cell value."""


class OutOfTime(NotApplicable):
    """Raised where work stops because its deadline has passed."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_TIME)


class ProcessLost(PluginError):
    """Raised where the process that did a piece of work is gone."""

    def __init__(self) -> None:
        super().__init__(PROCESS_LOST, fix="see the machine's log; fewer workers need less memory")


def problems_of(error: ValidationError, model: object = None) -> str:
    """What pydantic found, as one line that names each key and repeats no value.

    Args:
        model: what was validated; the known key or value that is nearest is then asked for.
    """
    found = [shortened(_sentence(e, model), 300) for e in error.errors(include_url=False)]
    rest = [f"and {len(found) - _MOST_PROBLEMS} more"] * (len(found) > _MOST_PROBLEMS)
    return "; ".join([*found[:_MOST_PROBLEMS], *rest])


def keys_of(error: ValidationError, model: object) -> str:
    """The keys that are known at each place where pydantic found an unknown one; empty if there is none."""

    found = []
    for place in dict.fromkeys(e["loc"][:-1] for e in error.errors() if e["type"] == "extra_forbidden"):
        of = f" of {'.'.join(map(str, place))}" if place else ""
        found.append(f"keys{of} {', '.join(keys_at(model, place))}")
    return "; ".join(found)


def _sentence(error: Mapping[str, Any], model: object) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown key {place!r}{meant(str(error['loc'][-1]), keys_at(model, error['loc'][:-1]))}"
    known = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
    near = meant(error["input"], known) if isinstance(error["input"], str) else ""
    return f"{place}: {error['msg']}{near}" if place else str(error["msg"])


def keys_at(model: object, place: Sequence[object]) -> tuple[str, ...]:
    """Names of the keys that a model has at a place, such as ``("columns", "age")``; empty if it has none."""
    level = _members(model)
    for part in place:
        level = [member for known in level for member in _within(known, str(part))]
    return tuple(dict.fromkeys(name for known in level for name in _fields(known)))


def _members(annotation: object) -> list[object]:
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return [member for inner in get_args(annotation) for member in _members(inner)]
    return [annotation]


def _within(known: object, part: str) -> list[object]:
    if not _is_model(known):
        return [member for inner in get_args(known) for member in _members(inner)]
    fields = _fields(known)
    return _members(fields[part]) if part in fields else [known]  # a union's member is named in a place too


def _fields(known: object) -> dict[str, Any]:
    if not _is_model(known):
        return {}
    fields: dict[str, Any] = getattr(known, "model_fields")  # noqa: B009 (of a subclass of BaseModel)
    return {field.alias or name: field.annotation for name, field in fields.items()}


def _is_model(known: object) -> bool:
    from pydantic import BaseModel  # lazy import: keeps CLI start fast

    return isinstance(known, type) and issubclass(known, BaseModel)
