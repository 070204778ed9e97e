"""Reads evidence for whoever shows or judges it, and refuses what was altered as far as that can be told."""

from __future__ import annotations

from synth_audit.core.errors import Altered
from synth_audit.store.evidence import Evidence, evidence_of
from synth_audit.store.filed_audit import EVIDENCE
from synth_audit.store.journal import read_journal
from synth_audit.store.locate import LocatedEvidence, locate_newest
from synth_audit.store.untrusted_file import sha256_of_bytes
from synth_audit.store.workspace import Workspace


def newest_evidence(workspace: Workspace) -> Evidence:
    """The evidence that was filed last, if it still is what was filed.

    Raises:
        DataError: there is none. Altered: it was; see :func:`checked_evidence`.
    """
    return checked_evidence(locate_newest(workspace))


def checked_evidence(found: LocatedEvidence) -> Evidence:
    """The evidence at a place; in its workspace it must be what was filed there, byte for byte.

    A page about forged numbers would carry the name of this program, whatever ``verify`` says of them.

    Raises:
        DataError: it cannot be read.
        Altered: its digest is not its own, or the journal at hand has it otherwise or knew of a newer one
            than the pointer that led here named.
    """
    content, _ = found.content()
    evidence = evidence_of(content, found.file)
    if not evidence.intact:
        raise _altered(found, "evidence whose digest matches its content")
    journal = read_journal(found.workspace) if found.workspace is not None else None
    if journal is not None:
        entry = journal.entry(evidence.digest)
        named = found.folder is None or found.folder.digest == evidence.digest
        if entry is None or not named or entry.files.get(EVIDENCE) != sha256_of_bytes(content):
            raise _altered(found, "what the journal in the restricted folder knows")
    if found.turned:
        raise _turned(found)
    return evidence


def _turned(found: LocatedEvidence) -> Altered:
    return Altered(
        "the pointer in the review folder does not name the newest audit",
        where=str(found.file),
        expected="the audit that the journal in the restricted folder has as the newest",
        fix="run the audit again, or name the folder of the audit that is meant; `synth-audit verify` tells "
        "which one is the newest",
    )


def _altered(found: LocatedEvidence, expected: str) -> Altered:
    return Altered(
        "the evidence was altered after the audit",
        where=str(found.file),
        expected=expected,
        fix="run the audit again; `synth-audit verify` shows what does not agree",
    )
