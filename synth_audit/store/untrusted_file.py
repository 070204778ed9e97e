"""Reads files of a folder in which others may write: no links, no pipes, nothing that has no end."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

_LARGEST = 1 << 30
"""Bytes; a file beyond it is no evidence, and reading it would only exhaust the memory."""


def read_plain(path: Path, *, largest: int = _LARGEST) -> bytes:
    """Content of a regular file.

    Raises:
        OSError: it is missing, unreadable, a link, no regular file, or larger than ``largest`` bytes.
    """
    # Without O_NONBLOCK the opening of a pipe would wait for a writer that never comes.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            raise OSError(f"not a regular file: {path.name}")
        if known.st_size > largest:
            raise OSError(f"too large: {path.name}")
        return file.read()


def same_content(path: Path, other: Path) -> bool:
    """True for two regular files with the same bytes; False where one cannot be read."""
    try:
        return read_plain(path) == read_plain(other)
    except OSError:
        return False


def sha256_of_bytes(content: bytes) -> str:
    """SHA-256 as hexadecimal text."""
    return hashlib.sha256(content).hexdigest()


def is_plain_folder(path: Path) -> bool:
    """True for a folder that is no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
