"""Releases exactly the audited bytes, or refuses; puts an earlier release back, and several together."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from synth_audit.errors import DataError, EvidenceInsufficient, NotAsAudited, PlanError, ReleaseRefused
from synth_audit.execution.seeds import Salt
from synth_audit.files import place, temporary_folder
from synth_audit.findings.verdict import Result
from synth_audit.pipeline.approval import refuse_unless_approved
from synth_audit.pipeline.verify import NEWEST, OUT_THERE, RECORDED, SEALED, Provenance, verify
from synth_audit.pipeline.warnings import about_formulas
from synth_audit.plan.plan import Plan
from synth_audit.plugins.source import Locatable, Selective, Target, without_transport
from synth_audit.store.approvals import approvals_in
from synth_audit.store.evidence import Evidence, SplitRecord, TableRecord
from synth_audit.store.evidence_store import EvidenceStore, drop_rows, evidence_store
from synth_audit.store.files import read_parquet, write_parquet
from synth_audit.store.journal import OpenJournal, open_journal, read_journal
from synth_audit.store.locate import released_evidence, releases_of
from synth_audit.store.records import Released
from synth_audit.store.salts import known_salt
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import canonical, fingerprint
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table
from synth_audit.verdict.comparison import worse_gates
from synth_audit.verdict.gate_decision import first_few
from synth_audit.verdict.judge import judge_again
from synth_audit.verdict.suite import load_suite

_GATES_SHOWN = 5
"""Gates that a refusal names."""


def refuse_if_worse(plan: Plan, evidence: Evidence, workspace: Workspace) -> None:
    """Raise ``ReleaseRefused`` where the plan wants no worse release than the last, and this one is.

    What cannot be compared, as the evidence of the last release is gone, is refused too.
    """
    earlier = [r.digest for r in releases_of(workspace) if r.digest != evidence.digest]
    if plan.release is None or not plan.release.not_worse or not earlier:
        return
    before = released_evidence(workspace, earlier[-1])
    if before is None:
        raise _worse_refusal(
            "the evidence of the last release is not here", "bring its folder back, to compare with"
        )
    worse = worse_gates(evidence.gates.results, evidence.measurements, before.measurements)
    if worse:
        named = ", ".join(g.gate for g in worse[:_GATES_SHOWN]) + (", …" if len(worse) > _GATES_SHOWN else "")
        raise _worse_refusal(
            f"worse than the last release, beyond both intervals: {named}",
            "the certificate and `synth-audit compare` show both; release it on purpose without "
            "`release.not_worse`, which takes another audit",
        )


def _worse_refusal(what: str, fix: str) -> ReleaseRefused:
    return ReleaseRefused(
        f"release refused: {what}",
        where="release.not_worse",
        expected="no deciding number whose interval lies beyond that of the last release on the harmful side",
        fix=fix,
    )


@dataclass(frozen=True)
class ReleaseRecord:
    """Where the audited table went, and what its readers should beware of."""

    where: str
    table: TableRecord
    warnings: tuple[str, ...] = ()


def release(plan: Plan, workspace: Workspace, synthetic: pa.Table) -> ReleaseRecord:
    """Write the synthetic table to the plan's target if, and only if, the newest evidence allows these bytes.

    What is out there, and on which evidence, is then told by ``review/released.json``.

    Raises:
        ReleaseRefused: the evidence does not pass when judged anew, or waits for approval
            (``ApprovalMissing``).
        NotAsAudited: it was altered, is of another plan or suite, is about other bytes, or is not what was
            filed in this workspace.
        PlanError: the plan names no target, one that only reads, or the source itself.
        DataError: there is no evidence or no salt, or writing failed; what was released before is intact.
    """
    target = release_target(plan)
    store = evidence_store(workspace)
    filed = store.newest()
    try:
        evidence = filed.evidence
    except DataError:
        raise _refusal("the evidence is damaged, or of another version", "run the audit again") from None
    found = Provenance.of(filed, evidence, workspace)
    salt = salt_of(workspace, found)
    refuse_unless_allowed(plan, evidence, synthetic, salt)
    leaving = as_audited(synthetic, evidence, salt)
    refuse_unless_filed(found, pointers=False)
    workspace.home.prepare()
    with in_use(workspace), open_journal(workspace) as journal:
        newest = journal.now.newest.get(workspace.place)
        if newest is not None and newest != evidence.digest:  # the pointer may have been turned back
            raise _refusal(
                f"the newest audit is {newest}", "release what that one is about, or run the audit again"
            )
        # Once more, since another process may have filed or released something meanwhile.
        refuse_unless_filed(replace(found, journal=journal.now))
        refuse_unless_approved(plan, evidence, approvals_in(filed.files), journal.now)
        refuse_if_worse(plan, evidence, workspace)
        if not store.adopt(filed, journal.now, lambda kept: write_parquet(kept, leaving, private=True)):
            there = evidence_store(workspace.home).where(filed.digest)["evidence"].parent
            raise _refusal(f"{there} does not hold what was filed", "move it away, then release again")
        before = journal.now.released
        previous = journal.now.previous if before is None or before.digest == evidence.digest else before
        where = _write(target, plan, leaving, journal, store, evidence, previous)
        drop_rows(workspace.home, journal.now)
    return ReleaseRecord(where, evidence.tables["synthetic"], tuple(about_formulas(plan, synthetic)))


def _write(
    target: Target,
    plan: Plan,
    leaving: pa.Table,
    journal: OpenJournal,
    store: EvidenceStore,
    evidence: Evidence,
    previous: Released | None = None,
) -> str:
    """Write the rows and tell readers; a kill in between leaves a note in the journal that rows may be out.

    Args:
        previous: what a rollback leads to from now on.

    Returns:
        Where they went.

    Raises:
        PlanError: they would take the place of a file of the workspace, such as its salt.
        DataError: writing failed; what was there before is intact.
    """
    there, files = target.place(plan.base)[0], os.walk(journal.path.parent.parent)
    if any(there == place(Path(folder) / name) for folder, *_, names in files for name in names):
        raise PlanError(
            "the release would replace a file of the workspace",
            where="release",
            expected="a place of its own",
            fix="name another file under `release`",
        )
    before, sha256 = journal.now, evidence.tables["synthetic"].sha256
    assert sha256 is not None  # what passed has one
    out = Released(
        digest=evidence.digest,
        target=" / ".join(target.place(plan.base)),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        rows=leaving.num_rows,
        sha256=sha256,
    )
    journal.write(replace(before, releasing=out))
    try:
        where = target.write(leaving, plan.base)
    except DataError:  # nothing was written: targets write wholly or not at all, or say that they do not know
        journal.write(before)
        raise
    journal.write(replace(journal.now.with_release(replace(out, target=where)), previous=previous))
    store.tell_release(journal.now)
    journal.write(replace(journal.now, releasing=None))
    return where


def salt_of(workspace: Workspace, found: Provenance) -> Salt | None:
    """The workspace's salt; None where it was never made and a seal vouches for evidence from elsewhere."""
    sealed = any(check.holds for check in found.checks() if check.what == SEALED)
    return None if sealed and not os.path.lexists(workspace.salt) else known_salt(workspace)


