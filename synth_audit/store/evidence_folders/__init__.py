"""Evidence in folders: one for each audit under ``review/audits``, and two pointers to some of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from synth_audit.store.audit_folder import is_digest
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_folders.filing import add_report, file_audit, point_to_release
from synth_audit.store.filed_audit import MEASUREMENTS, TABLE, FiledAudit
from synth_audit.store.folders import discard, folder_names, new_folder, size_of
from synth_audit.store.journal import AuditEntry, Journal, read_journal
from synth_audit.store.kept_rows import drop_rows, keep_rows
from synth_audit.store.pointers import Newest, Released, read_pointer
from synth_audit.store.seal import seal_holds, seal_path
from synth_audit.store.untrusted_file import read_plain
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import write_bytes


@dataclass(frozen=True)
class EvidenceFolders:
    """An :class:`~synth_audit.store.evidence_store.EvidenceStore` of the files of a workspace."""

    workspace: Workspace

    def put(
        self, evidence: Evidence, measurements: bytes, rows: Path | None = None, table: bytes | None = None
    ) -> Evidence:
        """File an audit; see :func:`.filing.file_audit`."""
        contents = {MEASUREMENTS: measurements} | ({} if table is None else {TABLE: table})
        return file_audit(self.workspace, evidence, contents, rows)

    def put_report(self, digest: str, content: bytes) -> Path:
        """Put a report beside its evidence; see :func:`.filing.add_report`."""
        return add_report(self.workspace, self.workspace.audit(digest), content)

    def get(self, digest: str) -> FiledAudit:
        """What is in the folder of that name."""
        return FiledAudit.load(self.workspace.audit(digest))

    def newest(self) -> FiledAudit:
        """What is in the folder that ``newest.json`` names."""
        return FiledAudit.load(self.workspace.newest)

    def newest_digest(self) -> str | None:
        """What ``newest.json`` says."""
        found = read_pointer(Newest, self.workspace.newest_pointer)
        return found.digest if found else None

    def released(self) -> Released | None:
        """What ``released.json`` of the table's own workspace says."""
        return read_pointer(Released, self.workspace.home.released_pointer)

    def release_sealed(self) -> bool | None:
        """Whether the seal beside ``released.json`` is of the key at hand."""
        path = self.workspace.home.released_pointer
        try:
            content = read_plain(path)
        except OSError:
            return None
        seal = None
        with suppress(OSError):
            seal = read_plain(seal_path(path))
        return seal_holds("released", content, seal)

    def list(self) -> tuple[AuditEntry, ...]:
        """The entries of the journal."""
        journal = read_journal(self.workspace)
        return journal.audits if journal is not None else ()

    def kept(self) -> Mapping[str, int]:
        """The folders that are named like a digest."""
        audits = self.workspace.audits
        names = [name for name in folder_names(audits) if is_digest(name)]
        return {name: size_of(audits / name) for name in names}

    def remove(self, digest: str) -> None:
        """Delete the folder."""
        folder = self.workspace.audit(digest).path
        if os.path.lexists(folder):
            discard(folder)

    def where(self, digest: str | None = None) -> Mapping[str, Path]:
        """The files of an audit, whether they are there or not."""
        folder = self.workspace.newest if digest is None else self.workspace.audit(digest)
        return {
            "certificate": folder.certificate,
            "evidence": folder.evidence,
            "measurements": folder.measurements,
            "report": folder.report,
            "table": folder.table,
        }

    def rows(self, digest: str) -> Path:
        """A file in the restricted folder."""
        return self.workspace.kept_rows(digest)

    def adopt(self, filed: FiledAudit, journal: Journal, put_rows: Callable[[Path], object]) -> bool:
        """Copy the folder into the table's own workspace, whatever becomes of a sweep."""
        home = self.workspace.home
        folder = home.audit(filed.digest)
        if not os.path.lexists(folder.path):
            with new_folder(folder.path) as temporary:
                for name, content in filed.files.items():
                    write_bytes(temporary / name, content)
        entry = journal.entry(folder.digest)
        if entry is not None and FiledAudit.load(folder).altered(entry):
            return False
        keep_rows(home, folder.digest, put_rows)
        return True

    def tell_release(self, journal: Journal) -> None:
        """Write ``released.json``."""
        point_to_release(self.workspace.home, journal)

    def drop_rows(self, journal: Journal) -> None:
        """Delete rows in the restricted folder."""
        drop_rows(self.workspace.home, journal)
