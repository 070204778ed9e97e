"""Every audit of a table that can still be read, and what was released of it before."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.store.approvals import Approval, approvals_in
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_store import CERTIFICATE, REPORT, FiledAudit, evidence_store
from synth_audit.store.journal import Journal, read_journal
from synth_audit.store.records import Released
from synth_audit.store.workspace import Workspace


def releases_of(workspace: Workspace) -> tuple[Released, ...]:
    """All releases of a table, oldest first; without its journal the one that readers are told of.

    Raises:
        DataError: what tells of them is damaged.
    """
    home = workspace.home
    journal = read_journal(home)
    if journal is not None:
        return journal.releases
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
    try:
        found = evidence_store(workspace.home).get(digest).evidence
    except DataError:
        return None
    return found if found.intact and found.digest == digest else None


@dataclass(frozen=True)
class PastAudit:
    """One audit.

    Attributes:
        evidence: as it lies there. sound: nothing at hand speaks against it.
        approvals: beside it. released: when it went out, if it did. out: it is what is out there now.
        certificate, report: the pages beside it, None where there is none.
    """

    evidence: Evidence
    sound: bool
    approvals: tuple[Approval, ...]
    released: Released | None
    out: bool
    certificate: Path | None
    report: Path | None


@dataclass(frozen=True)
class TableHistory:
    """The audits of one workspace, oldest first.

    Attributes:
        place: the folder of the workspace, as it was named.
        unread: folders that hold no evidence that can be read.
        purged: audits that are gone and were said to go.
    """

    place: str
    audits: tuple[PastAudit, ...]
    unread: int = 0
    purged: int = 0

    @property
    def table(self) -> str:
        """What the newest audit calls it; the folder's name where there is none."""
        return self.audits[-1].evidence.table if self.audits else Path(self.place).name


def table_history(root: Path) -> TableHistory:
    """Read a workspace; its journal, where it may be read, says what was filed.

    Raises:
        DataError: the folder is no workspace, or its journal or pointer is damaged.
    """
    workspace = Workspace(root)
    if not os.path.isdir(workspace.review):
        raise DataError(
            "the folder is no workspace",
            where=str(root),
            expected="a folder with review/ in it",
            fix="name the workspaces of tables, such as tumours-audit",
        )
    journal, releases = read_journal(workspace), releases_of(workspace)
    found, unread = [], 0
    for digest in evidence_store(workspace).kept():
        try:
            filed = evidence_store(workspace).get(digest)
            found.append(_past(workspace, filed, journal, releases))
        except DataError:
            unread += 1
    found.sort(key=lambda a: (a.evidence.attempt, a.evidence.created, a.evidence.digest))
    purged = sum(bool(e.purged) for e in journal.audits) if journal else 0
    return TableHistory(str(root), tuple(found), unread, purged)


def _past(
    workspace: Workspace, filed: FiledAudit, journal: Journal | None, releases: tuple[Released, ...]
) -> PastAudit:
    evidence = filed.evidence
    entry = journal.entry(evidence.digest) if journal is not None else None
    as_filed = journal is None or (entry is not None and not filed.altered(entry))
    mine = [r for r in releases if r.digest == evidence.digest]
    folder = workspace.audit(filed.digest)
    return PastAudit(
        evidence=evidence,
        sound=evidence.intact and evidence.digest == filed.digest and as_filed,
        approvals=approvals_in(filed.files),
        released=mine[-1] if mine else None,
        out=bool(mine) and mine[-1] == releases[-1],
        certificate=folder.certificate if CERTIFICATE in filed.files else None,
        report=folder.report if REPORT in filed.files else None,
    )
