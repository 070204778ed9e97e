"""Where an audit keeps its files: restricted (real rows, mode 0700) and review (for readers)."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.core.errors import DataError
from synth_audit.core.files import replacing
from synth_audit.core.paths import problem_of


@dataclass(frozen=True)
class Workspace:
    """The folder of one audited table.

    ``restricted/`` holds real and unreleased rows; ``review/`` holds no real row and no small count.
    """

    root: Path

    @property
    def restricted(self) -> Path:
        """Folder with real rows, readable by its owner alone."""
        return self.root / "restricted"

    @property
    def review(self) -> Path:
        """Folder that may be shown."""
        return self.root / "review"

    @property
    def salt(self) -> Path:
        """The secret that split, fits, draws and hashes rest on; see :mod:`synth_audit.store.salts`."""
        return self.restricted / "salt"

    @property
    def train(self) -> Path:
        """Rows the generator sees."""
        return self.restricted / "train.parquet"

    @property
    def control(self) -> Path:
        """Real rows it never sees."""
        return self.restricted / "control.parquet"

    @property
    def synthetic(self) -> Path:
        """The candidate."""
        return self.restricted / "synthetic.parquet"

    @property
    def split_record(self) -> Path:
        """What the split did."""
        return self.restricted / "split.json"

    @property
    def synthetic_record(self) -> Path:
        """What the generator did."""
        return self.restricted / "synthetic.json"

    @property
    def exposed(self) -> Path:
        """The most exposed training rows by position, with the attacks that hit them."""
        return self.restricted / "exposed_records.parquet"

    @property
    def evidence(self) -> Path:
        """The evidence file."""
        return self.review / "evidence.json"

    @property
    def measurements(self) -> Path:
        """Every measurement, one row each."""
        return self.review / "measurements.parquet"

    @property
    def calibration(self) -> Path:
        """How the audits answered planted leaks of all sizes."""
        return self.review / "calibration.json"

    @property
    def calibration_page(self) -> Path:
        """The same as a page with pictures."""
        return self.review / "calibration.html"

    @property
    def frontier(self) -> Path:
        """The record of a sweep over candidates."""
        return self.review / "frontier.json"

    @property
    def frontier_page(self) -> Path:
        """The same as a page with pictures."""
        return self.review / "frontier.html"

    @property
    def candidates(self) -> Path:
        """The candidates of a sweep, each a workspace of its own."""
        return self.root / "candidates"

    def candidate(self, slug: str) -> Workspace:
        """The workspace of one candidate of a sweep."""
        return Workspace(self.candidates / slug)

    @property
    def report(self) -> Path:
        """The report."""
        return self.review / "report.html"

    def prepare(self) -> Workspace:
        """Make both folders, the restricted one with mode 0700.

        Raises:
            DataError: a folder cannot be made, is a link or another user's, or the restricted one was open to
                others.
        """
        self.prepare_review()
        # It may be there from an earlier run, or from one that starts at the same time.
        with _making(self.root), suppress(FileExistsError):
            self.restricted.mkdir(mode=0o700)
        _refuse_strange(self.restricted, private=True)
        return self

    def prepare_review(self) -> Workspace:
        """Make the review folder alone, for an audit that keeps no rows.

        Raises:
            DataError: a folder cannot be made, or is a link or another user's.
        """
        _refuse_unusable(self.root)
        with _making(self.root):
            if os.path.lexists(self.root):
                _refuse_strange(self.root)
            self.review.mkdir(parents=True, exist_ok=True)
        _refuse_strange(self.review)
        return self


def _refuse_strange(folder: Path, *, private: bool = False) -> None:
    """Raise ``DataError`` for a folder through which others could read real rows or swap what was audited."""
    with _making(folder):
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


def _refuse_unusable(path: Path) -> None:
    if problem := problem_of(str(path)):
        raise DataError(
            f"nothing can be written there: {problem}",
            where=str(path),
            expected="a path of this machine",
            fix="name another, with --out or --to",
        )


@contextmanager
def _making(folder: Path) -> Iterator[None]:
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
    _refuse_unusable(path)
    try:
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


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A new folder beside ``path`` that takes its place, files and all, when the block ends well.

    Otherwise, and after Ctrl-C too, it is gone and ``path`` is as it was. A kill leaves it under a hidden
    name that ends in ``.tmp``.

    Raises:
        DataError: the folder cannot be made or moved into place.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with _making(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    try:
        yield temporary
        with _making(path):
            shutil.rmtree(path, ignore_errors=True)
            temporary.rename(path)
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


def write_text(path: Path, text: str, *, private: bool = False) -> Path:
    """Write text atomically; see :func:`write_atomically`."""
    return write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"), private=private)


def write_parquet(path: Path, data: pa.Table, *, private: bool = False) -> Path:
    """Write a Parquet file atomically; see :func:`write_atomically`."""
    return write_atomically(path, lambda p: pq.write_table(data, p), private=private)


def read_parquet(path: Path, *, made_by: str) -> pa.Table:
    """Read a workspace file.

    Args:
        made_by: the stage that makes it, for the message when it is missing.
    """
    try:
        with pq.ParquetFile(path) as file:
            return file.read()
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"a workspace file cannot be read ({type(error).__name__})",
            where=str(path),
            expected=f"the output of the {made_by} stage",
            fix=f"run the {made_by} stage again",
        ) from None
