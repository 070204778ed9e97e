"""Deletes old audits and candidates of a table. What decides or proves anything stays.

The journal keeps its entries and says when an audit was purged, which tells it from a forged one. Entries are
marked before any file goes: after a kill in between, the next purge finishes what was begun.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from synth_audit.core.errors import DataError
from synth_audit.store.journal import AuditEntry, Journal, open_journal, read_journal
from synth_audit.store.retention import Retention
from synth_audit.store.scratch import alone_in, clear_away, delete
from synth_audit.store.stage_records import SyntheticRecord
from synth_audit.store.untrusted_file import is_plain_folder
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import making

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class PurgeItem:
    """An audit of the table, or a candidate of a sweep with its audit.

    Attributes:
        name: digest of the audit, or folder of the candidate under ``candidates/``.
        made: when, in UTC; empty if nobody knows.
        told: what it is. reason: why it stays; of what goes, what its end means, if anything.
        digests: of the audits in it. folders: where it lies. size: of its files, in bytes.
    """

    name: str
    made: str
    told: str
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
        for folder in (folder for item in goes for folder in item.folders):
            _discard(folder)
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
    places = (home.audits, home.restricted / "audits")
    there = {name for place in places for name in _names(place) if _DIGEST.fullmatch(name)}
    known = [e for e in reversed(journal.audits) if e.digest in there]
    for rank, entry in enumerate(known, start=1):
        folders = tuple(place / entry.digest for place in places if entry.digest in _names(place))
        told = f"attempt {entry.last}, {entry.verdict}" + f" ({entry.place})" * bool(entry.place)
        made = entry.created
        item = PurgeItem(entry.digest, made, told, (entry.digest,), folders, _size(folders))
        needed = _needed(entry, journal)
        begun = f"its purge began on {entry.purged[:10]}" if entry.purged else ""
        if begun and not needed:
            yield replace(item, reason=begun), ""
        else:
            yield item, needed or retention.spares_audit(rank, made, now)
    for digest in sorted(there - {e.digest for e in known}):
        folders = tuple(place / digest for place in places if digest in _names(place))
        yield PurgeItem(digest, "", "unknown", (), folders, _size(folders)), "the journal does not know it"


def _needed(entry: AuditEntry, journal: Journal) -> str:
    """Why an audit stays, whatever its age."""
    if journal.newest.get("") == entry.digest:
        return "the newest one"
    if journal.released is not None and journal.released.digest == entry.digest:
        return "what was released rests on it"
    if journal.releasing is not None and journal.releasing.digest == entry.digest:
        return "its release was interrupted"
    return ""


def _candidates(
    home: Workspace, journal: Journal, retention: Retention, sweep: Sweep | None, now: datetime
) -> Iterator[tuple[PurgeItem, str]]:
    """The candidates of sweeps, newest first, and why each stays."""
    found: list[tuple[PurgeItem, str]] = []
    for slug in _names(home.candidates):
        own = home.candidate(slug)
        entries = [e for e in journal.audits if e.place == own.place]
        made = max((e.created for e in entries), default="")
        there = tuple(e.digest for e in entries if is_plain_folder(own.audits / e.digest))
        told = f"candidate, {entries[-1].verdict}" if entries else "candidate without an audit"
        item = PurgeItem(slug, made, told, there, (own.root,), _size((own.root,)), _warning(own))
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


def _names(place: Path) -> tuple[str, ...]:
    """Names of folders, and of links that stand for folders, without hidden ones."""
    if not is_plain_folder(place):
        return ()
    return tuple(sorted(n for n in os.listdir(place) if not n.startswith(".") and (place / n).is_dir()))


def _size(folders: Iterable[Path]) -> int:
    files = (Path(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names)
    try:
        return sum(os.lstat(file).st_size for file in files)
    except RecursionError:  # reviewers may nest folders without end
        return 0


def _discard(folder: Path) -> None:
    """Move a folder out of sight, then delete it; what a kill leaves goes at the next start."""
    hidden = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
    with making(folder):
        folder.rename(hidden)
    delete(hidden)
    if os.path.lexists(hidden):
        raise _cannot(hidden, "cannot be deleted wholly")


def _cannot(path: Path, what: str) -> DataError:
    return DataError(
        f"a folder to purge from {what}",
        where=str(path),
        expected="folders that this program made and this user may delete",
        fix="look who changed it and put it right, then purge again",
    )
