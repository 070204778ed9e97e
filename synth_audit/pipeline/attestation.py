"""Signs the outcome of an audit as an in-toto statement, which is checked without this program.

The form is Statement v1 in a DSSE envelope. ``docs/attestations.md`` has each field, and a script that checks
signature and file.
"""

import base64
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from synth_audit.errors import DataError, NotAsAudited, ReleaseRefused
from synth_audit.execution.seeds import Salt
from synth_audit.files import temporary_folder
from synth_audit.pipeline.approval import refuse_unless_approved, release_terms, signer_name
from synth_audit.pipeline.release import as_audited
from synth_audit.pipeline.verify import RECORDED, SEALED, Provenance, verify
from synth_audit.plan.plan import Plan
from synth_audit.plugins.source import Target, read_whole
from synth_audit.store.approvals import approvals_in, key_fingerprint, public_text, read_key
from synth_audit.store.evidence import Evidence
from synth_audit.store.files import sha256_of_bytes
from synth_audit.store.locate import LocatedEvidence
from synth_audit.store.salts import read_salt
from synth_audit.table.content_hash import fingerprint
from synth_audit.table.storage_types import plain

PREDICATE_TYPE = "urn:synth-audit:attestation:1"
"""What the predicate's fields mean. Another meaning of a field takes another number."""

_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"

TABLE_DIGEST = "synthAuditTable"
"""Name of the content hash among the digests of a release. It is no hash of a file."""


@dataclass(frozen=True)
class ReleasedFile:
    """A file with the rows of a release.

    Attributes:
        name: without its folder. size: in bytes. sha256: of its bytes.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Attestation:
    """A signed statement about an audit.

    Attributes:
        by: the person who signed. signed: when, ISO 8601 in UTC.
        envelope: content of its file.
    """

    evidence: Evidence
    file: ReleasedFile | None
    by: str
    signed: str
    envelope: bytes


def attest(
    found: LocatedEvidence,
    *,
    by: str,
    key: Path,
    file: Path | None = None,
    now: datetime | None = None,
) -> Attestation:
    """Sign the outcome of an audit.

    The subject of a pass is the release: its content hash, and the SHA-256 of ``file``. A plain hash of a
    refused candidate would confirm guesses of its cells, so that the subject of any other verdict is the
    evidence file.

    Raises:
        DataError: `synth-audit verify` finds the evidence at fault, or nothing vouches for it. Or file or key
            cannot be used.
        NotAsAudited: the file is not the one that a release writes.
        ReleaseRefused: a file is named, and the evidence does not pass. Or a pass is over, or waits for
            approval.
        PlanError: the name is no line of text.
    """
    filed, now = found.filed(), now or datetime.now(UTC)
    evidence = filed.evidence
    provenance = Provenance.of(filed, evidence, found.workspace, turned=found.turned)
    checks = (*verify(evidence), *provenance.checks())
    faults = [check.sentence for check in checks if check.holds is False]
    if not any(check.holds for check in checks if check.what in (RECORDED, SEALED)):
        faults.append("neither the journal of the table nor a seal vouches for it")
    if faults:
        raise DataError(
            f"the evidence does not hold: {faults[0]}",
            where=str(found.file),
            expected="evidence as it was filed, whose verdict can be recomputed and was not refused since",
            fix="`synth-audit verify` shows what does not agree; run the audit again",
        )
    passed = evidence.tables["synthetic"].sha256 if evidence.passed else None
    if file is not None and passed is None:
        raise ReleaseRefused(
            f"there is no release to attest: the verdict is {evidence.verdict}",
            where=str(found.file),
            expected="no file, or evidence that passes",
            fix="leave --file out: a refusal is attested by the hash of its evidence alone",
        )
    if passed is not None:
        approvals = approvals_in(filed.files)
        refuse_unless_approved(release_terms(evidence), evidence, approvals, found.journal, now)
    place = None if found.workspace is None else found.workspace.salt
    salt = read_salt(place) if place is not None and os.path.isfile(place) else None
    released = None if file is None else _released_file(file, evidence, salt)
    signer, private = signer_name(by), read_key(key)
    signed = now.isoformat(timespec="seconds")
    if passed is None:
        subject = {"name": found.file.name, "digest": {"sha256": sha256_of_bytes(filed.evidence_file)}}
    elif released is None:
        subject = {"name": evidence.table, "digest": {TABLE_DIGEST: passed}}
    else:
        subject = {"name": released.name, "digest": {"sha256": released.sha256, TABLE_DIGEST: passed}}
    statement = {
        "_type": _STATEMENT_TYPE,
        "subject": [subject],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "table": evidence.table,
            "verdict": str(evidence.verdict),
            "fitness": str(evidence.fitness),
            "suite": {"name": evidence.gates.suite_name, "sha256": evidence.gates.suite_sha256},
            "evidence": {"format": evidence.schema_version, "digest": evidence.digest},
            "plan": {"sha256": evidence.plan_sha256},
            "build": evidence.versions.get("synth-audit", ""),
            "audited": evidence.created,
            "signed": signed,
            "signer": signer,
        },
    }
    payload, kind = json.dumps(statement, sort_keys=True).encode(), _PAYLOAD_TYPE.encode()
    # The bytes that DSSE signs, with which no payload passes for one of another type.
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    envelope = {
        "payloadType": _PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {
                "keyid": key_fingerprint(public_text(private)),
                "sig": base64.b64encode(private.sign(message)).decode(),
            }
        ],
    }
    return Attestation(evidence, released, signer, signed, json.dumps(envelope, indent=2).encode() + b"\n")


def _released_file(file: Path, evidence: Evidence, salt: Salt | None) -> ReleasedFile:
    """Describe a file, which must be byte for byte what a release of the audited rows writes.

    The order of rows, unused values and bytes between the columns of another file were not audited.

    Args:
        salt: the rows of a release are ordered under it; see :func:`synth_audit.pipeline.release.as_audited`.
    """
    with temporary_folder() as folder:
        copy = Path(folder, f"copy{file.suffix}")  # which nobody alters between hash and reading
        try:
            if not file.is_file():
                raise FileNotFoundError
            shutil.copyfile(file, copy)
        except OSError as error:
            raise DataError(
                f"the file cannot be read ({type(error).__name__})",
                where=str(file),
                expected="the released file",
                fix="check the path and its permissions",
            ) from None
        size, sha256 = copy.stat().st_size, _sha256_of(copy)
        target = Plan.model_validate({"source": str(copy)}).build_source()
        rows = plain(read_whole(target, copy.parent), where=file.name)
        fault = "" if fingerprint(rows) == evidence.tables["synthetic"].sha256 else "other rows than passed"
        if not fault and isinstance(target, Target):
            target.write(as_audited(rows, evidence, salt), copy.parent)
        if not fault and (not isinstance(target, Target) or _sha256_of(copy) != sha256):
            fault = "the rows that passed, and not in the bytes of a release"
        if fault:
            raise NotAsAudited(
                f"the file holds {fault}",
                where=file.name,
                expected="the released file, byte for byte",
                fix="name the file that `synth-audit release` wrote, where its workspace with the salt is; "
                "or leave --file out",
            )
    return ReleasedFile(file.name, size, sha256)


def _sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
