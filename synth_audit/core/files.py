"""Replaces a file wholly or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place when the block ends without an exception.

    The new file is flushed to disk before it is moved, so that a crash at any moment leaves either
    the old content or the new. After an exception the temporary file is gone and ``path`` untouched.

    Args:
        private: the file has mode 0600 from its first byte on.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        if private:
            temporary.touch(mode=0o600, exist_ok=False)
        yield temporary
        flush(temporary)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # some file systems cannot flush a folder; the file itself is safe
        flush(path.parent)


def flush(path: Path) -> None:
    """Let what was written to a file, or into a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
