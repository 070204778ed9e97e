"""Where an audit keeps its files: restricted (real rows, mode 0700) and review (for readers)."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.core.errors import DataError
from synth_audit.core.files import replacing


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
            DataError: the folder cannot be made.
        """
        self.prepare_review()
        with _making(self.root):
            self.restricted.mkdir(mode=0o700, exist_ok=True)
            self.restricted.chmod(0o700)
        return self

    def prepare_review(self) -> Workspace:
        """Make the review folder alone, for an audit that keeps no rows.

        Raises:
            DataError: the folder cannot be made.
        """
        with _making(self.root):
            self.review.mkdir(parents=True, exist_ok=True)
        return self


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
