"""Files audits: each in a folder of its own that appears whole or not at all and is never replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from synth_audit.core.errors import DataError
from synth_audit.core.verdict import Result
from synth_audit.store.attempts import table_ledger
from synth_audit.store.audit_folder import AuditFolder
from synth_audit.store.evidence import Evidence, parse_evidence
from synth_audit.store.folders import link_or_copy, new_folder
from synth_audit.store.journal import AuditEntry, Journal, OpenJournal, open_journal
from synth_audit.store.pointers import Newest, to_json
from synth_audit.store.seal import seal_of, seal_path
from synth_audit.store.untrusted_file import is_plain_folder, read_plain, sha256_of_bytes
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import write_bytes, write_text

_LARGEST = 1 << 28
"""Bytes of all files of an audit together; what lies there beyond them would only exhaust the memory."""

EVIDENCE, MEASUREMENTS, REPORT = "evidence.json", "measurements.parquet", "report.html"


@dataclass(frozen=True)
class FiledAudit:
    """The content of an audit's folder, read once, so that what is checked is what is used.

    Attributes:
        files: content by name of every file, seals too. Hidden ones may be left from a kill and do not count.
    """

    folder: AuditFolder
    files: Mapping[str, bytes]

    @classmethod
    def load(cls, folder: AuditFolder) -> FiledAudit:
        """Read the folder.

        Raises:
            DataError: it is missing, it or something in it is a link or no file, or it holds no evidence.
        """
        try:
            among = folder.path.parent
            if not is_plain_folder(folder.path) or (among.name == "audits" and not is_plain_folder(among)):
                raise NotADirectoryError
            names = [n for n in sorted(os.listdir(folder.path)) if not n.startswith(".")]
            files: dict[str, bytes] = {}
            for name in names:
                room = _LARGEST - sum(map(len, files.values()))
                files[name] = read_plain(folder.path / name, largest=room)
        except OSError as error:
            raise _altered(folder, f"cannot be read ({type(error).__name__})") from None
        if EVIDENCE not in files:
            raise _altered(folder, "holds no evidence")
        return cls(folder, files)

    @property
    def digest(self) -> str:
        """The digest that its evidence must have."""
        return self.folder.digest

    @property
    def where(self) -> Path:
        """Where its evidence lies, for messages."""
        return self.folder.evidence

    @property
    def measurements(self) -> bytes | None:
        """Its measurements as a file, where they are there."""
        return self.files.get(MEASUREMENTS)

    @property
    def report(self) -> bytes | None:
        """Its report, where one is there."""
        return self.files.get(REPORT)

    @property
    def seal(self) -> bytes | None:
        """The seal of its evidence, where one is there."""
        return self.files.get(seal_path(self.folder.evidence).name)

    @property
    def evidence_file(self) -> bytes:
        """Its evidence as a file."""
        return self.files[EVIDENCE]

    @property
    def evidence(self) -> Evidence:
        """The evidence in it.

        Raises:
            ValueError: it is none.
        """
        return parse_evidence(self.files[EVIDENCE].decode())

    def altered(self, entry: AuditEntry) -> tuple[str, ...]:
        """Names of files that are not what was filed, or that were not filed at all."""
        found = {name: sha256_of_bytes(content) for name, content in self.files.items()}
        return tuple(n for n in sorted({*found, *entry.files}) if found.get(n) != entry.files.get(n))


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
        _seal(workspace, journal, filed)
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
        raise _altered(folder, "lies behind a link")
    known = journal.now.entry(evidence.digest)
    if os.path.lexists(folder.path):
        there = FiledAudit.load(folder)
        if known is None:
            raise _altered(folder, "was never filed")
        if any(n in there.files or n in (EVIDENCE, MEASUREMENTS) for n in there.altered(known)):
            raise _altered(folder, "does not hold what was filed")
        # That a purge of it was broken off is over too.
        journal.write(journal.now.with_entry(replace(known, purged="", latest=_latest(known, number))))
        return there  # perhaps without its report, which comes later and can be written again
    filed = FiledAudit(folder, {EVIDENCE: evidence.to_json().encode(), **contents})
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


def _seal(workspace: Workspace, journal: OpenJournal, filed: FiledAudit) -> None:
    path = filed.folder.evidence
    if seal_path(path).name not in filed.files and (seal := seal_of("evidence", filed.files[EVIDENCE])):
        _add(journal, filed.folder, seal_path(path).name, seal)


def add_report(workspace: Workspace, folder: AuditFolder, content: bytes) -> Path:
    """Put a report into the folder of its audit, where one that is there stays.

    Raises:
        DataError: the audit is not in the journal, or the report that is there is not the one that was filed.
    """
    with open_journal(workspace) as journal:
        known = journal.now.entry(folder.digest)
        if known is None:
            raise _altered(folder, "was never filed")
        if os.path.lexists(folder.report):
            if REPORT in FiledAudit.load(folder).altered(known):
                raise _altered(folder, "does not hold the report that was filed")
        else:
            _add(journal, folder, REPORT, content)
    return folder.report


def _add(journal: OpenJournal, folder: AuditFolder, name: str, content: bytes) -> None:
    entry = journal.now.entry(folder.digest)
    assert entry is not None
    files = {**entry.files, name: sha256_of_bytes(content)}
    journal.write(journal.now.with_entry(replace(entry, files=files)))
    write_bytes(folder.path / name, content)


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
    """Delete the rows of candidates whose audit is neither the newest nor that of a release."""
    needed = {journal.newest.get(workspace.place)}
    needed |= {r.digest for r in (journal.released, journal.releasing) if r is not None}
    kept = workspace.restricted / "audits"
    for folder in kept.iterdir() if kept.is_dir() else ():
        if folder.name not in needed:
            shutil.rmtree(folder, ignore_errors=True)


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


def _altered(folder: AuditFolder, what: str) -> DataError:
    return DataError(
        f"the folder of an audit {what}",
        where=str(folder.path),
        expected="what this program filed, unaltered, and no link in its place",
        fix="find out who altered it (`synth-audit verify` tells what), move it away and run the audit again",
    )
