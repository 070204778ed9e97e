"""Deletes old audits and candidates of a table. What decides or proves anything stays.

The journal keeps its entries and says when an audit was purged, which tells it from a forged one. Entries are
marked before any file goes: after a kill in between, the next purge finishes what was begun.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from synth_audit.core.errors import DataError
from synth_audit.store.audit_folder import is_digest
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.folders import discard, folder_names, size_of
from synth_audit.store.journal import AuditEntry, Journal, open_journal, read_journal
from synth_audit.store.retention import Retention
from synth_audit.store.scratch import alone_in, clear_away
from synth_audit.store.stage_records import SyntheticRecord
from synth_audit.store.untrusted_file import is_plain_folder
from synth_audit.store.workspace import Workspace


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
    journal = read_journal(home)
    if journal is None:
        raise DataError(
            "there is no journal, so nobody knows what is needed",
            where=str(home.journal),
            expected="a workspace whose restricted folder this user may read",
            fix="name the workspace, or the plan that it belongs to",
        )
    return _judged(home, journal, retention, sweep, now or datetime.now(UTC))


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
    survey(home, retention, sweep)  # where there is nothing to purge, nothing is made either
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
    for entry in journal.audits:
        if entry.digest in gone and not entry.purged:
            journal = journal.with_entry(replace(entry, purged=at))
    return journal


def _judged(
    home: Workspace, journal: Journal, retention: Retention, sweep: Sweep | None, now: datetime
) -> PurgeRecord:
    for place in (home.review, home.audits, home.candidates):
        if os.path.lexists(place) and not is_plain_folder(place):
            raise _cannot(place, "is no folder but, perhaps, a link")
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
    for rank, entry in enumerate(known, start=1):
        told = f"attempt {entry.last}, {entry.verdict}" + f" ({entry.place})" * bool(entry.place)
        needed = _needed(entry, journal)
        begun = f"its purge began on {entry.purged[:10]}" if entry.purged and not needed else ""
        stays = "" if begun else needed or retention.spares_audit(rank, entry.created, now)
        yield item(entry.digest, entry.created, told, (entry.digest,), begun), stays
    for digest in sorted(there - {e.digest for e in known}):
        yield item(digest, "", "unknown", ()), "the journal does not know it"


def _needed(entry: AuditEntry, journal: Journal) -> str:
    """Why an audit stays, whatever its age."""
    if journal.newest.get("") == entry.digest:
        return "the newest one"
    if journal.released is not None and journal.released.digest == entry.digest:
        return "what was released rests on it"
    if journal.previous is not None and journal.previous.digest == entry.digest:
        return "a rollback would lead to it"
    if journal.releasing is not None and journal.releasing.digest == entry.digest:
        return "its release was interrupted"
    return ""


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
        item = PurgeItem(slug, made, told, own, there, (own.root,), size_of(own.root), _warning(own))
        needed = next(filter(None, (_needed(e, journal) for e in entries)), "")
        chosen = "the sweep chose it" if sweep is not None and sweep.chosen == slug else ""
        newest = None if sweep is None else slug in sweep.slugs
        begun = bool(there) and all(e.purged for e in entries if e.digest in there)
        stays = needed or ("" if begun else chosen or retention.spares_candidate(newest, made, now))
        found.append((item, stays))
    yield from sorted(found, key=lambda pair: pair[0].made, reverse=True)


def _warning(own: Workspace) -> str:
    try:
        account = SyntheticRecord.read(own.synthetic_record).generator.privacy
    except DataError:
        return ""
    return "its fit spent privacy budget, and another would spend it again" if account.mechanisms else ""


def _cannot(path: Path, what: str) -> DataError:
    return DataError(
        f"a folder to purge from {what}",
        where=str(path),
        expected="folders that this program made and this user may delete",
        fix="look who changed it and put it right, then purge again",
    )
