"""What the file sources share: where a path leads, and errors without cell values."""

from __future__ import annotations

import os
from pathlib import Path

from synth_audit.core.errors import DataError


def locate(path: str, base: Path) -> Path:
    """The path as an absolute one: relative paths start at ``base``, ``~`` is the home folder."""
    return (base / os.path.expanduser(path)).absolute()  # Path.expanduser raises where there is no home


def place(path: Path) -> str:
    """One name for a file however its path is spelt: device and inode, else the path without links.

    Hard links, symbolic links and a file system that ignores case lead to one inode.
    """
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


def existing(path: Path, what: str) -> Path:
    """The path, if it is a file.

    Raises:
        DataError: nothing is there, or it is a folder.
    """
    try:
        if path.is_file():
            return path
        found = (
            "is a folder" if path.is_dir() else "is no ordinary file" if path.exists() else "does not exist"
        )
    except OSError as error:
        found = f"cannot be reached ({type(error).__name__})"
    raise DataError(
        f"the {what} file {found}",
        where=str(path),
        expected=f"a readable {what} file",
        fix="correct the path; those in a plan start at the plan's folder",
    )


def unreadable(path: Path, what: str, error: BaseException) -> DataError:
    """The error for a file that is there and cannot be read; only the kind of failure is named."""
    return DataError(
        f"the {what} file cannot be read ({type(error).__name__})",
        where=str(path),
        expected=f"a complete {what} file that this user may read",
        fix="check its permissions, and that whoever writes it had finished; then fetch it again",
    )


def unwritable(path: Path, what: str, error: BaseException) -> DataError:
    """The error for a file that cannot be written; only the kind of failure is named."""
    return DataError(
        f"the {what} file cannot be written ({type(error).__name__})",
        where=str(path),
        expected="a folder that this user may write to, with room for the file",
        fix="check permissions and free space; what was there before is untouched",
    )
