"""Logs that only grow: JSON lines, each with the hash of the one before, and the journal of a workspace."""

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import with_config
from pydantic_core import from_json

from synth_audit.errors import DataError, LedgerDamaged
from synth_audit.files import flush, replacing
from synth_audit.findings.verdict import Result
from synth_audit.store.files import making, sha256_of_bytes, write_bytes
from synth_audit.store.records import (
    CLOSED,
    SCHEMA_VERSION,
    Count,
    Digest,
    Released,
    read_record,
    remember,
    to_json,
)
from synth_audit.store.workspace import Workspace

LEDGER = "ledger.jsonl"

_VERSION = 1
"""Version of the format of a log, which its first line states."""

_START = "0" * 64
"""Previous hash of the first line, which has no line before it."""

Entry = Mapping[str, Any]

_read: dict[Path, tuple[bytes, tuple[Entry, ...]]] = {}
"""The lines of the logs that this process read last, and their entries, which need no second look."""

_MOST_READ = 2
"""An audit reads two logs in turn: that of its workspace, and that of its training table."""


@with_config(CLOSED)
@dataclass(frozen=True)
class Head:
    """How far a log had come: its number of lines and the hash of the last one."""

    lines: int
    digest: str


@dataclass(frozen=True)
class _Content:
    entries: tuple[Entry, ...]
    whole: int  # bytes up to the end of the last entry
    tail: bytes  # what a kill left after it
    ended: bool  # the last entry has its line break

    @property
    def head(self) -> Head:
        return Head(len(self.entries), _last_hash(self.entries))


