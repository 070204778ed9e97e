"""Files and folders that appear whole or not at all, and files that others may have written, read safely."""

import hashlib
import itertools
import os
import secrets
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.errors import DataError
from synth_audit.files import flush, problem_of, read_plain, replacing
from synth_audit.table.arrow import PlacedRows, decoded, kept
from synth_audit.table.content_hash import fingerprint_of
from synth_audit.table.table import BATCH, Table


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
def making(folder: Path, what: str = "the workspace cannot be made") -> Iterator[None]:
    """Turn what the system says when a folder, or something else, cannot be made into a ``DataError``."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{what} ({type(error).__name__})",
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


def as_filed(table: Table) -> pa.Table | None:
    """The rows in the types in which such a file gives them back, which has no seconds; None if in these.

    Raises:
        DataError: a time lies too far off for milliseconds.
    """
    schema = pa.schema([field.with_type(_in_milliseconds(field.type)) for field in table.data.schema])
    if schema.equals(table.data.schema):
        return None
    with suppress(pa.ArrowException):
        return table.data.cast(schema)
    raise DataError(
        "a time lies too far off to be kept in milliseconds",
        where="source",
        expected="times within 292 million years",
        fix="leave such rows out by `query:`",
    )


def _in_milliseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    return pa.time32("ms") if kind == pa.time32("s") else kind


def read_parquet(path: Path, *, made_by: str, folder: Path | None = None) -> pa.Table:
    """The rows of a workspace file; see :func:`map_parquet`, which also says where they lie."""
    return map_parquet(path, made_by=made_by, folder=folder).data


def map_parquet(path: Path, *, made_by: str, folder: Path | None, named: Path | None = None) -> PlacedRows:
    """Read a workspace file.

    Args:
        folder: a private one, in which many rows are laid out and mapped, not held; None: they are held.
        made_by: the stage that makes it, for the message when it is missing.
        named: the file that it is a copy of, for the same message.

    Raises:
        DataError: it is missing or damaged, or holds other rows than it declares.
    """
    with _reading(path, named or path, made_by) as file:
        batches = file.iter_batches(BATCH)
        first = next(batches, None) if folder is not None else None
        rows = PlacedRows(file.read()) if first is None else kept(itertools.chain([first], batches), folder)
        _refuse_other_rows(rows.data.num_rows, file, named or path, made_by)
    return rows


def hash_parquet(path: Path, *, made_by: str) -> str:
    """Content hash of a workspace file, of which one batch is held at a time; see :func:`map_parquet`."""
    with _reading(path, path, made_by) as file:
        counts = [0]
        found = fingerprint_of(_counted(file, counts))
        _refuse_other_rows(sum(counts), file, path, made_by)
    return found


def _counted(file: pq.ParquetFile, counts: list[int]) -> Iterator[pa.Table]:
    """Batches of a file, at least one; their rows are added to ``counts``."""
    for batch in file.iter_batches(BATCH):
        counts.append(batch.num_rows)
        yield pa.Table.from_batches([batch])
    if not sum(counts):
        yield file.read()


@contextmanager
def _reading(path: Path, named: Path, made_by: str) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise _no_output(f"cannot be read ({type(error).__name__})", named, made_by) from None


def _refuse_other_rows(rows: int, file: pq.ParquetFile, path: Path, made_by: str) -> None:
    """A reader takes a footer's word where it counts rows, and the file's where it reads them."""
    if rows != file.metadata.num_rows:
        problem = f"declares {file.metadata.num_rows:,} rows and holds {rows:,}"
        raise _no_output(problem, path, made_by)


def _no_output(problem: str, path: Path, made_by: str) -> DataError:
    return DataError(
        f"a workspace file {problem}",
        where=str(path),
        expected=f"the output of the {made_by} stage",
        fix=f"run the {made_by} stage again",
    )


def holds(path: Path, content: bytes) -> bool:
    """True for a regular file with these bytes; False for a pipe, a link or what cannot be read."""
    try:
        return read_plain(path) == content
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


@contextmanager
def new_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder that appears under ``path``, files and all, when the block ends well.

    Otherwise, and after Ctrl-C too, it is gone and ``path`` is as it was. A kill leaves it under a hidden
    name that ends in ``.tmp``.

    Args:
        replace: take the place of a folder that is there, which stays otherwise.

    Raises:
        DataError: the folder cannot be made or moved into place, or something is there that stays.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with making(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    try:
        yield temporary
        with making(path):
            if replace:
                shutil.rmtree(path, ignore_errors=True)
            temporary.rename(path)  # fails where there is something else, except for an empty folder
            with suppress(OSError):  # some file systems cannot flush a folder
                flush(path)
                flush(path.parent)
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
    with os.scandir(place) as entries:  # which tells of a folder without a look at it
        shown = [e for e in entries if not e.name.startswith(".")]
    return tuple(
        sorted(e.name for e in shown if e.is_dir(follow_symlinks=False) or (place / e.name).is_dir())
    )


def size_of(*folders: Path) -> int:
    """Bytes of the files in folders."""
    size, left = 0, [*map(os.fspath, folders)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_size
    return size


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


def write_parts(path: Path, parts: Iterable[Table]) -> Path:
    """Write a private Parquet file from the parts of a table, holding one of them at a time; all or nothing.

    Values of dictionaries are written out: one that no row uses would be in the file, and in no audit.

    Raises:
        DataError: there is no part, they differ in types, or the file could not be written.
    """
    remaining = (pa.table(list(map(decoded, p.data.columns)), names=p.data.column_names) for p in parts)
    first = [*itertools.islice(remaining, 1)]  # in a list, out of which it goes when it is written
    if not first:
        raise DataError("synthetic has no rows", where=str(path), expected="at least one row")
    schema = first[0].schema

    def write(temporary: Path) -> None:
        with pq.ParquetWriter(temporary, schema) as file:
            file.write_table(first.pop())
            for batch in remaining:
                file.write_table(_of_types(batch, schema, path))

    return write_atomically(path, write, private=True)


def _of_types(batch: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    try:
        if set(batch.column_names) != set(schema.names):  # one more would be lost before an audit sees it
            raise KeyError
        return batch.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError) as error:
        raise DataError(
            f"the batches of a table differ in their columns or types ({type(error).__name__})",
            where=str(path),
            expected="the same columns and types in every batch",
            fix="have the generator draw each column in the type that train has",
        ) from None
