"""Makes the files and folders of a workspace: wholly or not at all, and private where they hold real rows."""

from __future__ import annotations

import itertools
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.core.arrow_files import kept
from synth_audit.core.errors import DataError
from synth_audit.core.files import replacing
from synth_audit.core.paths import problem_of
from synth_audit.core.table import BATCH, Table


def make_private(folder: Path) -> None:
    """Make a folder of mode 0700 that is this user's own.

    Raises:
        DataError: it cannot be made, is a link or another user's, or was open to others.
    """
    # It may be there from an earlier run, or from one that starts at the same time.
    with making(folder), suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    refuse_strange(folder, private=True)


def refuse_strange(folder: Path, *, private: bool = False) -> None:
    """Raise ``DataError`` for a folder through which others could read real rows or swap what was audited."""
    with making(folder):
        found = os.lstat(folder)
    if stat.S_ISLNK(found.st_mode):
        wrong, fix = "is a link", "name the folder itself with --out, or take the link away"
    elif not stat.S_ISDIR(found.st_mode):
        wrong, fix = "is a file", "name another with --out"
    elif found.st_uid != os.geteuid():
        wrong, fix = "belongs to another user", "name another with --out, or let its owner run this"
    elif private and stat.S_IMODE(found.st_mode) & 0o077:
        wrong = f"is open to other users (mode {stat.S_IMODE(found.st_mode):04o})"
        fix = f"if only you could read what is in it, `chmod 700 {shlex.quote(str(folder))}`; else delete it"
    else:
        return
    raise DataError(
        f"the workspace cannot be used: its folder {wrong}",
        where=str(folder),
        expected="a folder of this user's own" + (", with mode 0700, since it holds real rows" * private),
        fix=fix,
    )


def refuse_unusable(path: Path) -> None:
    """Raise ``DataError`` for a path that is none of this machine."""
    with suppress(FileNotFoundError):  # of a working folder that is gone, others tell
        path = path if problem_of(str(path)) else path.absolute()
    if problem := problem_of(str(path)):
        raise DataError(
            f"nothing can be written there: {problem}",
            where=str(path),
            expected="a path of this machine",
            fix="name another, with --out or --to",
        )


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Turn what the system says when a folder cannot be made into a ``DataError``."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the workspace cannot be made ({type(error).__name__})",
            where=str(folder),
            expected="a folder that can be written",
            fix="check its permissions, or name another with --out",
        ) from None


def write_atomically(path: Path, write: Callable[[Path], object], *, private: bool = False) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it into place.

    A crash, a kill or a full disk leaves the old file as it was.

    Args:
        private: give the file mode 0600, so that its rows stay with their owner when its folder does not.

    Raises:
        DataError: the file could not be written.
    """
    refuse_unusable(path)
    try:
        if not path.name:  # the root, or the working folder
            raise IsADirectoryError
        with replacing(path, private=private) as temporary:
            write(temporary)
    except OSError as error:
        raise DataError(
            f"the file cannot be written ({type(error).__name__})",
            where=str(path),
            expected="a folder with space that can be written",
            fix="free space or choose another folder; what was there before is intact",
        ) from None
    return path


def write_text(path: Path, text: str, *, private: bool = False) -> Path:
    """Write text atomically; see :func:`write_atomically`."""
    return write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"), private=private)


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> Path:
    """Write bytes atomically; see :func:`write_atomically`."""
    return write_atomically(path, lambda p: p.write_bytes(content), private=private)


def write_parquet(path: Path, data: pa.Table, *, private: bool = False) -> Path:
    """Write a Parquet file atomically; see :func:`write_atomically`."""
    return write_atomically(path, lambda p: pq.write_table(data, p), private=private)


def write_table(path: Path, table: Table) -> Path:
    """Write a private Parquet file of all rows; see :func:`write_atomically`."""
    return write_parquet(path, table.data, private=True)


def read_parquet(
    path: Path, *, made_by: str, named: Path | None = None, folder: Path | None = None
) -> pa.Table:
    """Read a workspace file.

    Args:
        folder: a private one, in which many rows are laid out and mapped, not held; None: they are held.
        made_by: the stage that makes it, for the message when it is missing.
        named: the file that it is a copy of, for the same message.

    Raises:
        DataError: it is missing or damaged, or holds other rows than it declares.
    """
    try:
        with pq.ParquetFile(path) as file:
            declared = file.metadata.num_rows
            data = _laid_out(file, folder)
    except (OSError, UnicodeError, pa.ArrowException) as error:
        problem = f"cannot be read ({type(error).__name__})"
    else:
        if data.num_rows == declared:
            return data
        problem = f"declares {declared:,} rows and holds {data.num_rows:,}"
    raise DataError(
        f"a workspace file {problem}",
        where=str(named or path),
        expected=f"the output of the {made_by} stage",
        fix=f"run the {made_by} stage again",
    )


def _laid_out(file: pq.ParquetFile, folder: Path | None) -> pa.Table:
    """The rows that are in a file, however many it declares."""
    batches = file.iter_batches(BATCH)
    first = next(batches, None) if folder is not None else None
    if folder is None or first is None:
        return file.read()
    return kept(itertools.chain([first], batches), folder)
