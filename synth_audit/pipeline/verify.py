"""Re-checks evidence years later: what it says by itself, the tables at hand, and what was filed beside it.

Sentences are not compared: they may change from version to version, and what they rest on is.
"""

import hmac
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.errors import DataError, GateError, LedgerDamaged
from synth_audit.execution.seeds import Salt
from synth_audit.files import read_plain
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.store.approvals import KEY_VARIABLE, seal_holds
from synth_audit.store.evidence import Evidence, sha256_of
from synth_audit.store.evidence_store import EvidenceStore, FiledAudit, evidence_store
from synth_audit.store.files import hash_parquet, holds
from synth_audit.store.journal import AuditEntry, Journal, read_journal
from synth_audit.store.ledger import table_ledger
from synth_audit.store.locate import LocatedEvidence, purged_entry
from synth_audit.store.records import Released
from synth_audit.store.reports import marks_of, read_marks
from synth_audit.store.salts import read_salt
from synth_audit.store.workspace import Workspace
from synth_audit.verdict import judge as gate
from synth_audit.verdict.judge import measurement_frame
from synth_audit.verdict.suite import parse_suite

RECORDED, SEALED = "entry in the journal", "seal"

NEWEST, OUT_THERE = "pointer to the newest audit", "pointer to what was released"

_CHECK_ATTEMPT = "newest attempt on these rows"

_NO_JOURNAL = "the journal in the restricted folder is not at hand"


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

    @property
    def sentence(self) -> str:
        """What was checked, and what was found."""
        return f"{self.what}: {'not checkable here: ' if self.holds is None else ''}{self.detail}"


class Checks(tuple[Check, ...]):
    """Checks, which a notebook shows as a table and a shell as lines."""

    def __repr__(self) -> str:
        signs = {True: "holds", False: "DOES NOT HOLD", None: "open"}
        return "\n".join(f"{signs[c.holds]:<13}  {c.sentence}" for c in self)

    def _repr_html_(self) -> str:
        from synth_audit.findings.text_frame import as_html

        holds = {True: "yes", False: "no", None: "not checkable here"}
        return as_html({"checked": c.what, "holds": holds[c.holds], "detail": c.detail} for c in self)


_NEWEST_UNKNOWN = Check(_CHECK_ATTEMPT, None, f"{_NO_JOURNAL}, which alone knows of later ones")
"""What no seal can tell: whether a later attempt on the same rows failed."""


def verify(
    evidence: Evidence, hashes: Mapping[str, str] | None = None, salt: Salt | None = None
) -> tuple[Check, ...]:
    """Recompute what the evidence claims.

    The digest shows damage and careless edits. It is no signature: who can rewrite the file can
    rewrite the digest. What was written where reviewers cannot write is compared by
    :class:`Provenance`.

    Args:
        hashes: content hashes, see :func:`synth_audit.table.content_hash.fingerprint`, of any of ``source``,
            ``train``, ``control``, ``synthetic`` that are still at hand.
        salt: of the workspace, which hashes of tables that never left take; without it only a candidate that
            passed can be compared, and the others are told of as not checkable here.
    """
    known = dict(hashes or {})
    # Who has the salt has the workspace too, and names what it lacks; others shall see what is left open.
    names = [*known, *(n for n in evidence.tables if salt is None and n not in known)]
    kept = evidence.salt_commitment
    commitments = [Check("commitment to the salt", salt.commitment == kept, kept)] if salt and kept else []
    return (
        Check("digest of the evidence", evidence.intact, evidence.digest),
        Check("hash of the plan", sha256_of(evidence.plan) == evidence.plan_sha256, evidence.plan_sha256),
        Check(
            "hash of the gate suite",
            sha256_of(evidence.gates.suite) == evidence.gates.suite_sha256,
            evidence.gates.suite_sha256,
        ),
        _verdict(evidence),
        *commitments,
        *(content_check(evidence, name, known.get(name), salt) for name in names),
    )


