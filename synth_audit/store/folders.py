"""Folders that appear, and go, whole or not at all, and files that are in two places."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synth_audit.core.errors import DataError
from synth_audit.core.files import flush
from synth_audit.store.untrusted_file import is_plain_folder
from synth_audit.store.workspace_files import making, write_atomically


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A new folder beside ``path`` that takes its place, files and all, when the block ends well.

    Otherwise, and after Ctrl-C too, it is gone and ``path`` is as it was. A kill leaves it under a hidden
    name that ends in ``.tmp``.

    Raises:
        DataError: the folder cannot be made or moved into place.
    """
    with _beside(path) as temporary:
        yield temporary
        with making(path):
            shutil.rmtree(path, ignore_errors=True)
            temporary.rename(path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears under ``path``, files and all, when the block ends well; one that is there stays.

    Raises:
        DataError: the folder cannot be made, or something is in its place.
    """
    with _beside(path) as temporary:
        yield temporary
        with making(path):
            temporary.rename(path)  # fails where there is something else, except for an empty folder
            with suppress(OSError):  # some file systems cannot flush a folder
                flush(path)
                flush(path.parent)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with making(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def link_or_copy(source: Path, to: Path) -> None:
    """Let a private file be in a second place: as a hard link, or as a copy where there are none.

    Files here are replaced and never altered, so neither place can change what the other holds.

    Args:
        to: does not exist yet.
    """
    try:
        os.link(source, to)
    except OSError:  # another file system, or one without links
        write_atomically(to, lambda p: shutil.copyfile(source, p), private=True)


def folder_names(place: Path) -> tuple[str, ...]:
    """Names of folders, and of links that stand for folders, without hidden ones."""
    if not is_plain_folder(place):
        return ()
    return tuple(sorted(n for n in os.listdir(place) if not n.startswith(".") and (place / n).is_dir()))


def size_of(*folders: Path) -> int:
    """Bytes of the files in folders."""
    files = (Path(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names)
    try:
        return sum(os.lstat(file).st_size for file in files)
    except RecursionError:  # reviewers may nest folders without end
        return 0


def discard(folder: Path) -> None:
    """Move a folder out of sight, then delete it; what a kill leaves goes at the next start.

    Raises:
        DataError: it cannot be moved, or not be deleted wholly.
    """
    hidden = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
    with making(folder):
        folder.rename(hidden)
    delete(hidden)
    if os.path.lexists(hidden):
        raise DataError(
            "a folder cannot be deleted wholly",
            where=str(hidden),
            expected="a folder that this program made and this user may delete",
            fix="look who changed it and put it right, then try again",
        )


def delete(path: Path) -> None:
    """Delete a file or folder; of a link the link alone. What cannot be deleted stays."""
    if path.is_dir() and not path.is_symlink():
        with suppress(RecursionError):  # reviewers may nest folders without end
            shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
