"""What was released of a table before: the release that a newer one is compared with."""

from __future__ import annotations

from synth_audit.core.errors import DataError
from synth_audit.store.audit_folder import is_digest
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.journal import read_journal
from synth_audit.store.pointers import Released
from synth_audit.store.workspace import Workspace


def releases_of(workspace: Workspace) -> tuple[Released, ...]:
    """All releases of a table, oldest first; without its journal the one that readers are told of.

    Raises:
        DataError: what tells of them is damaged.
    """
    home = workspace.home
    journal = read_journal(home)
    if journal is not None:
        return journal.history
    told = evidence_store(home).released()
    return () if told is None else (told,)


def release_before(workspace: Workspace, digest: str) -> Evidence | None:
    """Evidence of the last release before that of this audit; None where there was none, or it is gone."""
    digests = [released.digest for released in releases_of(workspace)]
    if digest in digests:
        digests = digests[: digests.index(digest)]
    return released_evidence(workspace, digests[-1]) if digests else None


def released_evidence(workspace: Workspace, digest: str) -> Evidence | None:
    """Evidence of a release that is still there, and whole."""
    if not is_digest(digest):
        return None
    try:
        found = evidence_store(workspace.home).get(digest).evidence
    except (DataError, ValueError):
        return None
    return found if found.intact and found.digest == digest else None
