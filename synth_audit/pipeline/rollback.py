"""Puts the release before the last back in its place: the very rows that were audited then, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from synth_audit.core.errors import DataError, ReleaseRefused
from synth_audit.core.files import temporary_folder
from synth_audit.core.fingerprint import fingerprint
from synth_audit.core.plan import Plan
from synth_audit.core.transport import without_transport
from synth_audit.core.verdict import Result
from synth_audit.pipeline.approval import refuse_unless_approved
from synth_audit.pipeline.provenance import Provenance
from synth_audit.pipeline.release import (
    ReleaseRecord,
    as_audited,
    refuse_unless_filed,
    release_target,
    salt_of,
    written,
)
from synth_audit.pipeline.verify import verify
from synth_audit.store.approvals import approvals_in
from synth_audit.store.evidence import Evidence, evidence_of
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.filed_audit import FiledAudit
from synth_audit.store.journal import Journal, open_journal
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import read_parquet


def rollback(plan: Plan, workspace: Workspace) -> ReleaseRecord:
    """Release once more what was released before the last release, from the rows that were kept.

    A rollback leads one step back; the release that it undoes takes ``release`` to go out again.

    Raises:
        ReleaseRefused: the evidence of that release is not as it was filed, does not pass, or a later attempt
            on its rows did not; the rows are not the audited ones; it went to another place; its approvals
            do not suffice today.
        DataError: there was no release before the last, or writing failed; what is out there is intact.
    """
    target, home = release_target(plan), workspace.home
    with in_use(home) as scratch, temporary_folder(scratch) as folder, open_journal(home) as journal:
        filed = _filed_before(home, journal.now)
        evidence = evidence_of(filed.evidence_file, filed.where)
        found = Provenance.of(filed, evidence, home)
        _refuse_unless_sound(plan, evidence)
        refuse_unless_filed(replace(found, journal=journal.now))
        refuse_unless_approved(plan, evidence, approvals_in(filed.files), journal.now)
        store = evidence_store(home)
        rows = read_parquet(store.rows(evidence.digest), made_by="release", folder=Path(folder))
        if fingerprint(rows) != evidence.tables["synthetic"].sha256:
            raise _refused("the rows that were kept are not those that were audited")
        where = written(target, plan, as_audited(rows, evidence, salt_of(home, found)), journal, evidence)
        store.tell_release(journal.now)
        journal.write(replace(journal.now, releasing=None))
    return ReleaseRecord(where, evidence.tables["synthetic"])


def _filed_before(home: Workspace, journal: Journal) -> FiledAudit:
    if journal.previous is None:
        raise DataError(
            "there is no release before the last to go back to",
            where=str(home.journal),
            expected="two releases from this workspace, and no rollback since",
            fix="`synth-audit release` releases the newest audit, if it passes",
        )
    return evidence_store(home).get(journal.previous.digest)


def _refuse_unless_sound(plan: Plan, evidence: Evidence) -> None:
    """The evidence holds by itself, and is about a release to this place."""
    faults = [f"{c.what}: {c.detail}" for c in verify(evidence) if c.holds is False]
    if faults or evidence.verdict is not Result.PASS:
        raise _refused(faults[0] if faults else f"its verdict is {evidence.verdict}")
    if _place(without_transport(evidence.plan)) != _place(plan.plain()):  # it may be of an older build
        raise _refused("it went to another place than the plan names now")


def _place(plan: Mapping[str, Any]) -> tuple[object, ...]:
    """What a plan says of where its release goes."""
    release = plan.get("release") or {}
    return release.get("name"), release.get("config"), plan.get("connections")


def _refused(what: str) -> ReleaseRefused:
    return ReleaseRefused(
        f"rollback refused: {what}",
        where="the release before the last",
        expected="its evidence and its rows as they were released, to the same place",
        fix="`synth-audit verify` shows what does not agree; run the table again and release that",
    )