def release_target(plan: Plan) -> Target:
    """The place a passing table goes to.

    Raises:
        PlanError: the plan names none, one that only reads, or one whose writing would replace the source,
            however the two are spelt.
    """
    target = plan.build_release()
    if not isinstance(target, Target):
        raise PlanError(
            "the release target cannot be written",
            where="release",
            expected="a source that can also write, such as duckdb or parquet",
            fix="name another `release` in the plan",
        )
    source: object = None if plan.source is None else plan.build_source()
    there = target.place(plan.base)
    if isinstance(source, Locatable) and source.place(plan.base)[: len(there)] == there:
        raise PlanError(
            "the release would replace the source itself",
            where="release",
            expected="another place than `source`; links and other spellings lead to the same one",
            fix="name another file or table under `release`",
        )
    return target


def refuse_columns_of_target(plan: Plan, schema: Schema) -> None:
    """Raise ``DataError`` for a column that the plan's target cannot hold, before anything is made for it."""
    target = None if plan.release is None else release_target(plan)
    if isinstance(target, Selective):
        target.refuse_types(pa.schema([(column.name, column.storage) for column in schema.features]))


def refuse_unless_allowed(plan: Plan, evidence: Evidence, synthetic: pa.Table, salt: Salt | None) -> None:
    """Raise ``ReleaseRefused``, or ``NotAsAudited``, with the first reason why these bytes may not leave.

    Args:
        salt: None on another machine, where the plain hash of what passed must do.
    """
    _need(evidence.intact, "the evidence was altered after the audit")
    same_plan = evidence.plan_sha256 == plan.digest
    _need(same_plan, "the evidence is of another plan", "run the audit again with this plan")
    suite = load_suite(plan.gates, plan.base)
    _need(evidence.gates.suite_sha256 == suite.sha256, "the gate suite has changed since the audit")
    judged = judge_again(suite, evidence)
    verdict = judged.verdict
    if verdict is not Result.PASS or evidence.verdict is not Result.PASS:
        passed = evidence.verdict is Result.PASS
        found, held = (verdict, judged.held) if passed else (evidence.verdict, evidence.gates.held)
        by = f", held by {first_few([g.gate for g in held.urgent_first], _GATES_SHOWN)}" if held else ""
        error = EvidenceInsufficient if found is Result.INSUFFICIENT else ReleaseRefused
        raise error(
            f"release refused: the verdict is {found}{by}",
            where="release",
            expected="evidence of this plan that passes",
            fix="the report says what to do about it",
        )
    _need(judged.fitness is evidence.fitness, "the recorded fitness does not follow from the gates")
    same_salt = salt is None or evidence.salt_commitment == salt.commitment
    _need(same_salt, "the evidence was made under another salt than this workspace has")
    content, audited = fingerprint(synthetic), evidence.tables.get("synthetic")
    keyed = salt.digest(content.encode()) if salt is not None else audited and audited.hmac
    if audited is None or (audited.sha256, audited.hmac) != (content, keyed):
        raise _refusal("these are not the bytes that were audited", "audit this table, then release it")


