"""Deletes old audits and candidates of a table. What decides or proves anything stays."""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from synth_audit.errors import DataError, PlanError
from synth_audit.store.approvals import has_approval
from synth_audit.store.evidence import SyntheticRecord
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.files import discard, folder_names, is_plain_folder, size_of
from synth_audit.store.journal import Journal, open_journal, read_journal
from synth_audit.store.records import is_digest
from synth_audit.store.scratch import alone_in, clear_away
from synth_audit.store.workspace import Workspace

_AGE = re.compile(r"(\d{1,5})([hdw])")

_AGE_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Retention:
    """What is old: whatever is old by every rule that is given.

    Attributes:
        keep: so many of the table's newest audits are not old, nor are the candidates of its newest sweep.
        older_than: nothing is old that was made less than this ago.
        monthly: the last audit of each month is not old.

    Raises:
        PlanError: no rule is given, or one that would keep nothing.
    """

    keep: int | None = None
    older_than: timedelta | None = None
    monthly: bool = False

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than is None:
            raise _bad("nothing says what is old", "keep, older_than, or both")
        if self.keep is not None and self.keep < 1:
            raise _bad(f"keep is {self.keep}", "1 or more, since the newest audit always stays")
        if self.older_than is not None and self.older_than <= timedelta(0):
            raise _bad("older_than is no time", "a time such as 90d, 12w or 36h")

    @classmethod
    def of(cls, keep: int | None, older_than: str | timedelta | None, monthly: bool = False) -> "Retention":
        """From settings as people write them; raises ``PlanError``.

        Args:
            older_than: such as ``90d``, ``12w`` or ``36h``.
        """
        if not isinstance(older_than, str):
            return cls(keep, older_than, monthly)
        found = _AGE.fullmatch(older_than.strip())
        if found is None:
            raise _bad("older_than is no time", "a time such as 90d, 12w or 36h")
        return cls(keep, timedelta(**{_AGE_UNITS[found[2]]: int(found[1])}), monthly)

    def spares_audit(self, rank: int, made: str, now: datetime, *, last: bool = False) -> str:
        """Why an audit of the table itself is not old; empty when it is.

        Args:
            rank: among them all, 1 for the newest. made: when, as ISO 8601; empty if nobody knows.
            last: it is the last one of its month.
        """
        if self.keep is not None and rank <= self.keep:
            return f"one of the {self.keep} newest" if self.keep > 1 else "the newest one"
        if self.monthly and last:
            return "the last one of its month"
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


@dataclass(frozen=True)
class PurgeItem:
    """An audit of the table, or a candidate of a sweep with its audit.

    Attributes:
        name: digest of the audit, or folder of the candidate under ``candidates/``.
        made: when, in UTC; empty if nobody knows.
        told: what it is. reason: why it stays; of what goes, what its end means, if anything.
        digests: of the audits in it, whose evidence the ``workspace`` keeps. folders: what else lies there of
            it. size: of it all, in bytes.
    """

    name: str
    made: str
    told: str
    workspace: Workspace
    digests: tuple[str, ...]
    folders: tuple[Path, ...]
    size: int
    reason: str = ""


@dataclass(frozen=True)
class PurgeRecord:
    """What goes and what stays, newest first; ``done`` when it is gone already."""

    goes: tuple[PurgeItem, ...]
    stays: tuple[PurgeItem, ...]
    done: bool = False

    @property
    def size(self) -> int:
        """Bytes of the files that go."""
        return sum(item.size for item in self.goes)


@dataclass(frozen=True)
class Sweep:
    """The newest sweep: folders of its candidates, and that of the one it chose."""

    slugs: Collection[str]
    chosen: str | None = None


def survey(
    workspace: Workspace, retention: Retention, sweep: Sweep | None = None, now: datetime | None = None
) -> PurgeRecord:
    """What would go; nothing is changed.

    Args:
        sweep: None when no record of one is there.

    Raises:
        DataError: there is no journal that this user can read, or a link is in place of a folder.
    """
    home = workspace.home
    return _judged(home, _journal(home), retention, sweep, now or datetime.now(UTC))


def _journal(home: Workspace) -> Journal:
    journal = read_journal(home)
    if journal is None:
        raise DataError(
            "there is no journal, so nobody knows what is needed",
            where=str(home.journal),
            expected="a workspace whose restricted folder this user may read",
            fix="name the workspace, or the plan that it belongs to",
        )
    return journal


