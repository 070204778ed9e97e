"""Signs the outcome of an audit as an in-toto statement, which is checked without this program.

The form is Statement v1 in a DSSE envelope. ``docs/attestations.md`` has each field, and a script that checks
signature and file.
"""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from synth_audit.errors import DataError, NotAsAudited, ReleaseRefused
from synth_audit.pipeline.approval import signer_name
from synth_audit.pipeline.verify import verify
from synth_audit.store.approvals import key_fingerprint, public_text, read_key
from synth_audit.store.evidence import Evidence
from synth_audit.store.files import sha256_of_bytes
from synth_audit.store.locate import LocatedEvidence, checked_evidence

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
        content: content hash of its rows, see :func:`synth_audit.table.content_hash.fingerprint`.
    """

    name: str
    size: int
    sha256: str
    content: str


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
    file: ReleasedFile | None = None,
    now: datetime | None = None,
) -> Attestation:
    """Sign the outcome of an audit.

    The subject of a pass is the release: its content hash, and the SHA-256 of ``file``. A plain hash of a
    refused candidate would confirm guesses of its cells, so that the subject of any other verdict is the
    evidence file.

    Raises:
        DataError: the evidence was altered or does not follow from itself, or the key cannot be used.
        NotAsAudited: the file does not hold the rows that passed.
        ReleaseRefused: a file is named, and the evidence does not pass.
        PlanError: the name is no line of text.
    """
    evidence = checked_evidence(found)
    faults = [check.what for check in verify(evidence) if check.holds is False]
    if faults:
        raise DataError(
            f"the evidence does not hold: {faults[0]}",
            where=str(found.file),
            expected="evidence whose hashes and verdict can be recomputed",
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
    if file is not None and file.content != passed:
        raise NotAsAudited(
            "the file does not hold the rows that passed",
            where=file.name,
            expected="the released file",
            fix="name the file that `synth-audit release` wrote, or the evidence that it rests on",
        )
    signer, private = signer_name(by), read_key(key)
    signed = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    if passed is None:
        content = found.filed(whole=False).evidence_file
        subject = {"name": found.file.name, "digest": {"sha256": sha256_of_bytes(content)}}
    elif file is None:
        subject = {"name": evidence.table, "digest": {TABLE_DIGEST: passed}}
    else:
        subject = {"name": file.name, "digest": {"sha256": file.sha256, TABLE_DIGEST: passed}}
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
    return Attestation(evidence, file, signer, signed, json.dumps(envelope, indent=2).encode() + b"\n")
