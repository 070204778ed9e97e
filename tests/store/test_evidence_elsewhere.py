"""Evidence kept by another backend: whoever asks for it finds it, with nothing of it in the review folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field

import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.core.errors import DataError
from synth_audit.core.fingerprint import fingerprint
from synth_audit.core.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.store import evidence_folders
from synth_audit.store.audit_folder import AuditFolder
from synth_audit.store.checked_evidence import checked_evidence
from synth_audit.store.evidence_folders import EvidenceFolders
from synth_audit.store.filed_audit import FiledAudit, drop_rows, keep_rows
from synth_audit.store.locate import newest_evidence


@dataclass
class Memory:
    """A backend that keeps evidence in memory."""

    audits: dict = field(default_factory=dict)
    newest: str | None = None
    released: object = None

    def of(self, workspace):
        return InMemory(workspace, self)


@dataclass
class InMemory:
    workspace: object
    kept: Memory

    def get(self, digest):
        if digest not in self.kept.audits:
            raise DataError("there is no such audit", where=digest)
        return FiledAudit(AuditFolder(self.workspace.audits / digest), self.kept.audits[digest])

    def newest(self):
        return self.get(self.kept.newest)

    def newest_digest(self):
        return self.kept.newest

    def newest_evidence(self):
        return checked_evidence(newest_evidence(self.workspace))

    def released(self):
        return self.kept.released

    def release_sealed(self):
        return None

    def where(self, digest=None):
        folder = self.workspace.audit(digest or self.kept.newest)
        return {"evidence": folder.evidence, "measurements": folder.measurements, "report": folder.report}

    def rows(self, digest):
        return self.workspace.kept_rows(digest)

    def adopt(self, filed, journal, put_rows):
        keep_rows(self.workspace.home, filed.digest, put_rows)
        return not self.get(filed.digest).altered(journal.entry(filed.digest))

    def tell_release(self, journal):
        self.kept.released = journal.released

    def drop_rows(self, journal):
        drop_rows(self.workspace.home, journal)


@pytest.fixture
def moved(case, monkeypatch):
    """A finished case whose evidence was moved out of its folder."""
    folders = EvidenceFolders(case.workspace)
    memory = Memory(newest=folders.newest_digest())
    memory.audits[memory.newest] = dict(folders.newest().files)
    shutil.rmtree(case.workspace.audits)
    case.workspace.newest_pointer.unlink()
    monkeypatch.setattr(evidence_folders, "EvidenceFolders", memory.of)
    return case, memory


def test_it_is_verified_judged_and_released_from_there(moved):
    case, memory = moved
    root = case.workspace.root
    assert all(check.holds for check in api.verify(root))
    assert api.gate(root, str(case.folder / "gates.json")).verdict is Result.PASS
    record = pipeline.release_synthetic(case.plan, case.workspace)
    assert memory.released.target == record.where
    assert fingerprint(pq.read_table(record.where)) == record.table.sha256
    assert all(check.holds for check in api.verify(root))
    assert not case.workspace.audits.exists()


def test_what_is_altered_there_is_noticed(moved):
    case, memory = moved
    files = memory.audits[memory.newest]
    memory.audits[memory.newest] = files | {"report.html": files["report.html"] + b" "}
    assert {c.what for c in api.verify(case.workspace.root) if c.holds is False} == {
        "files of the audit",
        "pictures and sentences of the report",
    }
    memory.audits[memory.newest] = files | {"evidence.json": files["evidence.json"] + b" "}
    with pytest.raises(DataError, match="altered"):
        api.render_report(case.workspace.root)