def refuse_unless_filed(found: Provenance, *, pointers: bool = True) -> None:
    """Raise ``NotAsAudited`` when the audit is not what was filed here, or a later attempt did not pass.

    It takes the journal to tell: a seal would vouch for an old pass for ever, whatever was found since.

    Args:
        pointers: compare them with the journal too; while others may write, both are not of one moment.
    """
    interrupted = found.journal is not None and found.journal.releasing is not None
    # After a kill the pointer may be older than what is out there; to release again puts it right.
    left_out = {OUT_THERE} if interrupted else set()
    checks = [c for c in found.checks() if c.what not in (left_out if pointers else {NEWEST, OUT_THERE})]
    for check in checks:
        if check.holds is False:
            raise _refusal(
                f"{check.what}: {check.detail}",
                "`synth-audit verify` shows all that does not agree; find out why, then run the audit again",
            )
    if not any(check.holds for check in checks if check.what == RECORDED):
        raise _refusal(
            "the journal of the table is not here, and nothing else knows of later attempts",
            "release where it was audited, or bring journal.json, ledger.jsonl and ledger.head from its "
            "restricted folder",
        )


def as_audited(synthetic: pa.Table, evidence: Evidence, salt: Salt | None) -> pa.Table:
    """What the audit saw of the table and nothing beside it; see :mod:`synth_audit.table.content_hash`.

    Args:
        salt: its rows are ordered under a key of it; None on another machine, where the order is public.
    """
    storage = {column.name: column.storage for column in evidence.columns}
    key = b"synth-audit release" if salt is None else salt.key("order of a release")
    leaving = canonical(synthetic, storage, key)
    if fingerprint(leaving) != evidence.tables["synthetic"].sha256:
        raise _refusal("the rows cannot be written without what the audit did not see", "cast odd types")
    return leaving


