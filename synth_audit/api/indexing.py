"""One page over many tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def write_index(workspaces: Sequence[str | Path], path: str | Path, *, force: bool = False) -> Path:
    """Write a page over the audits of these workspaces, from their evidence alone.

    Args:
        force: replace whatever file is at ``path``; otherwise an earlier index alone is replaced.

    Returns:
        Where the page is.

    Raises:
        DataError: a folder is no workspace, or another file is at ``path``.
    """
    from synth_audit.report.index import refuse_no_index, render_index
    from synth_audit.store.audit_history import table_history
    from synth_audit.store.workspace_files import write_text

    to = Path(path)
    if not force and os.path.lexists(to):
        refuse_no_index(to)
    histories = [table_history(Path(root)) for root in workspaces]
    write_text(to, render_index(histories, to.absolute().parent))
    return to
