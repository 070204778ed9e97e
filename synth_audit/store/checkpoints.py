"""What a fit that was broken off would resume from."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synth_audit.core.framing import framed
from synth_audit.store.evidence_records import installed_versions
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import making


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
