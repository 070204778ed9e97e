"""What this account remembers of a training table beyond one workspace: its salt, and every audit of it.

Otherwise another folder for the same tables would be another salt, and so another draw to choose from.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from synth_audit.core.errors import DataError
from synth_audit.core.files import create_once
from synth_audit.core.salt import Salt
from synth_audit.core.table import Table
from synth_audit.store.ledger import Ledger
from synth_audit.store.salts import read_salt
from synth_audit.store.workspace_files import make_private


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
    def remembered(cls, train: Table, salt: Salt) -> TrainingTable | None:
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
