"""What the split and the generator leave for later stages, and what a broken-off fit resumes from."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from pydantic import ConfigDict, with_config

from synth_audit.errors import DataError
from synth_audit.hashing import framed
from synth_audit.store.evidence import ColumnRecord, GeneratorRecord, TableRecord, installed_versions
from synth_audit.store.files import making, write_text
from synth_audit.store.records import parse_strict, to_json
from synth_audit.store.workspace import Workspace

_CONFIG = ConfigDict(extra="forbid", ser_json_inf_nan="strings")
"""Holds for the records within a record too. Not strict, since NaN and infinity are written as text."""


@dataclass(frozen=True)
class _StageRecord:
    """A record that is kept as JSON between stages."""

    stage: ClassVar[str]

    def write(self, path: Path) -> None:
        """Write the record atomically, for its owner alone."""
        write_text(path, to_json(self), private=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the record.

        Raises:
            DataError: the stage has left none that can be used, or it has an unknown key or one twice.
        """
        try:
            return parse_strict(cls, path.read_bytes())
        except (OSError, ValueError):
            raise DataError(
                f"the {cls.stage} stage has left no usable record",
                where=str(path),
                expected=f"what the {cls.stage} stage writes",
                fix=f"run the {cls.stage} stage first",
            ) from None


@with_config(_CONFIG)
@dataclass(frozen=True)
class SplitRecord(_StageRecord):
    """What the split stage did, and under which salt.

    Attributes:
        left_out: columns of the source that are pandas' index and no data.
        clipped: columns, and how many of their values in the source were set to a declared bound.
    """

    plan_sha256: str
    salt_commitment: str
    source: TableRecord
    train: TableRecord
    control: TableRecord
    columns: tuple[ColumnRecord, ...]
    warnings: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    clipped: tuple[tuple[str, int], ...] = ()

    stage: ClassVar[str] = "split"


@with_config(_CONFIG)
@dataclass(frozen=True)
class SyntheticRecord(_StageRecord):
    """What the generator stage did, and on which train rows."""

    plan_sha256: str
    train: TableRecord
    table: TableRecord
    generator: GeneratorRecord
    columns: tuple[ColumnRecord, ...]
    seconds: float

    stage: ClassVar[str] = "synthetic"

    @classmethod
    def tells_of_spending(cls, path: Path) -> bool:
        """Whether a usable record lies there of a fit that spent privacy budget."""
        try:
            return bool(cls.read(path).generator.privacy.mechanisms)
        except DataError:
            return False


@contextmanager
def fit_checkpoint(workspace: Workspace, *fit: str) -> Iterator[Path]:
    """A folder for what this fit may resume from, under these versions of everything that computes.

    It is gone when the block ends well, and the candidate is there, with those of other fits.

    Args:
        fit: what it is known by, such as digests of its plan and of its rows under the salt.

    Raises:
        DataError: the folder cannot be made.
    """
    known = framed([*fit, *map(str, sorted(installed_versions().items()))])
    folder = workspace.checkpoints / hashlib.sha256(known).hexdigest()[:16]
    with making(folder):
        for private in (workspace.checkpoints, folder):  # of parents that it makes, `mkdir` sets no mode
            private.mkdir(mode=0o700, exist_ok=True)
    yield folder
    shutil.rmtree(workspace.checkpoints, ignore_errors=True)