def verify_filed(
    found: LocatedEvidence,
    hashes: Callable[[Evidence], Mapping[str, str]] | None = None,
    salt: Salt | None = None,
) -> tuple[Evidence, tuple[Check, ...]]:
    """Evidence of a file or folder, with all that can be checked of it where it lies.

    Args:
        hashes: content hashes of tables at hand, given what is to be verified; those in the restricted folder
            are hashed there.
        salt: as in :func:`verify`.

    Raises:
        DataError: there is no evidence, it cannot be read as such, or the salt given is not the one it names.
    """
    filed = found.filed()
    evidence = filed.evidence
    if salt is not None:
        refuse_foreign(salt, evidence)
    at_hand = _beside(found, evidence) | dict({} if hashes is None else hashes(evidence))
    around = Provenance.of(filed, evidence, found.workspace, turned=found.turned).checks()
    if salt is None and found.workspace is not None and os.path.isfile(found.workspace.salt):
        salt = read_salt(found.workspace.salt)
    return evidence, (*verify(evidence, at_hand, salt), *around)


def purged_check(path: Path) -> Check | None:
    """What there is to say of an audit that was purged from its workspace; None for anything else."""
    entry = purged_entry(path)
    if entry is None:
        return None
    told = f"attempt {entry.number} on this table, purged on {entry.purged[:10]}; nothing else is left of it"
    return Check(RECORDED, None, told)


def refuse_foreign(salt: Salt, evidence: Evidence) -> None:
    """Raise ``DataError`` for a salt that is not the one the evidence was made under."""
    if salt.commitment != evidence.salt_commitment:
        known = evidence.salt_commitment
        raise DataError(
            "the salt is not that of the evidence",
            where="--salt",
            expected=f"the salt with the commitment {known}" if known else "none: no salt was kept",
            fix="name the file `restricted/salt` of the workspace that the evidence comes from",
        )


def _beside(found: LocatedEvidence, evidence: Evidence) -> dict[str, str]:
    """Content hashes of this audit's tables in the restricted folder, as far as this reader may see it."""
    workspace = found.workspace
    if workspace is None:
        return {}
    places = {"train": workspace.train, "control": workspace.control} if found.newest else {}
    kept = workspace.synthetic if found.folder is None else evidence_store(workspace).rows(evidence.digest)
    return {
        name: hash_parquet(path, made_by=name)
        for name, path in {**places, "synthetic": kept}.items()
        if os.path.isfile(path)  # not `Path.exists`: it raises for whoever may not look
    }


def _decided(result: GateResult) -> tuple[object, ...]:
    """What must be the same of a gate, whatever words a version has for it.

    Of numbers it leaves out the digits that differ between machines. Where all measurements of a quantity
    were judged, the worst of equals may be another one.
    """
    about = result.measurement
    numbers = (result.value, result.low, result.high, result.level, result.minimum, result.maximum)
    return (
        result.gate,
        str(result.result),
        result.blocking,
        about.whole if about is not None and result.every else about,
        result.every,
        result.fitness,
        result.bound,
        *("" if x is None else f"{x:.12g}" for x in numbers),
    )


def _verdict(evidence: Evidence) -> Check:
    what = "verdict, judged anew"
    try:
        suite = parse_suite(evidence.gates.suite, where="evidence", installed=False)
        judged = gate.judge_again(suite, evidence)
    except GateError as error:
        return Check(what, False, f"the suite cannot be judged: {error.what}")
    found, recorded = ([_decided(r) for r in report.results] for report in (judged, evidence.gates))
    answers = (judged.verdict, judged.fitness) == (evidence.verdict, evidence.fitness)
    same = answers and found == recorded and len(judged.blockers) == len(evidence.gates.blockers)
    return Check(what, same, f"{judged.verdict}; fit for purpose: {judged.fitness}")


def content_of(name: str) -> str:
    """What a check of a table is called."""
    return f"content of {name}"


