"""Writes a file wholly or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

TEMPORARY = "synth-audit-"
"""How the names of temporary folders begin."""

_SCRATCH: ContextVar[Path | None] = ContextVar("scratch", default=None)


def place(path: Path) -> str:
    """One name for a file however its path is spelt: device and inode, else the path without links.

    Hard links, symbolic links and a file system that ignores case lead to one inode.
    """
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


@contextmanager
def scratch_in(folder: Path) -> Iterator[None]:
    """Let temporary folders be made in this one for the length of a block, where nobody says otherwise.

    For what has no context at hand, such as a model that is loaded. It holds for the thread of the caller.
    """
    before = _SCRATCH.set(folder)
    try:
        yield
    finally:
        _SCRATCH.reset(before)


def scratch() -> Path | None:
    """The folder of :func:`scratch_in`, if the caller is in such a block."""
    return _SCRATCH.get()


def temporary_folder(where: Path | None = None) -> TemporaryDirectory[str]:
    """A folder of mode 0700 for the length of a block.

    Args:
        where: the folder it is made in; that of :func:`scratch_in` if None, else the system's place for them.
    """
    return TemporaryDirectory(prefix=TEMPORARY, dir=where or _SCRATCH.get())


def lasting_folder(where: Path | None = None) -> Path:
    """A folder of mode 0700, made where :func:`temporary_folder` makes it, that the caller deletes."""
    return Path(mkdtemp(prefix=TEMPORARY, dir=where or _SCRATCH.get()))


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place when the block ends without an exception.

    The new file is flushed to disk before it is moved, so that a crash at any moment leaves either
    the old content or the new. After an exception the temporary file is gone and ``path`` untouched.

    Args:
        private: the file has mode 0600 from its first byte on.

    Raises:
        OSError: the folder cannot be made or written to, or a device, a pipe or the like stands there, which
            a file in its place would break for everybody.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileExistsError(errno.EEXIST, "no ordinary file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        if private:
            temporary.touch(mode=0o600, exist_ok=False)
        yield temporary
        flush(temporary)
        temporary.replace(path)
    except BaseException:  # an interruption too: what was written may be real rows and must not stay
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # some file systems cannot flush a folder; the file itself is safe
        flush(path.parent)


def create_once(path: Path, content: bytes) -> bool:
    """Put a private file (mode 0600) at ``path`` unless something is there; True when this call put it there.

    Of several processes at once one succeeds, and the others find its file whole.

    Raises:
        OSError: the folder cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_new(temporary, content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            if not _moved_alone(temporary, path):
                return False
    finally:
        temporary.unlink(missing_ok=True)
    with suppress(OSError):
        flush(path.parent)
    return True


def _moved_alone(temporary: Path, path: Path) -> bool:
    """Move a file to a place where nothing is, one process at a time."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return False
        temporary.replace(path)
        return True
    finally:
        os.close(folder)


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def flush(path: Path) -> None:
    """Let what was written to a file, or into a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
