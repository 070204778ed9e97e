"""Whether an audit in the review folder is what was filed there: files, journal, seal, pointers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.errors import DataError, LedgerDamaged
from synth_audit.findings.verdict import Result
from synth_audit.store.approvals import KEY_VARIABLE, seal_holds
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_store import EvidenceStore, evidence_store
from synth_audit.store.filed_audit import FiledAudit
from synth_audit.store.files import holds, read_plain
from synth_audit.store.journal import AuditEntry, Journal, read_journal
from synth_audit.store.ledger import table_ledger
from synth_audit.store.records import Released
from synth_audit.store.reports import marks_of, read_marks
from synth_audit.store.workspace import Workspace
from synth_audit.verdict.measurement_frame import measurement_frame


@dataclass(frozen=True)
class Check:
    """One thing that was recomputed or compared.

    Attributes:
        holds: None when it is not checkable here, since what it takes is not at hand.
        detail: what was found, or why it cannot be checked.
    """

    what: str
    holds: bool | None
    detail: str


RECORDED, SEAL = "entry in the journal", "seal"
NEWEST, RELEASED = "pointer to the newest audit", "pointer to what was released"

_NEWEST = "newest attempt on these rows"
_NO_JOURNAL = "the journal in the restricted folder is not at hand"


@dataclass(frozen=True)
class Provenance:
    """A filed audit and what there is to compare it with.

    Attributes:
        workspace: None for a folder that lies by itself. journal: None where it is not at hand.
        turned: the pointer that led here named another audit than the newest; see :class:`LocatedEvidence`.
    """

    filed: FiledAudit
    evidence: Evidence
    workspace: Workspace | None
    journal: Journal | None
    turned: bool = False

    @classmethod
    def of(
        cls, filed: FiledAudit, evidence: Evidence, workspace: Workspace | None, *, turned: bool = False
    ) -> Provenance:
        """Compare with the journal of this workspace."""
        return cls(filed, evidence, workspace, read_journal(workspace) if workspace else None, turned)

    @property
    def entry(self) -> AuditEntry | None:
        """What the journal knows of it."""
        return self.journal.entry(self.evidence.digest) if self.journal else None

    def checks(self) -> tuple[Check, ...]:
        """Everything that can be said without the tables; what is said once is not repeated."""
        found = [self._name(), self._recorded(), self._measurements()]
        if self.entry is not None:
            found.append(self._files(self.entry))
        if seal := seal_check(self.filed.evidence_file, self.filed.seal, needed=self.entry is None):
            found.append(seal)
        if self.filed.report is not None:
            found.append(self._report(self.filed.report))
        found.append(self._governs())
        if self.journal is not None and (ledger := self._ledger(self.journal)):
            found.append(ledger)
        if self.workspace is not None:
            found.append(_newest(self.workspace, self.journal, self.turned))
            found.append(_released(self.workspace, self.journal))
            found += _swept(self.workspace)
        return tuple(found)

    def _name(self) -> Check:
        digest = self.filed.digest
        if self.workspace is None and digest != self.evidence.digest:
            return Check("name of the folder", None, "the folder lies by itself, under another name")
        return Check("name of the folder", digest == self.evidence.digest, digest)

    def _recorded(self) -> Check:
        if self.entry is not None:
            purged = f"; purged on {self.entry.purged[:10]}" if self.entry.purged else ""
            return Check(RECORDED, True, f"attempt {self.entry.number} on this table{purged}")
        if self.journal is not None:
            return Check(RECORDED, False, "nothing with this digest was audited in this workspace")
        return Check(RECORDED, None, _NO_JOURNAL)

    def _ledger(self, journal: Journal) -> Check | None:
        """Whether the table's ledger still holds all that it held; None for a table audited elsewhere."""
        if self.workspace is None or journal.ledger is None:
            return None
        what, evidence = "ledger of the table", self.evidence
        try:
            ledger = table_ledger(self.workspace, journal)
            attempts = ledger.attempts()
            whole = ledger.extends(journal.ledger)
            known = any(a.evidence == evidence.digest for a in attempts)
            held = evidence.ledger is None or ledger.extends(evidence.ledger)
        except LedgerDamaged as error:
            return Check(what, False, error.what)
        if not whole or (known and not held):
            return Check(what, False, "lines that it held are gone or changed")
        if self.entry is not None and not known:
            return Check(what, False, "it knows of no attempt that ended in this evidence")
        told = f"{len(attempts):,} attempt{'s' * (len(attempts) != 1)} on this table"
        return Check(what, True, told)

    def _files(self, entry: AuditEntry) -> Check:
        names = self.filed.altered(entry)
        gone = [n for n in names if n not in self.filed.files]
        other = [n for n in names if n in self.filed.files]
        told = [f"not as filed: {', '.join(other)}"] * bool(other)
        told += [f"not there, as where a run was broken off: {', '.join(gone)}"] * bool(gone)
        return Check("files of the audit", not names, "; ".join(told) or "as they were filed")

    def _measurements(self) -> Check:
        what = "measurements, built anew"
        content = self.filed.measurements
        if content is None:
            return Check(what, False, "they are not there")
        return Check(what, _says_the_same(content, self.evidence), "compared with the evidence")

    def _report(self, content: bytes) -> Check:
        found, wanted = read_marks(content.decode(errors="replace")), marks_of(self.evidence)
        same = found is not None and (found.audit, found.gates) == (wanted.audit, wanted.gates)
        return Check("marks of the report", same, "digest, verdict, values and limits of every gate")

    def _governs(self) -> Check:
        if self.journal is None:
            return newest_unknown()
        about = self.evidence.tables.get("synthetic")
        last = self.journal.governing(about.identity if about else "")
        if last is None:
            return Check(_NEWEST, None, "the journal knows of no audit of these rows")
        outdone = self.evidence.verdict is Result.PASS and last.verdict is not Result.PASS
        return Check(_NEWEST, not outdone, f"attempt {last.last}: {last.verdict}")


