"""Re-checks evidence years later: hashes, values against limits, verdict and the tables that are at hand.

Sentences are not compared: they may change from version to version, and what they rest on is.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synth_audit.errors import DataError, GateError
from synth_audit.findings.measurement import MeasurementId
from synth_audit.findings.verdict import GateResult
from synth_audit.pipeline.provenance import RECORDED, Check, Provenance, newest_unknown, seal_check
from synth_audit.run.seeds import Salt
from synth_audit.store.evidence import Evidence, evidence_of, sha256_of
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.files import hash_parquet
from synth_audit.store.journal import read_journal
from synth_audit.store.locate import LocatedEvidence, purged_entry
from synth_audit.store.salts import read_salt
from synth_audit.verdict import judge as gate
from synth_audit.verdict.suite import parse_suite

__all__ = ["Check", "purged_check", "refuse_foreign", "verify", "verify_filed"]


def verify(
    evidence: Evidence, hashes: Mapping[str, str] | None = None, salt: Salt | None = None
) -> tuple[Check, ...]:
    """Recompute what the evidence claims.

    The digest shows damage and careless edits. It is no signature: who can rewrite the file can
    rewrite the digest. What was written where reviewers cannot write is compared by
    :class:`synth_audit.pipeline.provenance.Provenance`.

    Args:
        hashes: content hashes, see :func:`synth_audit.table.content_hash.fingerprint`, of any of ``source``,
            ``train``, ``control``, ``synthetic`` that are still at hand.
        salt: of the workspace, which hashes of tables that never left take; without it only a candidate that
            passed can be compared, and the others are told of as not checkable here.
    """
    known = dict(hashes or {})
    # Who has the salt has the workspace too, and names what it lacks; others shall see what is left open.
    names = [*known, *(n for n in evidence.tables if salt is None and n not in known)]
    return (
        Check("digest of the evidence", evidence.intact, evidence.digest),
        Check("hash of the plan", sha256_of(evidence.plan) == evidence.plan_sha256, evidence.plan_sha256),
        Check(
            "hash of the gate suite",
            sha256_of(evidence.gates.suite) == evidence.gates.suite_sha256,
            evidence.gates.suite_sha256,
        ),
        _verdict(evidence),
        *_commitment(evidence, salt),
        *(_table(evidence, name, known.get(name), salt) for name in names),
    )


def verify_filed(
    found: LocatedEvidence, hashes: Mapping[str, str] | None = None, salt: Salt | None = None
) -> tuple[Evidence, tuple[Check, ...]]:
    """Evidence of a file or folder, with all that can be checked of it where it lies.

    Args:
        hashes, salt: as in :func:`verify`; tables in the restricted folder are hashed there.

    Raises:
        DataError: there is no evidence, it cannot be read as such, or the salt given is not the one it names.
    """
    filed = found.filed()
    if filed is None:
        content, seal_beside = found.content()
        evidence = evidence_of(content, found.file)
        seal = seal_check(content, seal_beside, needed=True)
        around: tuple[Check, ...] = (
            _recorded(found, evidence, content),
            *([seal] if seal else []),
            newest_unknown(),
        )
    else:
        evidence = evidence_of(filed.evidence_file, found.file)
        around = Provenance.of(filed, evidence, found.workspace, turned=found.turned).checks()
    if salt is not None:
        refuse_foreign(salt, evidence)
    at_hand = {**_beside(found, evidence), **(hashes or {})}
    return evidence, (*verify(evidence, at_hand, salt or _salt_beside(found)), *around)


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


def _recorded(found: LocatedEvidence, evidence: Evidence, content: bytes) -> Check:
    """What the journal knows of evidence outside any audit's folder; one put into ``review/`` is unknown."""
    journal = read_journal(found.workspace) if found.workspace is not None else None
    if journal is None:
        return Check(RECORDED, None, "the file lies by itself")
    entry = journal.entry(evidence.digest)
    if entry is None or not entry.names(content):
        return Check(RECORDED, False, "it is not what was audited in this workspace")
    return Check(RECORDED, True, f"attempt {entry.number} on this table")


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


def _salt_beside(found: LocatedEvidence) -> Salt | None:
    """The salt of the evidence's workspace, as far as this reader may see it."""
    if found.workspace is None or not os.path.isfile(found.workspace.salt):
        return None
    return read_salt(found.workspace.salt)


@dataclass(frozen=True)
class _Judged:
    """What must be the same of a gate, whatever words a version has for it."""

    gate: str
    result: str
    blocking: bool
    measurement: MeasurementId | None
    every: bool
    fitness: bool
    bound: str
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, result: GateResult) -> _Judged:
        """Leave the words out, and of numbers the digits that differ between machines.

        Where all measurements of a quantity were judged, the worst of equals may be another one.
        """
        about = result.measurement
        numbers = (result.value, result.low, result.high, result.level, result.minimum, result.maximum)
        return cls(
            result.gate,
            str(result.result),
            result.blocking,
            about.whole if about is not None and result.every else about,
            result.every,
            result.fitness,
            result.bound,
            tuple("" if x is None else f"{x:.12g}" for x in numbers),
        )


def _verdict(evidence: Evidence) -> Check:
    what = "verdict, judged anew"
    try:
        suite = parse_suite(evidence.gates.suite, where="evidence", installed=False)
        judged = gate.judge_again(suite, evidence)
    except GateError as error:
        return Check(what, False, f"the suite cannot be judged: {error.what}")
    found, recorded = ([_Judged.of(r) for r in report.results] for report in (judged, evidence.gates))
    answers = (judged.verdict, judged.fitness) == (evidence.verdict, evidence.fitness)
    same = answers and found == recorded and len(judged.blockers) == len(evidence.gates.blockers)
    return Check(what, same, f"{judged.verdict}; fit for purpose: {judged.fitness}")


def _commitment(evidence: Evidence, salt: Salt | None) -> tuple[Check, ...]:
    if salt is None or not evidence.salt_commitment:
        return ()
    return (
        Check(
            "commitment to the salt", salt.commitment == evidence.salt_commitment, evidence.salt_commitment
        ),
    )


def _table(evidence: Evidence, name: str, found: str | None, salt: Salt | None) -> Check:
    """Compare a table with every hash of it that can be made again here."""
    what, recorded = f"content of {name}", evidence.tables.get(name)
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