def _refusal(what: str, fix: str) -> NotAsAudited:
    return NotAsAudited(
        f"release refused: {what}",
        where="release",
        expected="untouched evidence of this plan that passes, about exactly these bytes",
        fix=fix,
    )


def _need(met: bool, what: str, fix: str = "run the audit again") -> None:
    if not met:
        raise _refusal(what, fix)


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
        if journal.now.previous is None:
            raise DataError(
                "there is no release before the last to go back to",
                where=str(home.journal),
                expected="two releases from this workspace, and no rollback since",
                fix="`synth-audit release` releases the newest audit, if it passes",
            )
        store = evidence_store(home)
        filed = store.get(journal.now.previous.digest)
        evidence = filed.evidence
        found = Provenance.of(filed, evidence, home)
        faults = [f"{c.what}: {c.detail}" for c in verify(evidence) if c.holds is False]
        if faults or evidence.verdict is not Result.PASS:
            raise _refused(faults[0] if faults else f"its verdict is {evidence.verdict}")
        if _place(without_transport(evidence.plan)) != _place(plan.plain()):  # it may be of an older build
            raise _refused("it went to another place than the plan names now")
        refuse_unless_filed(replace(found, journal=journal.now))
        refuse_unless_approved(plan, evidence, approvals_in(filed.files), journal.now)
        rows = read_parquet(store.rows(evidence.digest), made_by="release", folder=Path(folder))
        if fingerprint(rows) != evidence.tables["synthetic"].sha256:
            raise _refused("the rows that were kept are not those that were audited")
        leaving = as_audited(rows, evidence, salt_of(home, found))
        where = _write(target, plan, leaving, journal, store, evidence)
    return ReleaseRecord(where, evidence.tables["synthetic"])


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


def releases_together(
    workspace: Workspace, train: Table, control: Table
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Train, control, and the rows of the release that is out there, the one before and the newest candidate
    that passed, of these people.

    Rows of older releases are not kept. A release from other training rows is left out: its control rows may
    be training rows of another, so that nobody would be a stranger. The same rows twice tell no more.

    Raises:
        DataError: there are not two such releases, or what was kept is not what was audited.
    """
    journal = read_journal(workspace)
    split = SplitRecord.read(workspace.split_record)
    found: dict[str, pa.Table] = {}
    kept: list[str | None] = []
    if journal is not None:
        releases = (journal.released, journal.previous)
        kept = [journal.newest.get(workspace.place), *(r.digest for r in releases if r is not None)]
    for digest in filter(None, dict.fromkeys(kept)):
        evidence = released_evidence(workspace, digest)
        if evidence is None or evidence.verdict is not Result.PASS:
            continue
        if evidence.tables["train"].hmac == split.train.hmac:
            rows = read_parquet(evidence_store(workspace).rows(digest), made_by="audit")
            content = fingerprint(rows)
            if content != evidence.tables["synthetic"].sha256:
                raise _not_together("the rows that were kept are not those that were audited", workspace)
            found.setdefault(content, rows)
    if len(found) < 2:
        raise _not_together(
            f"{len(found)} of the releases that are kept come from the present training rows", workspace
        )
    tables = [*found.values()]
    if any(not table.schema.equals(tables[0].schema) for table in tables):
        raise _not_together("the releases have different columns", workspace)
    salt = known_salt(workspace)
    for real, record in ((train, split.train), (control, split.control)):
        if TableRecord.of(real, salt) != record:
            raise _not_together("the real rows are not those that the split left", workspace)
    known, other = (pa.table({name: real.column(name) for name in real.names}) for real in (train, control))
    return known, other, pa.concat_tables(tables)


def plan_of_all(plan: Plan) -> Plan:
    """The plan for auditing them: what was claimed or wished of one release is not of all."""
    left_out = dict.fromkeys(("source", "generator", "privacy", "release", "frontier", "rows"))
    return plan.model_copy(update={"name": f"{plan.name}-together", **left_out})


def _not_together(what: str, workspace: Workspace) -> DataError:
    return DataError(
        what,
        where=str(workspace.root),
        expected="two or more releases of the same training rows, with the same columns",
        fix="this is asked after a second release of the same people, from another plan or generator",
    )
