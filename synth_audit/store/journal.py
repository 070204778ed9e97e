"""What a workspace filed, reported and released, written where no reviewer can write.

Attempts are numbered by the table's ledger, which knows of those that broke off too; here stands what each
left.

Whoever can write into ``review/`` can rewrite evidence together with its digest, or put the evidence of
another run in its place. The journal lies in ``restricted/`` (mode 0600), and what it does not know, or knows
otherwise, is not released.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ConfigDict, with_config

from synth_audit.core.errors import DataError
from synth_audit.core.verdict import Result
from synth_audit.store.chained_log import Head
from synth_audit.store.pointers import SCHEMA_VERSION, Count, Digest, Released, parse_strict, to_json
from synth_audit.store.untrusted_file import read_plain, sha256_of_bytes
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import making, write_text

_STRICT = ConfigDict(extra="forbid", strict=True)


@with_config(_STRICT)
@dataclass(frozen=True)
class AuditEntry:
    """An audit that was filed, and how it ended.

    Attributes:
        number: of the first attempt that found it, as the table's ledger has it.
        latest: of the last one, if it is no pass.
        candidate: content hash of the candidate as the evidence has it; empty if it names none.
        place: of an audit within a sweep, its candidate's folder; else empty.
        files: SHA-256 of each file in the audit's folder.
        purged: when its folder was deleted, in UTC; empty while it is there.
    """

    number: Count
    digest: Digest
    verdict: Result
    candidate: str
    created: str
    place: str
    files: Mapping[str, Digest]
    purged: str = ""
    latest: Count = 0

    def names(self, evidence: bytes) -> bool:
        """True when this is the evidence that was filed, byte for byte."""
        return self.files.get("evidence.json") == sha256_of_bytes(evidence)

    @property
    def last(self) -> int:
        """The number by which it is newer or older than others on the same rows."""
        return max(self.number, self.latest)


@with_config(_STRICT)
@dataclass(frozen=True)
class Journal:
    """Everything in order.

    Attributes:
        newest: digest of the newest audit by place.
        released: what is out there. previous: what was there before, to which a rollback leads.
        releasing: what was on its way out when the program ended.
        releases: all that were out there, oldest first.
        ledger: how far the table's ledger had come when an audit was filed last; None when none was here.
    """

    audits: tuple[AuditEntry, ...] = ()
    newest: Mapping[str, Digest] = field(default_factory=dict)
    released: Released | None = None
    releasing: Released | None = None
    previous: Released | None = None
    ledger: Head | None = None
    releases: tuple[Released, ...] = ()
    schema_version: str = SCHEMA_VERSION

    @property
    def history(self) -> tuple[Released, ...]:
        """All releases, oldest first; of journals that kept none but the last, that one."""
        last = () if self.released is None or self.released in self.releases else (self.released,)
        return (*self.releases, *last)

    def entry(self, digest: str) -> AuditEntry | None:
        """The audit with this digest."""
        return next((e for e in self.audits if e.digest == digest), None)

    def governing(self, candidate: str) -> AuditEntry | None:
        """What the last attempt on these very rows found: that counts, whatever others found before."""
        about = [e for e in self.audits if candidate and e.candidate == candidate]
        return max(about, key=lambda e: e.last, default=None)

    def with_entry(self, entry: AuditEntry) -> Journal:
        """With an audit added, or in the place of what is known of it."""
        others = [e for e in self.audits if e.digest != entry.digest]
        audits = sorted((*others, entry), key=lambda e: e.last)
        return replace(self, audits=tuple(audits))

    def with_release(self, released: Released) -> Journal:
        """With this as what is out there."""
        return replace(self, released=released, releases=(*self.history, released))

    def with_newest(self, place: str, digest: str) -> Journal:
        """With this audit as the newest of its place."""
        return replace(self, newest={**self.newest, place: digest})


@dataclass
class OpenJournal:
    """The journal while nobody else may write it."""

    path: Path
    now: Journal

    def write(self, journal: Journal) -> None:
        """Replace the journal wholly or not at all."""
        write_text(self.path, to_json(journal), private=True)
        self.now = journal


@contextmanager
def open_journal(workspace: Workspace) -> Iterator[OpenJournal]:
    """The workspace's journal, to be written by one process at a time; others wait.

    Raises:
        DataError: it is damaged.
    """
    with private_lock(workspace.journal_lock) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield OpenJournal(workspace.journal, read_journal(workspace) or Journal())


@contextmanager
def private_lock(path: Path) -> Iterator[int]:
    """A file to lock, for its owner alone, as a descriptor that is closed, and so unlocked, at the end.

    Raises:
        DataError: it cannot be made or opened, or a link is in its place.
    """
    with making(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_journal(workspace: Workspace) -> Journal | None:
    """The workspace's journal; None where there is none, or none that this reader may see.

    Raises:
        DataError: it is damaged.
    """
    path = workspace.journal
    try:
        return parse_strict(Journal, read_plain(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, ValueError):
        raise DataError(
            "the journal of the workspace is damaged",
            where=str(path),
            expected="the file that this program keeps",
            fix="restore it from a backup; without it nothing that was audited here can be released",
        ) from None
