"""The salt of a workspace, and what this account keeps of a training table across workspaces."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.execution.seeds import Salt
from synth_audit.files import create_once, read_plain
from synth_audit.store.evidence import SplitRecord
from synth_audit.store.files import make_private, making
from synth_audit.store.ledger import Ledger
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
from synth_audit.table.table import Table

_SALT_FREE = {"calibration.json", "calibration.html"}
"""Files in ``review/`` that are made without a salt, so that they are no history."""

_LONGEST_SALT = 100
"""Bytes of a salt's file at most: 64 digits and a line break, with room."""


def workspace_salt(workspace: Workspace) -> Salt:
    """The salt of a table; a new one from the operating system's entropy where there is no history.

    Two processes that start at once get the same one.

    Raises:
        DataError: files that were made with the salt are there, but it is missing or another one. Or the salt
            is damaged, or other users may read it.
    """
    workspace.home.prepare()
    path = workspace.salt
    if not os.path.lexists(path):
        past = next(_history(workspace.home), None)
        if past is not None and not os.path.lexists(path):  # another process may just have made both
            raise _lost(path, past)
        with making(path, "the salt cannot be written"), in_use(workspace):
            create_once(path, Salt.fresh().text().encode())
    salt = read_salt(path)
    _refuse_another(workspace.home, salt)
    return salt


def known_salt(workspace: Workspace) -> Salt:
    """The salt of a workspace that has been worked in.

    Raises:
        DataError: it is missing, damaged, or open to others.
    """
    if not os.path.lexists(workspace.salt):
        raise _lost(workspace.salt, next(_history(workspace.home), None))
    return read_salt(workspace.salt)


def read_salt(path: Path) -> Salt:
    """The salt in a file.

    Raises:
        DataError: there is none, it is damaged, or other users may read it.
    """
    try:
        content = read_plain(path, largest=_LONGEST_SALT)
        open_to_others = stat.S_IMODE(os.lstat(path).st_mode) & 0o077
    except OSError as error:
        raise DataError(
            f"the salt cannot be read ({type(error).__name__})",
            where=str(path),
            expected="the file `restricted/salt` of the workspace",
            fix="check the path and its permissions",
        ) from None
    if open_to_others:
        raise DataError(
            "the salt can be read by others, who could infer from it who was in the training set",
            where=str(path),
            expected="a file of mode 0600",
            fix="if nobody did read it: chmod 600; else start anew in another folder with --out",
        )
    try:
        return Salt.parse(content.decode("ascii"))
    except ValueError:
        raise DataError(
            "the salt is damaged",
            where=str(path),
            expected="64 hexadecimal digits",
            fix="put the file back from a backup of the restricted folder; if it is lost, start anew in "
            "another folder with --out",
        ) from None


def _refuse_another(workspace: Workspace, salt: Salt) -> None:
    try:
        before = SplitRecord.read(workspace.split_record).salt_commitment
    except DataError:  # none yet, or a damaged one, of which the stages after the split tell
        return
    if before != salt.commitment:
        raise DataError(
            "the salt is not the one that this workspace was split with",
            where=str(workspace.salt),
            expected=f"the salt with the commitment {before}",
            fix="put that one back from a backup of the restricted folder, or start anew in another folder",
        )


def _history(workspace: Workspace) -> Iterator[Path]:
    """Files that were, or may have been, made with a salt; hidden ones are what a crash left."""
    places = (workspace.restricted, workspace.review, workspace.candidates)
    for place in places:
        # A folder that another process deletes meanwhile, as it does with its scratch, holds no history.
        for path in (Path(folder, name) for folder, _, names in os.walk(place) for name in names):
            inner = path.relative_to(place)
            hidden = any(part.startswith(".") for part in inner.parts)
            free = place == workspace.review and str(inner) in _SALT_FREE
            if path.is_file() and path != workspace.salt and not hidden and not free:
                yield path


def _lost(path: Path, past: Path | None) -> DataError:
    beside = "" if past is None else f", but files that were made with it are there, such as {past.name}"
    return DataError(
        f"the salt is missing{beside}",
        where=str(path),
        expected="the file that the first run of this workspace made",
        fix="put it back from a backup; if it is lost, start anew in another folder with --out",
    )


@dataclass(frozen=True)
class TrainingTable:
    """A training table that this account has audited.

    Attributes:
        salt: what all audits with this training table draw by.
        ledger: its audits, whatever the workspace.
    """

    salt: Salt
    ledger: Ledger

    @classmethod
    def remembered(cls, train: Table, salt: Salt) -> "TrainingTable | None":
        """Look a training table up, and enter it if it is new.

        Args:
            salt: of the workspace; a new training table keeps it.

        Returns:
            None where the account has no folder that can be written.

        Raises:
            DataError: the salt that was kept is damaged, or open to others.
        """
        try:
            folder = _tables() / train.fingerprint
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private(folder)
            create_once(folder / "salt", salt.text().encode())
        except (OSError, RuntimeError, DataError):  # no home, or one that is read-only or somebody else's
            return None
        return cls(read_salt(folder / "salt"), Ledger(folder))


def _tables() -> Path:
    """The folder for them, by the XDG Base Directory Specification; ``RuntimeError`` without a home."""
    stated = os.environ.get("XDG_STATE_HOME", "")
    state = Path(stated) if os.path.isabs(stated) else Path.home() / ".local" / "state"
    return state / "synth-audit" / "training-tables"