def purge(
    workspace: Workspace,
    retention: Retention,
    sweep: Sweep | None = None,
    only: Collection[str] | None = None,
) -> PurgeRecord:
    """Delete what is old.

    Args:
        sweep: None when no record of one is there.
        only: names of what may go, such as somebody was shown; what has become old since stays.

    Raises:
        DataError: another run is at work in the workspace, there is no journal, or something cannot be
            deleted; to purge again finishes it.
    """
    home = workspace.home
    _journal(home)  # where there is nothing to purge, nothing is made either
    now = datetime.now(UTC)
    with alone_in(home), open_journal(home) as journal:
        clear_away(home)
        found = _judged(home, journal.now, retention, sweep, now)
        goes = tuple(item for item in found.goes if only is None or item.name in only)
        held = {d for item in (*found.goes, *found.stays) if item not in goes for d in item.digests}
        gone = {d for item in goes for d in item.digests} - held
        journal.write(_marked(journal.now, gone, now.isoformat(timespec="seconds")))
        for item in goes:
            for folder in item.folders:
                discard(folder)
            for digest in item.digests:
                evidence_store(item.workspace).remove(digest)
    return PurgeRecord(
        goes, tuple(item for item in (*found.goes, *found.stays) if item not in goes), done=True
    )


def _marked(journal: Journal, gone: Collection[str], at: str) -> Journal:
    marked = (replace(e, purged=e.purged or at) if e.digest in gone else e for e in journal.audits)
    return replace(journal, audits=tuple(marked))


def _judged(
    home: Workspace, journal: Journal, retention: Retention, sweep: Sweep | None, now: datetime
) -> PurgeRecord:
    for place in (home.review, home.audits, home.candidates):
        if os.path.lexists(place) and not is_plain_folder(place):
            raise DataError(
                "a folder to purge from is no folder but, perhaps, a link",
                where=str(place),
                expected="folders that this program made and this user may delete",
                fix="look who changed it and put it right, then purge again",
            )
    judged = [*_audits(home, journal, retention, now), *_candidates(home, journal, retention, sweep, now)]
    return PurgeRecord(
        goes=tuple(item for item, stays in judged if not stays),
        stays=tuple(replace(item, reason=stays) for item, stays in judged if stays),
    )


def _audits(
    home: Workspace, journal: Journal, retention: Retention, now: datetime
) -> Iterator[tuple[PurgeItem, str]]:
    """The audits in the table's own folders, newest first, and why each stays."""
    evidence = evidence_store(home).kept()
    rows = home.restricted / "audits"
    with_rows = {name for name in folder_names(rows) if is_digest(name)}
    there = with_rows | set(evidence)

    def item(digest: str, made: str, told: str, digests: tuple[str, ...], reason: str = "") -> PurgeItem:
        folders = (rows / digest,) if digest in with_rows else ()
        size = evidence.get(digest, 0) + size_of(*folders)
        return PurgeItem(digest, made, told, home, digests, folders, size, reason)

    known = [e for e in reversed(journal.audits) if e.digest in there]
    last_of = {e.created[:7]: e.digest for e in reversed(known) if e.created}
    resting = {r.digest: "it was released" for r in journal.releases} | journal.needed()
    for rank, entry in enumerate(known, start=1):
        told = f"attempt {entry.last}, {entry.verdict}" + f" ({entry.place})" * bool(entry.place)
        needed = resting.get(entry.digest, "")
        begun = f"its purge began on {entry.purged[:10]}" if entry.purged and not needed else ""
        last = last_of.get(entry.created[:7]) == entry.digest
        stays = "" if begun else needed or retention.spares_audit(rank, entry.created, now, last=last)
        if not stays and not begun and has_approval(home.audit(entry.digest).path):
            stays = "it was approved"
        yield item(entry.digest, entry.created, told, (entry.digest,), begun), stays
    for digest in sorted(there - {e.digest for e in known}):
        yield item(digest, "", "unknown", ()), "the journal does not know it"


def _candidates(
    home: Workspace, journal: Journal, retention: Retention, sweep: Sweep | None, now: datetime
) -> Iterator[tuple[PurgeItem, str]]:
    """The candidates of sweeps, newest first, and why each stays."""
    found: list[tuple[PurgeItem, str]] = []
    for slug in folder_names(home.candidates):
        own = home.candidate(slug)
        evidence = evidence_store(own).kept()
        entries = [e for e in journal.audits if e.place == own.place]
        made = max((e.created for e in entries), default="")
        there = tuple(e.digest for e in entries if e.digest in evidence)
        told = f"candidate, {entries[-1].verdict}" if entries else "candidate without an audit"
        spent = "its fit spent privacy budget, and another would spend it again"
        warning = spent if SyntheticRecord.tells_of_spending(own.synthetic_record) else ""
        item = PurgeItem(slug, made, told, own, there, (own.root,), size_of(own.root), warning)
        resting = journal.needed()
        needed = next((resting[e.digest] for e in entries if e.digest in resting), "")
        chosen = "the sweep chose it" if sweep is not None and sweep.chosen == slug else ""
        newest = None if sweep is None else slug in sweep.slugs
        begun = bool(there) and all(e.purged for e in entries if e.digest in there)
        stays = needed or ("" if begun else chosen or retention.spares_candidate(newest, made, now))
        found.append((item, stays))
    yield from sorted(found, key=lambda pair: pair[0].made, reverse=True)
