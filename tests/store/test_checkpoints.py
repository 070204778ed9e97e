"""What a fit may resume from is for its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from synth_audit.store.stage_records import fit_checkpoint
from synth_audit.store.workspace import Workspace
from synth_audit.studies.sweep import exclusive_lock


def test_checkpoints_and_locks_are_private_whatever_the_umask(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "out").prepare()
    before = os.umask(0)
    try:
        with exclusive_lock(workspace), fit_checkpoint(workspace, "plan", "rows"):
            found = [*workspace.restricted.rglob("*")]
            modes = [stat.S_IMODE(path.stat().st_mode) for path in found]
    finally:
        os.umask(before)
    assert len(found) == 3
    assert all(not mode & 0o077 for mode in modes)
