"""What sources share: where a path leads, names of tables in SQL, and errors without cell values."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.files import in_utf8, replacing

_PART = r'"(?:[^"]|"")+"|[^."]+'

_NAME = re.compile(rf"(?:(?P<schema>{_PART})\.)?(?P<table>{_PART})")


def locate(path: str, base: Path) -> Path:
    """The path as an absolute one: relative paths start at ``base``, ``~`` is the home folder.

    Raises:
        DataError: it leads through a folder whose name is not in UTF-8.
    """
    found = (base / os.path.expanduser(path)).absolute()  # Path.expanduser raises where there is no home
    if not (in_utf8(str(found)) and in_utf8(os.path.realpath(found))):
        raise DataError(
            "the file is in a folder whose name is not written in UTF-8",
            where=str(found),
            expected="names of folders in UTF-8, which every library reads",
            fix="rename the folder",
        )
    return found


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


@contextmanager
def replacing_target(path: Path) -> Iterator[Path]:
    """As :func:`synth_audit.files.replacing`; what killed writers left beside ``path`` goes first.

    A writer holds a lock on its temporary file, which ends with it however it ends.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    _clear_beside(path)
    with replacing(path) as temporary, temporary.open("xb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield temporary


def _clear_beside(path: Path) -> None:
    left = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.tmp")
    for name in os.listdir(path.parent) if path.parent.is_dir() else ():
        if left.fullmatch(name):
            with suppress(OSError):  # somebody is writing it, or it is not ours
                _remove_abandoned(path.parent / name)


def _remove_abandoned(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)


def refuse_unless_one(table: str | None, query: str | None, example: str) -> None:
    """Raise ``ValueError`` unless exactly one of a table's name and a query is given, and the name is one."""
    if (table is None) == (query is None):
        raise ValueError(f"give exactly one of table and query: `{example}`")
    if table is not None and not _NAME.fullmatch(table):
        raise ValueError('table must read `table`, `schema.table` or `"quoted.schema"."quoted.table"`')


def parts_of(table: str, schema: str) -> tuple[str, str]:
    """Schema and table of a name; ``schema`` where it names none."""
    match = _NAME.fullmatch(table)
    assert match is not None
    return _unquote(match["schema"] or schema), _unquote(match["table"])


def quote(name: str) -> str:
    """A name as SQL takes it literally."""
    return '"' + name.replace('"', '""') + '"'


def _unquote(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
