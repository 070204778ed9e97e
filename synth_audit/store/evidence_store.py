"""Where evidence is kept: a folder for each audit, filed whole or not at all and never replaced.

What was filed is read once, as a :class:`FiledAudit`, so that what is checked is what is used.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from synth_audit.errors import Altered
from synth_audit.files import read_plain
from synth_audit.findings.verdict import Result
from synth_audit.store import approvals
from synth_audit.store import files as disk
from synth_audit.store.evidence import Evidence, evidence_bytes, evidence_of
from synth_audit.store.journal import AuditEntry, Journal, OpenJournal, open_journal
from synth_audit.store.ledger import table_ledger
from synth_audit.store.records import Newest, Released, is_digest, read_pointer, to_json
from synth_audit.store.workspace import AuditFolder, Workspace

EVIDENCE, MEASUREMENTS, REPORT = "evidence.json", "measurements.parquet", "report.html"
SEAL = EVIDENCE + approvals.SUFFIX
SHARED_TABLE = "synthetic.parquet"
"""The audited rows and values alone, of a table made elsewhere that passed."""

CERTIFICATE = "certificate.html"
"""Rendered anew with each approval, so that it is compared with what it shows and not with what was filed."""

_LARGEST_AUDIT = 1 << 29
"""Bytes of all files of an audit together; what lies there beyond them would only exhaust the memory."""

LARGEST_TABLE = _LARGEST_AUDIT // 4 * 3
"""Bytes of that table, so that there is room for the other files."""


@dataclass(frozen=True)
class FiledAudit:
    """The files of an audit, wherever they are kept.

    Attributes:
        digest: that its evidence must have; empty for a file by itself, whose name says nothing.
        files: content by name of every file, seals too.
        where: its evidence, for messages.
    """

    digest: str
    files: Mapping[str, bytes]
    where: Path

    @classmethod
    def load(cls, folder: AuditFolder) -> "FiledAudit":
        """What is in a folder; hidden files may be left from a kill and do not count.

        Raises:
            Altered: it is missing, it or something in it is a link or no file, or it holds no evidence.
        """
        try:
            among = folder.path.parent
            if not disk.is_plain_folder(folder.path) or (
                among.name == "audits" and not disk.is_plain_folder(among)
            ):
                raise NotADirectoryError
            names = [n for n in sorted(os.listdir(folder.path)) if not n.startswith(".")]
            files: dict[str, bytes] = {}
            for name in names:
                room = _LARGEST_AUDIT - sum(map(len, files.values()))
                files[name] = read_plain(folder.path / name, largest=room)
        except OSError as error:
            raise altered_folder(folder, f"cannot be read ({type(error).__name__})") from None
        if EVIDENCE not in files:
            raise altered_folder(folder, "holds no evidence")
        return cls(folder.digest, files, folder.evidence)

    @classmethod
    def alone(cls, file: Path) -> "FiledAudit":
        """Evidence in a file by itself, with the seal and the approvals beside it.

        Raises:
            DataError: it cannot be read.
        """
        seal = approvals.seal_beside(file)
        files = {EVIDENCE: evidence_bytes(file), **approvals.approval_files(file.parent)}
        return cls("", files | ({} if seal is None else {SEAL: seal}), file)

    def write(self, folder: Path) -> None:
        """Write its files into a folder."""
        for name, content in self.files.items():
            disk.write_bytes(folder / name, content)

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
        return self.files.get(SEAL)

    @property
    def evidence_file(self) -> bytes:
        """Its evidence as a file."""
        return self.files[EVIDENCE]

    @property
    def evidence(self) -> Evidence:
        """The evidence in it.

        Raises:
            DataError: it is damaged or of another format.
        """
        return evidence_of(self.files[EVIDENCE], self.where)

    def altered(self, entry: AuditEntry) -> tuple[str, ...]:
        """Names of files that are not what was filed, or that were not filed at all.

        Approvals vouch for themselves, and come later.
        """
        filed = {n: x for n, x in self.files.items() if n != CERTIFICATE and not approvals.is_approval(n)}
        found = {name: disk.sha256_of_bytes(content) for name, content in filed.items()}
        return tuple(n for n in sorted({*found, *entry.files}) if found.get(n) != entry.files.get(n))


@dataclass(frozen=True)
class EvidenceStore:
    """The audits of one workspace: filed under the digest of their evidence, and never replaced."""

    workspace: Workspace

    def put(
        self, evidence: Evidence, measurements: bytes, rows: Path | None = None, table: bytes | None = None
    ) -> Evidence:
        """File an audit, enter it into journal and ledger, and let ``newest.json`` name it.

        The same evidence again stays under the number of the attempt that found it first, in the folder as it
        is.

        Args:
            measurements: the file of them.
            rows: the file of the candidate, where there is one.
            table: the file that may be shared, of a candidate made elsewhere that passed.

        Returns:
            The evidence as it is filed.

        Raises:
            DataError: it cannot be written, or its folder holds something else.
            LedgerDamaged: the table's ledger is missing or cannot be trusted.
        """
        workspace = self.workspace
        contents = {MEASUREMENTS: measurements} | ({} if table is None else {SHARED_TABLE: table})
        with open_journal(workspace) as journal:
            ledger = table_ledger(workspace, journal.now)
            number = evidence.attempt or ledger.attempt(
                plan=evidence.plan_sha256, candidate=_candidate(evidence)
            )
            filed = self._filed(evidence, contents, journal, number)
            ledger.judged(number, verdict=evidence.verdict, evidence=evidence.digest)
            if SEAL not in filed.files and (seal := approvals.seal_of("evidence", filed.evidence_file)):
                _add(journal, workspace.audit(filed.digest), SEAL, seal)
            now = journal.now.with_newest(workspace.place, evidence.digest)
            journal.write(replace(now, ledger=ledger.head()))
            if rows is not None:
                keep_rows(workspace, evidence.digest, lambda kept: disk.link_or_copy(rows, kept))
            drop_rows(workspace, journal.now)
            disk.write_text(workspace.newest_pointer, to_json(Newest(evidence.digest)))
            if workspace.owner is None:
                self.tell_release(journal.now)
        return filed.evidence

    def _filed(
        self, evidence: Evidence, contents: Mapping[str, bytes], journal: OpenJournal, number: int
    ) -> FiledAudit:
        """The audit in its folder, where one that was filed before stays."""
        folder, audits = self.workspace.audit(evidence.digest), self.workspace.audits
        if os.path.lexists(audits) and not disk.is_plain_folder(audits):
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
        files = {EVIDENCE: evidence.to_json().encode(), **contents}
        filed = FiledAudit(folder.digest, files, folder.evidence)
        entry = AuditEntry(
            number=known.number if known else number,
            digest=evidence.digest,
            verdict=evidence.verdict,
            candidate=_candidate(evidence),
            created=evidence.created,
            place=self.workspace.place,
            files={name: disk.sha256_of_bytes(content) for name, content in files.items()},
            latest=_latest(known, number) if known else number,
        )
        with disk.new_folder(folder.path) as temporary:
            filed.write(temporary)
            # Known before it can be seen: an attempt that is not in the journal does not exist.
            journal.write(journal.now.with_entry(entry).with_newest(entry.place, entry.digest))
        return filed

    def put_report(self, digest: str, content: bytes) -> Path:
        """Put a report beside its evidence, where one that is there stays; returns where it is.

        A candidate that was released before it had one has a copy of the folder in the table's own workspace,
        which gets it first: after a kill in between, the next call does it all again.

        Raises:
            DataError: the audit is not in the journal, or the report that is there is not the one that was
                filed.
        """
        folder = self.workspace.audit(digest)
        with open_journal(self.workspace) as journal:
            known = journal.now.entry(digest)
            if known is None:
                raise altered_folder(folder, "was never filed")
            if os.path.lexists(folder.report):
                if REPORT in FiledAudit.load(folder).altered(known):
                    raise altered_folder(folder, "does not hold the report that was filed")
            else:
                adopted = self.workspace.home.audit(digest)
                if adopted.path != folder.path and disk.is_plain_folder(adopted.path):
                    disk.write_bytes(adopted.report, content)
                _add(journal, folder, REPORT, content)
        return folder.report

    def get(self, digest: str) -> FiledAudit:
        """What was filed of one audit.

        Raises:
            DataError: it is not there, or was tampered with so that it cannot be read.
        """
        return FiledAudit.load(self.workspace.audit(digest))

    def newest(self) -> FiledAudit:
        """What was filed last.

        Raises:
            DataError: there is no audit, or what names it is damaged.
        """
        return FiledAudit.load(self.workspace.newest)

    def newest_digest(self) -> str | None:
        """Which audit readers are told is the newest; None where nothing is.

        Raises:
            DataError: what names it is damaged.
        """
        found = read_pointer(Newest, self.workspace.newest_pointer)
        return found.digest if found else None

    def released(self) -> Released | None:
        """What readers are told is out there; None where nothing is.

        Raises:
            DataError: what says so is damaged.
        """
        return read_pointer(Released, self.workspace.home.released_pointer)

    def release_sealed(self) -> bool | None:
        """Whether what :meth:`released` tells is sealed by the key at hand; None without key or release."""
        path = self.workspace.home.released_pointer
        try:
            content = read_plain(path)
        except OSError:
            return None
        return approvals.seal_holds("released", content, approvals.seal_beside(path))

    def kept(self) -> Mapping[str, int]:
        """Digest of each audit of which there is anything, known to the journal or not, and its bytes."""
        audits = self.workspace.audits
        return {name: disk.size_of(audits / name) for name in disk.folder_names(audits) if is_digest(name)}

    def remove(self, digest: str) -> None:
        """Delete what was filed of an audit; nothing is left of it but the journal's entry.

        Raises:
            DataError: it cannot be deleted wholly.
        """
        folder = self.workspace.audit(digest).path
        if os.path.lexists(folder):
            disk.discard(folder)

    def where(self, digest: str | None = None) -> Mapping[str, Path]:
        """Where a person finds evidence, measurements, report and table of an audit, there or not; of the
        newest if None.

        Raises:
            DataError: there is no such audit.
        """
        folder = self.workspace.newest if digest is None else self.workspace.audit(digest)
        return {
            "certificate": folder.certificate,
            "evidence": folder.evidence,
            "measurements": folder.measurements,
            "report": folder.report,
            "table": folder.table,
        }

    def rows(self, digest: str) -> Path:
        """Where the rows of the candidate are while its audit is the newest or the released one."""
        return self.workspace.kept_rows(digest)

    def adopt(self, filed: FiledAudit, journal: Journal, put_rows: Callable[[Path], object]) -> bool:
        """Keep in the table's own workspace what is about to leave, with its rows.

        Returns:
            False where something else than what the journal knows is in its place.
        """
        home = self.workspace.home
        folder = home.audit(filed.digest)
        if not os.path.lexists(folder.path):
            with disk.new_folder(folder.path) as temporary:
                filed.write(temporary)
        entry = journal.entry(folder.digest)
        if entry is not None and FiledAudit.load(folder).altered(entry):
            return False
        keep_rows(home, folder.digest, put_rows)
        return True

    def tell_release(self, journal: Journal) -> None:
        """Tell readers what is out there, in the review folder of the table's own workspace."""
        if journal.released is None:
            return
        content, path = to_json(journal.released).encode(), self.workspace.home.released_pointer
        disk.write_bytes(path, content)
        if seal := approvals.seal_of("released", content):
            disk.write_bytes(approvals.seal_path(path), seal)
        else:
            approvals.seal_path(path).unlink(missing_ok=True)  # one of an older release would not fit


