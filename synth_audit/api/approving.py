"""Signatures of people under evidence."""

from __future__ import annotations

from datetime import date
from pathlib import Path


def new_key(path: str | Path) -> str:
    """Make a private Ed25519 key in a new file of mode 0600.

    Returns:
        The public key, as a plan names it under ``release.approvers``.

    Raises:
        DataError: something is there already, or it cannot be written.
    """
    from synth_audit.store.approvals import new_key as make

    return make(Path(path))


def approve(evidence: str | Path, *, by: str, key: str | Path, until: date, note: str = "") -> Path:
    """Sign evidence that passed; the approval is put beside it and the certificate rendered anew.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.
        by: the person, as the plan names them. key: file of the private key.
        until: last day, in UTC, on which a release may rest on it.

    Returns:
        Where the approval is.

    Raises:
        ReleaseRefused: the evidence does not pass.
        PlanError: the plan does not know this person with this key.
        DataError: evidence or key cannot be used.
    """
    from synth_audit.pipeline.approval import approve as sign
    from synth_audit.report import file_certificate
    from synth_audit.store.locate import locate_evidence

    found = locate_evidence(Path(evidence))
    _, path = sign(found, by=by, key=Path(key), until=until, note=note)
    file_certificate(found)
    return path
