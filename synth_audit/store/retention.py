"""Says which audits of a table are old enough to be purged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from synth_audit.core.errors import PlanError

_AGE = re.compile(r"(\d{1,5})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Retention:
    """What is old: whatever is old by every rule that is given.

    Attributes:
        keep: so many of the table's newest audits are not old, nor are the candidates of its newest sweep.
        older_than: nothing is old that was made less than this ago.

    Raises:
        PlanError: no rule is given, or one that would keep nothing.
    """

    keep: int | None = None
    older_than: timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than is None:
            raise _bad("nothing says what is old", "keep, older_than, or both")
        if self.keep is not None and self.keep < 1:
            raise _bad(f"keep is {self.keep}", "1 or more, since the newest audit always stays")
        if self.older_than is not None and self.older_than <= timedelta(0):
            raise _bad("older_than is no time", "a time such as 90d, 12w or 36h")

    @classmethod
    def of(cls, keep: int | None, older_than: str | timedelta | None) -> Retention:
        """From settings as people write them; raises ``PlanError``.

        Args:
            older_than: such as ``90d``, ``12w`` or ``36h``.
        """
        if not isinstance(older_than, str):
            return cls(keep, older_than)
        found = _AGE.fullmatch(older_than.strip())
        if found is None:
            raise _bad("older_than is no time", "a time such as 90d, 12w or 36h")
        return cls(keep, timedelta(**{_UNITS[found[2]]: int(found[1])}))

    def spares_audit(self, rank: int, made: str, now: datetime) -> str:
        """Why an audit of the table itself is not old; empty when it is.

        Args:
            rank: among them all, 1 for the newest. made: when, as ISO 8601; empty if nobody knows.
        """
        if self.keep is not None and rank <= self.keep:
            return f"one of the {self.keep} newest" if self.keep > 1 else "the newest one"
        return self._by_age(made, now)

    def spares_candidate(self, in_newest_sweep: bool | None, made: str, now: datetime) -> str:
        """Why a candidate is not old; empty when it is.

        Args:
            in_newest_sweep: None when no record of a sweep is there, as after an interruption.
        """
        if self.keep is not None and in_newest_sweep:
            return "a candidate of the newest sweep"
        if self.keep is not None and in_newest_sweep is None and self.older_than is None:
            return "no record of a sweep tells whether it is needed"
        return self._by_age(made, now)

    def _by_age(self, made: str, now: datetime) -> str:
        if self.older_than is None:
            return ""
        try:
            then = datetime.fromisoformat(made)
        except ValueError:
            then = None
        if then is None or then.tzinfo is None:
            return "nobody knows when it was made"
        return "" if now - then > self.older_than else "not old enough"


def _bad(what: str, expected: str) -> PlanError:
    return PlanError(what, where="purge", expected=expected, fix="try --keep 10, or --older-than 90d")