def evidence_store(workspace: Workspace) -> EvidenceStore:
    """The evidence of a workspace: the one place that says which store keeps it."""
    return EvidenceStore(workspace)


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
    needed = journal.needed(workspace.place)
    kept = workspace.restricted / "audits"
    for folder in kept.iterdir() if kept.is_dir() else ():
        if folder.name not in needed:
            shutil.rmtree(folder, ignore_errors=True)


def _candidate(evidence: Evidence) -> str:
    return evidence.tables["synthetic"].hmac if "synthetic" in evidence.tables else ""


def _latest(known: AuditEntry, number: int) -> int:
    """The number that an audit which was found again has among others on the same rows.

    A failure counts anew. A pass does not: its evidence and report bear the number of the first attempt, and
    would hide that another failed in between.
    """
    return known.last if known.verdict is Result.PASS else max(known.last, number)


def _add(journal: OpenJournal, folder: AuditFolder, name: str, content: bytes) -> None:
    """Put a file into an audit's folder, entered into the journal before."""
    entry = journal.now.entry(folder.digest)
    assert entry is not None
    files = {**entry.files, name: disk.sha256_of_bytes(content)}
    journal.write(journal.now.with_entry(replace(entry, files=files)))
    disk.write_bytes(folder.path / name, content)


def altered_folder(folder: AuditFolder, what: str) -> Altered:
    """The error for a folder that is not as this program left it."""
    return Altered(
        f"the folder of an audit {what}",
        where=str(folder.path),
        expected="what this program filed, unaltered, and no link in its place",
        fix="find out who altered it (`synth-audit verify` tells what), move it away and run the audit again",
    )