@dataclass(frozen=True)
class ChainedLog:
    """A growing file with mode 0600 in a private folder.

    Attributes:
        folder: a restricted folder that exists; the first append makes the file.
        history: the table has history (evidence, a release); without its ledger that is an error.
    """

    folder: Path
    history: bool = False

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / LEDGER

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, oldest first, without the log's own notes; raises ``LedgerDamaged``."""
        return tuple(e for e in self._content().entries if e["kind"] not in ("opened", "torn"))

    def head(self) -> Head:
        """Where the log stands."""
        return self._content().head

    def extends(self, head: Head) -> bool:
        """True when the log is what it was at ``head``, and perhaps more."""
        entries = self._content().entries
        return 0 <= head.lines <= len(entries) and _last_hash(entries[: head.lines]) == head.digest

    @property
    def mark(self) -> Path:
        """Holds the head after the last append that returned."""
        return self.path.with_suffix(".head")

    def _marked(self) -> Head | None:
        damaged = self._damaged(f"{self.mark.name}, the mark beside it, is damaged")
        return read_record(Head, self.mark, damaged)

    @contextmanager
    def appending(self) -> "Iterator[Appending]":
        """Lock the file for one process, so that what is read inside holds until the append.

        Raises:
            LedgerDamaged: the file is missing though expected, no regular file, or its chain is broken.
        """
        with self._opened(os.O_RDWR | os.O_CREAT) as descriptor:
            assert descriptor is not None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not self.path.exists() or not os.path.samestat(os.fstat(descriptor), self.path.stat()):
                raise self._damaged("the ledger was moved while this program waited for it")
            yield Appending(self, descriptor, self._checked(_read_all(descriptor)))

    def _content(self) -> _Content:
        with self._opened(os.O_RDONLY) as descriptor:
            if descriptor is None:
                return self._checked(b"")
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            return self._checked(_read_all(descriptor))

    @contextmanager
    def _opened(self, how: int) -> Iterator[int | None]:
        if (self.history or os.path.lexists(self.mark)) and not self.path.exists():
            raise self._damaged("the ledger is missing")
        try:
            descriptor = os.open(self.path, how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            if how & os.O_CREAT:
                raise self._damaged("the folder of the ledger is missing") from None
            yield None
            return
        except OSError as error:
            raise self._damaged(f"the ledger cannot be opened ({type(error).__name__})") from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise self._damaged("the ledger is no regular file")
            yield descriptor
        finally:
            os.close(descriptor)  # which gives the lock back

    def _checked(self, data: bytes) -> _Content:
        known, before = _read.get(self.path, (b"", ()))
        if not data.startswith(known):
            known, before = b"", ()
        whole = data.rfind(b"\n") + 1
        lines, tail = data[len(known) : whole].split(b"\n")[:-1], data[whole:]
        entries = [*before]
        for number, line in enumerate(lines, start=len(entries) + 1):
            entry = verified(line, _last_hash(entries))
            if entry is None:
                raise self._damaged("the ledger has been changed or damaged", line=number)
            entries.append(entry)
        _read.pop(self.path, None)
        _read[self.path] = data[:whole], tuple(entries)
        for path in [*_read][:-_MOST_READ]:
            _read.pop(path, None)
        last = verified(tail, _last_hash(entries)) if tail else None
        if last is not None:
            entries.append(last)
            whole, tail = len(data), b""
        if entries and (entries[0]["kind"] != "opened" or entries[0].get("version") != _VERSION):
            raise self._damaged("the ledger has a version that this program does not know", line=1)
        if self.history and not entries:
            raise self._damaged("the ledger is empty")
        if (head := self._marked()) is not None:
            marked = [entry["hash"] for entry in entries[head.lines - 1 : head.lines]]
            if marked != [head.digest]:
                raise self._damaged("lines that it held are gone or changed")
        return _Content(tuple(entries), whole, tail, last is None)

    def _damaged(self, what: str, line: int = 0) -> LedgerDamaged:
        return LedgerDamaged(
            what,
            where=f"{self.path}, line {line}" if line else str(self.path),
            expected="the ledger as this program wrote it, in the workspace that it belongs to",
            fix="put it back from a backup; without one, start a new workspace and declare only the budget "
            "that all earlier releases left",
        )


@dataclass
class Appending:
    """A log that is held exclusively; made by :meth:`ChainedLog.appending`."""

    _log: ChainedLog
    _descriptor: int
    _content: _Content

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry as of now, the log's own notes included."""
        return self._content.entries

    def append(self, entry: Entry) -> None:
        """Write one entry and wait until the disk has it.

        Raises:
            LedgerDamaged: it could not be written or flushed. If it is in the file all the same it counts,
                though nothing ran.
        """
        notes: list[Entry] = []
        if tail := self._content.tail:
            notes.append({"kind": "torn", "bytes": len(tail), "sha256": sha256_of_bytes(tail)})
        if not self._content.entries:  # the mark stands before there is anything to lose
            self._add([{"kind": "opened", "version": _VERSION}, *notes])
            notes = []
        self._add([*notes, entry])

    def _add(self, entries: Sequence[Entry]) -> None:
        text = b"" if self._content.ended else b"\n"
        previous = self._content.head.digest
        for entry in entries:
            line, previous = chained(entry, previous)
            text += line + b"\n"
        self._write(text)
        self._content = self._log._checked(_read_all(self._descriptor))
        try:
            with replacing(self._log.mark, private=True) as temporary:
                temporary.write_text(to_json(self._content.head))
        except OSError as error:
            raise self._unwritable(error) from None

    def _write(self, text: bytes) -> None:
        """Put ``text`` after the last whole entry, in one call."""
        try:
            os.fchmod(self._descriptor, 0o600)
            os.ftruncate(self._descriptor, self._content.whole)
            written = os.pwrite(self._descriptor, text, self._content.whole)
            if written != len(text):
                os.ftruncate(self._descriptor, self._content.whole)
                raise OSError("short write")
            os.fsync(self._descriptor)
            if not self._content.entries:
                flush(self._log.path.parent)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> LedgerDamaged:
        return LedgerDamaged(
            f"the ledger cannot be written ({type(error).__name__})",
            where=str(self._log.path),
            expected="a disk with space that can be written",
            fix="free space and try again; nothing runs that is not in the ledger",
        )


def _last_hash(entries: Sequence[Entry]) -> str:
    return entries[-1]["hash"] if entries else _START


def chained(entry: Entry, previous: str) -> tuple[bytes, str]:
    """The line of an entry, without its line break, and its hash: SHA-256 of the line without the hash."""
    body = {**entry, "previous": previous}
    digest = sha256_of_bytes(_canonical(body))
    return _canonical({**body, "hash": digest}), digest


def verified(line: bytes, previous: str) -> Entry | None:
    """The entry of a line, if it was written after the one with hash ``previous``, and not changed since.

    The numbers under ``sums``, most of a log's bytes, stay one text, since few readers want them.
    """
    try:
        entry = _read_line(line)
        digest = entry["hash"]
        body = line.replace(b'"hash":"%b",' % digest.encode(), b"", 1)
        kept = entry["previous"] == previous and sha256_of_bytes(body) == digest
        return entry if kept and isinstance(entry["kind"], str) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _read_line(line: bytes) -> Any:
    head, key, sums = line.partition(b'"sums":[')
    if key and sums.endswith(b"]}") and not sums[:-2].translate(None, b"-,0123456789"):
        line = b'%b"sums":"%b"}' % (head, sums[:-2])
    # `from_json` takes half the time, and knows no half of a surrogate pair.
    return (json.loads if b"\\ud" in line else from_json)(line)


def _canonical(value: Entry) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _read_all(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    parts, offset = [], 0
    while offset < size and (part := os.pread(descriptor, size - offset, offset)):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


@with_config(CLOSED)
@dataclass(frozen=True)
class AuditEntry:
    """An audit that was filed, and how it ended.

    Attributes:
        number: of the first attempt that gave this audit, from the table's ledger.
        latest: of the last attempt that gave it, unless it is a pass.
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
        """The attempt number that orders audits of the same rows."""
        return max(self.number, self.latest)


@with_config(CLOSED)
@dataclass(frozen=True)
class Journal:
    """The audits and releases of a workspace.

    Attributes:
        audits: by attempt number, ascending.
        newest: digest of the newest audit by place.
        released: the current release. previous: the one before, to which a rollback leads.
        releasing: a release that was interrupted.
        releases: all releases, oldest first.
        ledger: how far the table's ledger had come when the last audit was filed; None without a ledger.
    """

    audits: tuple[AuditEntry, ...] = ()
    newest: Mapping[str, Digest] = field(default_factory=dict)
    released: Released | None = None
    releasing: Released | None = None
    previous: Released | None = None
    ledger: Head | None = None
    releases: tuple[Released, ...] = ()
    schema_version: str = SCHEMA_VERSION

    def entry(self, digest: str) -> AuditEntry | None:
        """The audit with this digest."""
        return next((e for e in self.audits if e.digest == digest), None)

    def governing(self, candidate: str) -> AuditEntry | None:
        """The last attempt on exactly these rows, whose result counts in place of earlier ones."""
        about = [e for e in self.audits if candidate and e.candidate == candidate]
        return max(about, key=lambda e: e.last, default=None)

    def needed(self, place: str = "") -> dict[str, str]:
        """Digests of the audits that must be kept, each with the reason."""
        found = {self.newest[place]: "the newest one"} if place in self.newest else {}
        for release, why in (
            (self.released, "what was released rests on it"),
            (self.previous, "a rollback would lead to it"),
            (self.releasing, "its release was interrupted"),
        ):
            if release is not None:
                found.setdefault(release.digest, why)
        return found

    def with_entry(self, entry: AuditEntry) -> "Journal":
        """Return the journal with an audit added or replaced."""
        others = [e for e in self.audits if e.digest != entry.digest]
        audits = sorted((*others, entry), key=lambda e: e.last)
        return replace(self, audits=tuple(audits))

    def with_release(self, released: Released) -> "Journal":
        """Return the journal with this as the current release."""
        return replace(self, released=released, releases=(*self.releases, released))

    def with_newest(self, place: str, digest: str) -> "Journal":
        """Return the journal with this audit as the newest of its place."""
        return replace(self, newest={**self.newest, place: digest})


@dataclass
class OpenJournal:
    """The journal while this process holds its lock."""

    path: Path
    now: Journal

    def write(self, journal: Journal) -> None:
        """Replace the journal wholly or not at all."""
        content = to_json(journal).encode()
        write_bytes(self.path, content, private=True)
        remember(self.path, content, journal)
        self.now = journal


@contextmanager
def open_journal(workspace: Workspace) -> Iterator[OpenJournal]:
    """Lock the workspace's journal for writing; other processes wait.

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
    """Read the workspace's journal; None if there is none or this user may not read it.

    Raises:
        DataError: it is damaged.
    """
    damaged = DataError(
        "the journal of the workspace is damaged",
        where=str(workspace.journal),
        expected="the file that this program keeps",
        fix="restore it from a backup; without it nothing that was audited here can be released",
    )
    absent = (FileNotFoundError, NotADirectoryError, PermissionError)
    return read_record(Journal, workspace.journal, damaged, absent=absent)
