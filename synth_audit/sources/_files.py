"""What sources share: files and their failures, batches, libraries, names of tables in SQL."""

import fcntl
import importlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from synth_audit.errors import DataError, PlanError
from synth_audit.files import in_utf8, place, problem_of, replacing

PART = r'"(?:[^"]|"")+"|[^."]+'
"""One part of a table's name, in double quotes where it holds a dot."""

_SQL_NAME = re.compile(rf"(?:(?P<schema>{PART})\.)?(?P<table>{PART})")


class Streamed:
    """A source that reads its table by batches."""

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """Read the rows in their order; at least one batch, which may be empty."""
        raise NotImplementedError

    def read(self, base: Path) -> pa.Table:
        """Read the table; relative paths start at ``base``. It raises what :meth:`batches` does."""
        return pa.Table.from_batches(self.batches(base))


class OnDisk:
    """A source at a path of this machine.

    Raises:
        ValueError: the path is empty or a URL.
    """

    path: str

    def __post_init__(self) -> None:
        if problem := problem_of(self.path):
            raise ValueError(problem)

    def place(self, base: Path) -> tuple[str, ...]:
        """Name the file or folder, whatever the spelling of its path."""
        return (place(locate(self.path, base)),)


def library(module: str, what: str, *, extra: str, where: str, expected: str) -> Any:
    """Import what a source needs and not everybody installs.

    Raises:
        PlanError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise PlanError(
            f"{what} is not installed",
            where=where,
            expected=expected,
            fix=f"pip install 'synth-audit[{extra}]'",
        ) from None


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
def reading(path: str, base: Path, what: str) -> Iterator[Path]:
    """Find a file for a block that reads it.

    Raises:
        DataError: it is not there, or the block fails to read it.
    """
    found = existing(locate(path, base), what)
    try:
        yield found
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise unreadable(found, what, error) from None


@contextmanager
def replaced(path: str, base: Path, what: str) -> Iterator[tuple[Path, Path]]:
    """A file, and the temporary one beside it that takes its place when the block has written it.

    What killed writers left beside the file goes first. A writer holds a lock on its temporary file, which
    ends with it however it ends.

    Raises:
        DataError: it cannot be written.
    """
    found = locate(path, base)
    try:
        _clear_beside(found)
        with replacing(found) as temporary, temporary.open("xb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield found, temporary
    except (OSError, pa.ArrowException) as error:
        raise unwritable(found, what, error) from None


def _clear_beside(path: Path) -> None:
    left = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.tmp")
    for name in os.listdir(path.parent) if path.parent.is_dir() else ():
        if left.fullmatch(name):
            beside = path.parent / name
            with suppress(OSError):  # somebody is writing it, or it is not ours
                descriptor = os.open(beside, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                with open(descriptor, "rb"):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    beside.unlink()


LONGEST_WAIT = 3600
"""Seconds that a lock is waited for: what takes longer is no lock that somebody else will open soon."""


def refuse_unless_one(table: str | None, query: str | None, example: str) -> None:
    """Raise ``ValueError`` unless exactly one of a table's name and a query is given, and the name is one."""
    if (table is None) == (query is None):
        raise ValueError(f"give exactly one of table and query: `{example}`")
    if table is not None and not _SQL_NAME.fullmatch(table):
        raise ValueError('table must read `table`, `schema.table` or `"quoted.schema"."quoted.table"`')


def parts_of(table: str | None, schema: str, where: str) -> tuple[str, str]:
    """Schema and table of a name; ``schema`` where it names none.

    Raises:
        DataError: there is no name, since the source is a query.
    """
    match = _SQL_NAME.fullmatch(table or "")
    if match is None:
        raise DataError(
            "a query cannot take a release",
            where=where,
            expected="`table: name`",
            fix="name the table that the release shall replace",
        )
    return unquoted(match["schema"] or schema), unquoted(match["table"])


def quote(name: str) -> str:
    """A name as SQL takes it literally."""
    return '"' + name.replace('"', '""') + '"'


def unquoted(part: str) -> str:
    """A part of a name as it is in the database."""
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
