"""Evidence kept by another backend: whoever asks for it finds it, with nothing of it in the review folder."""

import shutil
from dataclasses import dataclass, field, replace

import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.errors import DataError
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.store import evidence_store
from synth_audit.store.evidence_store import EvidenceStore, FiledAudit, drop_rows, keep_rows
from synth_audit.store.journal import open_journal, read_journal
from synth_audit.store.purge import Retention, purge, survey
from synth_audit.table.content_hash import fingerprint


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
    kept_in: Memory

    def get(self, digest):
        if digest not in self.kept_in.audits:
            raise DataError("there is no such audit", where=digest)
        return FiledAudit(digest, self.kept_in.audits[digest], self.workspace.audit(digest).evidence)

    def newest(self):
        return self.get(self.kept_in.newest)

    def newest_digest(self):
        return self.kept_in.newest

    def released(self):
        return self.kept_in.released

    def release_sealed(self):
        return None

    def kept(self):
        return {digest: sum(map(len, files.values())) for digest, files in self.kept_in.audits.items()}

    def remove(self, digest):
        self.kept_in.audits.pop(digest, None)

    def where(self, digest=None):
        folder = self.workspace.audit(digest or self.kept_in.newest)
        return {"evidence": folder.evidence, "measurements": folder.measurements, "report": folder.report}

    def rows(self, digest):
        return self.workspace.kept_rows(digest)

    def adopt(self, filed, journal, put_rows):
        keep_rows(self.workspace.home, filed.digest, put_rows)
        return not self.get(filed.digest).altered(journal.entry(filed.digest))

    def tell_release(self, journal):
        self.kept_in.released = journal.released

    def drop_rows(self, journal):
        drop_rows(self.workspace.home, journal)


@pytest.fixture
def moved(case, monkeypatch):
    """A finished case whose evidence was moved out of its folder."""
    folders = EvidenceStore(case.workspace)
    memory = Memory(newest=folders.newest_digest())
    memory.audits[memory.newest] = dict(folders.newest().files)
    shutil.rmtree(case.workspace.audits)
    case.workspace.newest_pointer.unlink()
    monkeypatch.setattr(evidence_store, "EvidenceStore", memory.of)
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


def test_a_purge_deletes_there_what_is_old(moved):
    case, memory = moved
    old = "0" * 64
    memory.audits[old] = memory.audits[memory.newest]
    with open_journal(case.workspace) as journal:
        [entry] = journal.now.audits
        journal.write(journal.now.with_entry(replace(entry, digest=old, number=0, latest=0)))
    found = survey(case.workspace, Retention(keep=1))
    assert [(item.name, item.size > 0) for item in found.goes] == [(old, True)]
    assert [item.name for item in found.stays] == [memory.newest]
    purge(case.workspace, Retention(keep=1))
    assert list(memory.audits) == [memory.newest]
    assert read_journal(case.workspace).entry(old).purged