def newest_unknown() -> Check:
    """What no seal can tell: whether a later attempt on the same rows failed."""
    return Check(_NEWEST, None, f"{_NO_JOURNAL}, which alone knows of later ones")


def seal_check(content: bytes, seal: bytes | None, *, needed: bool) -> Check | None:
    """Whether a seal is that of the evidence with this content; None if there is nothing to say.

    Args:
        needed: nothing else vouches for the evidence, so that a seal without a key is worth a word.
    """
    holds = seal_holds("evidence", content, seal)
    if holds is None:
        return Check(SEAL, None, f"{KEY_VARIABLE} holds no key") if seal and needed else None
    told = "made with the key at hand" if holds else "missing" if seal is None else "of another file or key"
    return Check(SEAL, holds, told)


def _says_the_same(content: bytes, evidence: Evidence) -> bool:
    wanted = measurement_frame(evidence)
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            found = file.schema_arrow
            # Before reading: a file of some kilobytes can stand for billions of rows.
            if file.metadata.num_rows != wanted.num_rows or not found.equals(wanted.schema):
                return False
            # Letters that are none raise a ValueError.
            return _rows(file.read()) == _rows(wanted)
    except (OSError, ValueError, pa.ArrowException):
        return False


def _rows(measurements: pa.Table) -> list[str]:
    """As text, since NaN is not equal to itself; of a sentence only whether there is one."""
    rows = measurements.to_pylist()
    return [json.dumps({n: bool(x) if n == "insensitive" else x for n, x in row.items()}) for row in rows]


def _newest(workspace: Workspace, journal: Journal | None, turned: bool) -> Check:
    what = NEWEST
    try:
        found = evidence_store(workspace).newest_digest()
    except DataError as error:
        return Check(what, False, error.what)
    if journal is None:
        return Check(what, None, _NO_JOURNAL)
    named, wanted = found or "none", journal.newest.get(workspace.place, "none")
    if turned and named == wanted:  # by now
        return Check(what, False, f"it did not name {wanted} when it was read")
    return Check(what, named == wanted, wanted if named == wanted else f"it should name {wanted}")


def _released(workspace: Workspace, journal: Journal | None) -> Check:
    what = RELEASED
    store = evidence_store(workspace.home)
    try:
        found = store.released()
    except DataError as error:
        return Check(what, False, error.what)
    if fault := next(_faults(store, found, journal), ""):
        return Check(what, False, fault)
    if found is None and journal is not None:
        return Check(what, True, "nothing was released")
    if journal is None and not store.release_sealed():
        return Check(what, None, _NO_JOURNAL)
    assert found is not None
    return Check(what, True, f"{found.rows:,} rows to {found.target}")


def _swept(workspace: Workspace) -> Iterator[Check]:
    """Whether the record of a sweep that reviewers see is the one that the sweep left."""
    if workspace.owner is not None or not os.path.isfile(workspace.kept_frontier):
        return
    try:
        same = holds(workspace.frontier, read_plain(workspace.kept_frontier))
    except OSError:
        same = False
    told = "as the sweep left it" if same else "not as the sweep left it; sweep again"
    yield Check("record of the sweep", same, told)


def _faults(store: EvidenceStore, found: Released | None, journal: Journal | None) -> Iterator[str]:
    """What is wrong with the pointer, as far as can be told."""
    if journal is not None and journal.releasing is not None:
        yield f"a release to {journal.releasing.target} began and did not end; release again"
    if journal is not None and found != journal.released:
        known = journal.released
        yield f"it should name {known.digest if known else 'none'}"
    if found is None:
        return
    if store.release_sealed() is False:
        yield "its seal is missing, or not of this file and key"
    try:
        evidence = store.get(found.digest).evidence
    except (DataError, ValueError):
        yield f"the evidence {found.digest} that it names is missing or damaged"
        return
    recorded = evidence.tables.get("synthetic")
    same = recorded is not None and (recorded.rows, recorded.sha256) == (found.rows, found.sha256)
    if not (same and evidence.intact and evidence.digest == found.digest and evidence.verdict is Result.PASS):
        yield f"the evidence {found.digest} is not that of a pass on the rows it tells of"
