"""A file that only grows: JSON lines, each with the hash of the one before; safe under kills and in parallel.

*What shows.* A changed, removed, inserted or reordered line breaks the chain. Lines cut off at the end do
not: a mark beside the file, made before its first entry, says how far it had come and that there must be one.
Who takes the mark away too is found out by a head kept elsewhere; see :meth:`ChainedLog.extends`.

*What a kill leaves.* A line counts once its last byte but the line break is there. Appending returns after
the disk has it, so bytes that make no whole line at the end of the file belong to an append that never
returned, and nothing was done on its account. Reading passes over them; the next append removes them and says
so in a ``torn`` entry.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, with_config

from synth_audit.core.errors import LedgerDamaged
from synth_audit.core.files import replacing
from synth_audit.store.pointers import parse_strict, to_json
from synth_audit.store.untrusted_file import read_plain

VERSION = 1
_START = "0" * 64

Entry = Mapping[str, Any]


@with_config(ConfigDict(extra="forbid", strict=True))
@dataclass(frozen=True)
class Head:
    """How far a log had come: its number of lines and the hash of the last one."""

    lines: int
    digest: str


@dataclass(frozen=True)
class _Content:
    entries: tuple[Entry, ...]
    digests: tuple[str, ...]
    whole: int  # bytes up to the end of the last entry
    tail: bytes  # what a kill left after it
    ended: bool  # the last entry has its line break


@dataclass(frozen=True)
class ChainedLog:
    """A growing file with mode 0600 in a private folder.

    Attributes:
        path: the file; made by the first append, in a folder that exists.
        expected: the caller knows that there must be one, so that its absence is an error.
    """

    path: Path
    expected: bool = False

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, oldest first, without the log's own notes; raises ``LedgerDamaged``."""
        return tuple(e for e in self._content().entries if e["kind"] not in ("opened", "torn"))

    def head(self) -> Head:
        """Where the log stands."""
        digests = self._content().digests
        return Head(len(digests), digests[-1] if digests else _START)

    def extends(self, head: Head) -> bool:
        """True when the log is what it was at ``head``, and perhaps more."""
        digests = (_START, *self._content().digests)
        return 0 <= head.lines < len(digests) and digests[head.lines] == head.digest

    @property
    def mark(self) -> Path:
        """Holds the head after the last append that returned."""
        return self.path.with_suffix(".head")

    def _marked(self) -> Head | None:
        try:
            return parse_strict(Head, read_plain(self.mark))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise self._damaged(f"{self.mark.name}, the mark beside it, is damaged") from None

    @contextmanager
    def appending(self) -> Iterator[Appending]:
        """Exclusive use of the file: what is read inside cannot change before what is appended inside.

        Raises:
            LedgerDamaged: the file is missing though expected, no regular file, or its chain is broken.
        """
        with self._opened(os.O_RDWR | os.O_CREAT) as descriptor:
            assert descriptor is not None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not self.path.exists() or not os.path.samestat(os.fstat(descriptor), self.path.stat()):
                raise self._damaged("the ledger was moved away while it was waited for")
            yield Appending(self, descriptor, self._checked(_read_all(descriptor)))

    def _content(self) -> _Content:
        with self._opened(os.O_RDONLY) as descriptor:
            if descriptor is None:
                return self._checked(b"")
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            return self._checked(_read_all(descriptor))

    @contextmanager
    def _opened(self, how: int) -> Iterator[int | None]:
        if (self.expected or os.path.lexists(self.mark)) and not self.path.exists():
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
        whole = data.rfind(b"\n") + 1
        lines, tail = data[:whole].split(b"\n")[:-1], data[whole:]
        entries: list[Entry] = []
        digests: list[str] = []
        for number, line in enumerate(lines, start=1):
            entry = verified(line, digests[-1] if digests else _START)
            if entry is None:
                raise self._damaged("the ledger has been changed or damaged", line=number)
            entries.append(entry)
            digests.append(entry["hash"])
        last = verified(tail, digests[-1] if digests else _START) if tail else None
        if last is not None:
            entries.append(last)
            digests.append(last["hash"])
            whole, tail = len(data), b""
        if entries and (entries[0]["kind"] != "opened" or entries[0].get("version") != VERSION):
            raise self._damaged("the ledger is of a version that this one does not know", line=1)
        if self.expected and not entries:
            raise self._damaged("the ledger is empty")
        if (head := self._marked()) is not None and [head.digest] != digests[head.lines - 1 : head.lines]:
            raise self._damaged("lines that it held are gone or changed")
        return _Content(tuple(entries), tuple(digests), whole, tail, last is None)

    def _damaged(self, what: str, line: int = 0) -> LedgerDamaged:
        return LedgerDamaged(
            what,
            where=f"{self.path}, line {line}" if line else str(self.path),
            expected="the ledger as it was written, beside the history that it belongs to",
            fix="put it back from a backup. Without one nobody knows what was spent: start a new workspace "
            "and declare for it no more than is left after all that was ever released of this table",
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
            notes.append({"kind": "torn", "bytes": len(tail), "sha256": _sha256(tail)})
        if not self._content.entries:  # the mark stands before there is anything to lose
            self._add([{"kind": "opened", "version": VERSION}, *notes])
            notes = []
        self._add([*notes, entry])

    def _add(self, entries: Sequence[Entry]) -> None:
        text = b"" if self._content.ended else b"\n"
        previous = self._content.digests[-1] if self._content.digests else _START
        for entry in entries:
            line, previous = chained(entry, previous)
            text += line + b"\n"
        self._write(text)
        self._content = self._log._checked(_read_all(self._descriptor))
        self._set_mark(Head(len(self._content.digests), previous))

    def _set_mark(self, head: Head) -> None:
        try:
            with replacing(self._log.mark, private=True) as temporary:
                temporary.write_text(to_json(head))
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
                _flush_folder(self._log.path.parent)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> LedgerDamaged:
        return LedgerDamaged(
            f"the ledger cannot be written ({type(error).__name__})",
            where=str(self._log.path),
            expected="a disk with space that can be written",
            fix="free space and try again; nothing runs that is not in the ledger",
        )


def chained(entry: Entry, previous: str) -> tuple[bytes, str]:
    """The line of an entry, without its line break, and its hash: SHA-256 of the line without the hash."""
    body = {**entry, "previous": previous}
    digest = _sha256(_canonical(body))
    return _canonical({**body, "hash": digest}), digest


def verified(line: bytes, previous: str) -> Entry | None:
    """The entry of a line, if it is byte for byte what was written after the one with hash ``previous``."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
            return None
        body = {key: value for key, value in entry.items() if key not in ("previous", "hash")}
        return entry if chained(body, previous)[0] == line else None
    except (ValueError, RecursionError):
        return None


def _canonical(value: Entry) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_all(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    parts, offset = [], 0
    while offset < size and (part := os.pread(descriptor, size - offset, offset)):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