def content_check(evidence: Evidence, name: str, found: str | None, salt: Salt | None) -> Check:
    """Compare a table with every hash of it that can be made again here.

    Args:
        found: its content hash; None where it is not at hand.
    """
    what, recorded = content_of(name), evidence.tables.get(name)
    if recorded is None:
        return Check(what, False, "the evidence tells of no such table")
    if found is None:
        return Check(what, None, "the table is not at hand")
    same = [] if recorded.sha256 is None else [recorded.sha256 == found]
    if salt is not None:
        keyed = salt.digest(found.encode())
        return Check(what, all([*same, hmac.compare_digest(recorded.hmac, keyed)]), keyed)
    if not same:
        return Check(what, None, "its hash takes the salt of the workspace where it was audited")
    return Check(what, all(same), found)


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
    ) -> "Provenance":
        """Compare with the journal of this workspace."""
        return cls(filed, evidence, workspace, read_journal(workspace) if workspace else None, turned)

    @property
    def entry(self) -> AuditEntry | None:
        """What the journal knows of it; of a file by itself the bytes must be those that were filed."""
        entry = self.journal.entry(self.evidence.digest) if self.journal else None
        known = self.filed.digest or (entry is not None and entry.names(self.filed.evidence_file))
        return entry if known else None

    def checks(self) -> tuple[Check, ...]:
        """Everything that can be said without the tables; what is said once is not repeated."""
        seal = seal_check(self.filed.evidence_file, self.filed.seal, needed=self.entry is None)
        if not self.filed.digest:
            return (self._recorded(), *seal, _NEWEST_UNKNOWN)
        found = [self._name(), self._recorded(), self._measurements()]
        if self.entry is not None:
            found.append(self._files(self.entry))
        found += seal
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
            return Check(RECORDED, False, "it is not what was audited in this workspace")
        return Check(RECORDED, None, _NO_JOURNAL if self.filed.digest else "the file lies by itself")

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
            return _NEWEST_UNKNOWN
        about = self.evidence.tables.get("synthetic")
        last = self.journal.governing(about.hmac if about else "")
        if last is None:
            return Check(_CHECK_ATTEMPT, None, "the journal knows of no audit of these rows")
        outdone = self.evidence.verdict is Result.PASS and last.verdict is not Result.PASS
        return Check(_CHECK_ATTEMPT, not outdone, f"attempt {last.last}: {last.verdict}")


def seal_check(content: bytes, seal: bytes | None, *, needed: bool) -> Iterator[Check]:
    """Whether a seal is that of the evidence with this content; nothing if there is nothing to say.

    Args:
        needed: nothing else vouches for the evidence, so that a seal without a key is worth a word.
    """
    holds = seal_holds("evidence", content, seal)
    told = "made with the key at hand" if holds else "missing" if seal is None else "of another file or key"
    if holds is not None:
        yield Check(SEALED, holds, told)
    elif seal and needed:
        yield Check(SEALED, None, f"{KEY_VARIABLE} holds no key")


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
    try:
        found = evidence_store(workspace).newest_digest()
    except DataError as error:
        return Check(NEWEST, False, error.what)
    if journal is None:
        return Check(NEWEST, None, _NO_JOURNAL)
    named, wanted = found or "none", journal.newest.get(workspace.place, "none")
    if turned and named == wanted:  # by now
        return Check(NEWEST, False, f"it did not name {wanted} when it was read")
    return Check(NEWEST, named == wanted, wanted if named == wanted else f"it should name {wanted}")


def _released(workspace: Workspace, journal: Journal | None) -> Check:
    store = evidence_store(workspace.home)
    try:
        found = store.released()
    except DataError as error:
        return Check(OUT_THERE, False, error.what)
    if fault := next(_faults(store, found, journal), ""):
        return Check(OUT_THERE, False, fault)
    if found is None and journal is not None:
        return Check(OUT_THERE, True, "nothing was released")
    if journal is None and not store.release_sealed():
        return Check(OUT_THERE, None, _NO_JOURNAL)
    assert found is not None
    return Check(OUT_THERE, True, f"{found.rows:,} rows to {found.target}")


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
    except DataError:
        yield f"the evidence {found.digest} that it names is missing or damaged"
        return
    recorded = evidence.tables.get("synthetic")
    same = recorded is not None and (recorded.rows, recorded.sha256) == (found.rows, found.sha256)
    if not (same and evidence.intact and evidence.digest == found.digest and evidence.verdict is Result.PASS):
        yield f"the evidence {found.digest} is not that of a pass on the rows it tells of"
