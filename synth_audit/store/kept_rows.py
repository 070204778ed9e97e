"""Rows of candidates, kept beside the journal while something may still ask for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from synth_audit.store.journal import Journal
from synth_audit.store.workspace import Workspace


def keep_rows(workspace: Workspace, digest: str, put: Callable[[Path], object]) -> None:
    """Keep a candidate's rows beside the journal, if they are not there already.

    Args:
        put: writes them to a path, for its owner alone.
    """
    kept = workspace.kept_rows(digest)
    if not kept.exists():
        for folder in (kept.parent.parent, kept.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        put(kept)


def drop_rows(workspace: Workspace, journal: Journal) -> None:
    """Delete rows of candidates whose audit is not the newest, nor that of a release or of the one before."""
    needed = {journal.newest.get(workspace.place)}
    releases = (journal.released, journal.previous, journal.releasing)
    needed |= {r.digest for r in releases if r is not None}
    kept = workspace.restricted / "audits"
    for folder in kept.iterdir() if kept.is_dir() else ():
        if folder.name not in needed:
            shutil.rmtree(folder, ignore_errors=True)
