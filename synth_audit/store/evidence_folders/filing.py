"""Files audits in folders: each appears whole or not at all, is entered first and is never replaced."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from synth_audit.core.verdict import Result
from synth_audit.store.attempts import table_ledger
from synth_audit.store.audit_folder import AuditFolder
from synth_audit.store.evidence import Evidence
from synth_audit.store.filed_audit import EVIDENCE, MEASUREMENTS, REPORT, SEAL, FiledAudit, altered_folder
from synth_audit.store.folders import link_or_copy, new_folder
from synth_audit.store.journal import AuditEntry, Journal, OpenJournal, open_journal
from synth_audit.store.kept_rows import drop_rows, keep_rows
from synth_audit.store.pointers import Newest, to_json
from synth_audit.store.seal import seal_of, seal_path
from synth_audit.store.untrusted_file import is_plain_folder, sha256_of_bytes
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import write_bytes, write_text


def file_audit(
    workspace: Workspace, evidence: Evidence, contents: Mapping[str, bytes], rows: Path | None = None
) -> Evidence:
    """File an audit, enter it into journal and ledger, and let ``newest.json`` name it.

    The same evidence again stays under the number of the attempt that found it first, in the folder as it is.

    Args:
        contents: by name, without the evidence itself.
        rows: the file of the candidate, where the workspace has it.

    Returns:
        The evidence as it is filed.

    Raises:
        DataError: it cannot be written, or its folder holds something else.
        LedgerDamaged: the table's ledger is missing or cannot be trusted.
    """
    with open_journal(workspace) as journal:
        ledger = table_ledger(workspace, journal.now)
        number = evidence.attempt or ledger.attempt(plan=evidence.plan_sha256, candidate=_candidate(evidence))
        filed = _filed(workspace, evidence, contents, journal, number)
        ledger.judged(number, verdict=evidence.verdict, evidence=evidence.digest)
        if SEAL not in filed.files and (seal := seal_of("evidence", filed.evidence_file)):
            _add(journal, workspace.audit(filed.digest), SEAL, seal)
        now = journal.now.with_newest(workspace.place, evidence.digest)
        journal.write(replace(now, ledger=ledger.head()))
        if rows is not None:
            keep_rows(workspace, evidence.digest, lambda kept: link_or_copy(rows, kept))
        drop_rows(workspace, journal.now)
        point(workspace, journal.now)
    return filed.evidence


def _candidate(evidence: Evidence) -> str:
    return evidence.tables["synthetic"].identity if "synthetic" in evidence.tables else ""


def _filed(
    workspace: Workspace,
    evidence: Evidence,
    contents: Mapping[str, bytes],
    journal: OpenJournal,
    number: int,
) -> FiledAudit:
    folder = workspace.audit(evidence.digest)
    if os.path.lexists(workspace.audits) and not is_plain_folder(workspace.audits):
        raise altered_folder(folder, "lies behind a link")
    known = journal.now.entry(evidence.digest)
    if os.path.lexists(folder.path):
        there = FiledAudit.load(folder)
        if known is None:
            raise altered_folder(folder, "was never filed")
        if any(n in there.files or n in (EVIDENCE, MEASUREMENTS) for n in there.altered(known)):
            raise altered_folder(folder, "does not hold what was filed")
        # That a purge of it was broken off is over too.
        journal.write(journal.now.with_entry(replace(known, purged="", latest=_latest(known, number))))
        return there  # perhaps without its report, which comes later and can be written again
    filed = FiledAudit(folder.digest, {EVIDENCE: evidence.to_json().encode(), **contents}, folder.evidence)
    with new_folder(folder.path) as temporary:
        for name, content in filed.files.items():
            write_bytes(temporary / name, content)
        # Known before it can be seen: an attempt that is not in the journal does not exist.
        _enter(workspace, filed, evidence, journal, number)
    return filed


def _enter(
    workspace: Workspace, filed: FiledAudit, evidence: Evidence, journal: OpenJournal, number: int
) -> None:
    """Enter an audit into the journal with its files as they are.

    Args:
        number: of the attempt; one that the journal knows by another number keeps that as its first.
    """
    known = journal.now.entry(evidence.digest)
    entry = AuditEntry(
        number=known.number if known else number,
        digest=evidence.digest,
        verdict=evidence.verdict,
        candidate=_candidate(evidence),
        created=evidence.created,
        place=workspace.place,
        files={name: sha256_of_bytes(content) for name, content in filed.files.items()},
        latest=_latest(known, number) if known else number,
    )
    journal.write(journal.now.with_entry(entry).with_newest(workspace.place, evidence.digest))


def _latest(known: AuditEntry, number: int) -> int:
    """The number that an audit which was found again has among others on the same rows.

    A failure counts anew. A pass does not: its evidence and report bear the number of the first attempt, and
    would hide that another failed in between.
    """
    return known.last if known.verdict is Result.PASS else max(known.last, number)


def add_report(workspace: Workspace, folder: AuditFolder, content: bytes) -> Path:
    """Put a report into the folder of its audit, where one that is there stays.

    A candidate that was released before it had one has a copy of the folder in the table's own workspace,
    which gets it first: after a kill in between, the next call does it all again.

    Raises:
        DataError: the audit is not in the journal, or the report that is there is not the one that was filed.
    """
    with open_journal(workspace) as journal:
        known = journal.now.entry(folder.digest)
        if known is None:
            raise altered_folder(folder, "was never filed")
        if os.path.lexists(folder.report):
            if REPORT in FiledAudit.load(folder).altered(known):
                raise altered_folder(folder, "does not hold the report that was filed")
        else:
            adopted = workspace.home.audit(folder.digest)
            if adopted.path != folder.path and is_plain_folder(adopted.path):
                write_bytes(adopted.report, content)
            _add(journal, folder, REPORT, content)
    return folder.report


def _add(journal: OpenJournal, folder: AuditFolder, name: str, content: bytes) -> None:
    entry = journal.now.entry(folder.digest)
    assert entry is not None
    files = {**entry.files, name: sha256_of_bytes(content)}
    journal.write(journal.now.with_entry(replace(entry, files=files)))
    write_bytes(folder.path / name, content)


def point(workspace: Workspace, journal: Journal) -> None:
    """Write the pointers into the review folder as the journal has them."""
    write_text(workspace.newest_pointer, to_json(Newest(journal.newest[workspace.place])))
    if workspace.owner is None:
        point_to_release(workspace, journal)


def point_to_release(workspace: Workspace, journal: Journal) -> None:
    """Write what is out there into the review folder of the table's own workspace."""
    if journal.released is None:
        return
    content, path = to_json(journal.released).encode(), workspace.released_pointer
    write_bytes(path, content)
    if seal := seal_of("released", content):
        write_bytes(seal_path(path), seal)
    else:
        seal_path(path).unlink(missing_ok=True)  # one of an older release would not fit
