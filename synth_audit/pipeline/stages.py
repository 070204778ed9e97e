"""The stages in a row. Each reads the values before it from the workspace, so each can run alone."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit import registry
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.examination.examine import run_examination, seed_of_draws
from synth_audit.execution import telemetry
from synth_audit.execution.context import SERIAL, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.files import temporary_folder
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import making
from synth_audit.pipeline import release as releasing
from synth_audit.pipeline import warnings as notices
from synth_audit.pipeline.coarsening import coarsening_of, refuse_uncounted, without_void_guarantee
from synth_audit.pipeline.making import Given
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Audit, RandomSplit, Subject
from synth_audit.store.evidence import (
    EarlierAudit,
    Evidence,
    GeneratorRecord,
    SplitRecord,
    SyntheticRecord,
    TableRecord,
    column_records,
    installed_versions,
)
from synth_audit.store.evidence_store import LARGEST_TABLE, evidence_store
from synth_audit.store.files import read_parquet, write_parquet, write_parts, write_table
from synth_audit.store.ledger import begin_attempt
from synth_audit.store.reports import enter_report, people_behind, refuse_spent
from synth_audit.store.salts import TrainingTable, known_salt, workspace_salt
from synth_audit.store.scratch import fit_checkpoint, held, in_use, journaled
from synth_audit.store.workspace import Workspace
from synth_audit.table.coarsening import BoundClipping
from synth_audit.table.table import Table, read_table
from synth_audit.verdict.criteria import decides
from synth_audit.verdict.judge import judge, measurement_frame
from synth_audit.verdict.privacy_budget import Promise
from synth_audit.verdict.suite import Suite, load_suite
from synth_audit.verdict.table_checks import check_buildable, check_table, fullness

MADE_ELSEWHERE = GeneratorRecord(
    name="external",
    config={},
    privacy=PrivacyAccount(guarantee=None, reason="the table was made elsewhere, and how is not known here"),
)
"""What is known of the generator of a table at hand."""


@dataclass(frozen=True, eq=False)
class Audited:
    """Evidence, which may be shown, and the positions of exposed training rows, which may not."""

    evidence: Evidence
    exposed: pa.Table

    def filed(
        self, workspace: Workspace, rows: Path | None = None, shared: pa.Table | None = None
    ) -> Evidence:
        """File it in a workspace; see :class:`synth_audit.store.evidence_store.EvidenceStore`.

        Args:
            rows: the file of the candidate that was audited, where the workspace has it.
            shared: what may be shared of a candidate made elsewhere; one too large is left out.

        Returns:
            The evidence as it is filed.
        """
        workspace.prepare()
        write_parquet(workspace.exposed, self.exposed, private=True)
        content = None if shared is None else _parquet(shared)
        if content is not None and len(content) > LARGEST_TABLE:
            content = None
        return evidence_store(workspace).put(self.evidence, measurement_bytes(self.evidence), rows, content)


def measurement_bytes(evidence: Evidence) -> bytes:
    """The measurements as a Parquet file."""
    return _parquet(measurement_frame(evidence))


def _parquet(table: pa.Table) -> bytes:
    into = pa.BufferOutputStream()
    pq.write_table(table, into)
    content: bytes = into.getvalue().to_pybytes()
    return content


def split_table(plan: Plan, workspace: Workspace) -> SplitRecord:
    """Pull the source and set control rows aside.

    Raises:
        PlanError: the release could not be written or would replace the source.
        GateError: the gate suite is wrong.
        DataError: the source cannot be read or split.
    """
    preflight(plan)
    salt = workspace_salt(workspace)
    written = plan.execution.write_real_rows
    with telemetry.stage("split", plan.name), in_use(workspace, write_rows=written):
        clipping = BoundClipping(plan.columns)
        source = making.pull_source(plan, clipping)
        making.refuse_drift(plan, workspace, source.schema)
        releasing.refuse_columns_of_target(plan, source.schema)
        coarsening_of(plan, source.schema)  # a mistake in it should show before a fit
        train, control = making.split_source(plan, source, salt)
        if plan.most_reports is not None:  # before a fit, whose privacy would be spent for nothing
            again = "" if plan.privacy is not None else plan.digest  # noise is new in every fit
            refuse_spent(people_behind((train, control), workspace), workspace, plan.most_reports, again)
        record = SplitRecord(
            plan_sha256=plan.digest,
            salt_commitment=salt.commitment,
            source=TableRecord.of(source, salt),
            train=TableRecord.of(train, salt),
            control=TableRecord.of(control, salt),
            columns=column_records(train.schema),
            warnings=(
                *notices.about_source(source.left_out, clipping.counts.items(), plan.suppression),
                *notices.inspect(train, control, plan.suppression),
            ),
            left_out=source.left_out,
            clipped=tuple(clipping.counts.items()),
            order="" if written else making.order_of(train, control, salt),
        )
        for path, table in ((workspace.train, train), (workspace.control, control)):
            if written:
                write_table(path, table)
        if not written:  # but by an earlier run
            making.delete_rows(workspace)
        record.write(workspace.split_record)
        return record


def make_synthetic(plan: Plan, workspace: Workspace, context: RunContext = SERIAL) -> SyntheticRecord:
    """Fit the generator on train and draw the candidate, by batches; see :func:`fit_plan`."""
    with (
        telemetry.stage("synthetic", plan.name),
        in_use(workspace, write_rows=plan.execution.write_real_rows) as scratch,
        temporary_folder(scratch) as name,
    ):
        context = replace(context, scratch=scratch)
        folder, salt = Path(name), known_salt(workspace)
        train = making.training_rows(plan, workspace, folder)
        refuse_uncounted(plan, workspace, train, salt)
        start = time.perf_counter()
        with fit_checkpoint(workspace, plan.digest, TableRecord.of(train, salt).hmac) as checkpoint:
            made = making.fit_plan(plan, train, salt, context, making.spending_ledger(workspace), checkpoint)
            write_parts(workspace.synthetic, made.batches(folder))
        context.progress(made.fitted.name, 2, 2)
        synthetic = making.read_candidate(workspace.synthetic, train.schema, folder)
        record = SyntheticRecord(
            plan_sha256=plan.digest,
            train=TableRecord.of(train, salt),
            table=TableRecord.of(synthetic, salt),
            generator=made.record,
            columns=column_records(synthetic.schema.released_only()),
            seconds=round(time.perf_counter() - start, 3),
        )
        record.write(workspace.synthetic_record)
    return record


def audit_synthetic(plan: Plan, workspace: Workspace, context: RunContext = SERIAL) -> Evidence:
    """Audit and judge the candidate; write the evidence and the measurements."""
    # Held, as another run may make another candidate meanwhile.
    with (
        in_use(workspace, write_rows=plan.execution.write_real_rows) as scratch,
        held(workspace.synthetic, workspace) as rows,
        temporary_folder(scratch) as folder,
    ):
        context = replace(context, scratch=scratch)
        made = making.MadeCandidate.of(plan, workspace, rows, Path(folder))
        refuse_uncounted(plan, workspace, made.train, made.salt)
        return attempt(
            plan,
            workspace,
            subject_of(plan, made.train, made.control, made.synthetic),
            made.making.generator,
            context,
            made.salt,
            rows=rows,
            source=made.splitting.source,
            warnings=(
                *notices.about_external(made.making.generator),
                *notices.about_source(made.splitting.left_out, made.splitting.clipped, plan.suppression),
            ),
            timings={"generate": made.making.seconds},
        )


def attempt(
    plan: Plan,
    workspace: Workspace,
    subject: Subject,
    generator: GeneratorRecord,
    context: RunContext,
    salt: Salt,
    *,
    rows: Path | None = None,
    warnings: tuple[str, ...] = (),
    **examined: Any,
) -> Evidence:
    """Examine three tables as an attempt of a workspace, entered before anything is attacked, and file it.

    Args:
        rows: the file of the candidate; None for one made elsewhere, whose audits draw by what the account
            keeps for the training table, and of which a pass leaves a file to share.
        examined: more of what :func:`examine` takes.

    Returns:
        The evidence as it is filed.
    """
    suite = load_suite(plan.gates, plan.base).sha256
    content = subject.synthetic.fingerprint.encode()
    candidate = salt.digest(content)
    people = people_behind((subject.train, subject.control), workspace)
    standing = enter_report(people, workspace, plan=plan.digest, candidate=candidate, most=plan.most_reports)
    number, head, earlier = begin_attempt(workspace, plan=plan.digest, candidate=candidate, suite=suite)
    warnings += tuple(notices.about_reports(standing))
    draws, ledger = salt, None
    if rows is None:
        table = TrainingTable.remembered(subject.train, salt)
        warnings += tuple(notices.about_draws(table, salt))
        if table is not None:
            draws, ledger = table.salt, table.ledger
            known = ledger.attempt(plan=plan.digest, candidate=draws.digest(content), suite=suite)
            earlier = ledger.other_settings(known)
    with telemetry.stage("audit", plan.name) as reported, journaled(context, workspace, salt) as resuming:
        reported.attempt = number
        audited = examine(
            plan, subject, generator, resuming, salt, draws=draws, warnings=warnings, **examined
        )
        listed = tuple(EarlierAudit(a.at, a.plan, a.suite, a.verdict, a.evidence) for a in earlier)
        found = replace(audited.evidence, attempt=number, ledger=head, earlier=listed)
        shared = _to_share(plan, subject, found, salt) if rows is None else None
        evidence = replace(audited, evidence=found).filed(workspace, rows, shared)
        reported.status = evidence.verdict
    if ledger is not None:
        ledger.judged(known, verdict=evidence.verdict, evidence=evidence.digest)
    return evidence


def _to_share(plan: Plan, subject: Subject, evidence: Evidence, salt: Salt) -> pa.Table | None:
    """The audited rows and values alone; None for what did not pass, or waits for more than a pass."""
    waits = plan.release is not None and (plan.release.approvals > 0 or plan.release.not_worse)
    if evidence.verdict is not Result.PASS or waits:
        return None
    names = subject.synthetic.names
    return releasing.as_audited(pa.table({n: subject.synthetic.column(n) for n in names}), evidence, salt)


def examine(
    plan: Plan,
    subject: Subject,
    generator: GeneratorRecord,
    context: RunContext,
    salt: Salt,
    *,
    draws: Salt | None,
    audits: Mapping[str, Audit] | None = None,
    source: TableRecord | None = None,
    warnings: tuple[str, ...] = (),
    timings: Mapping[str, float] | None = None,
) -> Audited:
    """Audit and judge three tables at hand: the one place where evidence is made.

    Args:
        salt: what the tables are hashed under.
        draws: the salt that the audits draw by; None where none is kept, so that draws can be predicted.
        audits: just these, instead of the plan's and those that its gates need.
    """
    making.refuse_seen_control(subject.train, subject.control)
    suite = load_suite(plan.gates, plan.base)
    check_buildable(suite.on_table)
    warnings += tuple(notices.about_examination(plan, suite, subject, predictable=draws is None))
    generator = without_void_guarantee(generator, plan)
    subject = replace(subject, guarantee=generator.privacy.guarantee, column_groups=generator.column_groups)
    cache = replace(context.cache, scope=salt.commitment)
    # The plan itself says that these columns may have missing values, or withholds values of them.
    nullable = {n for n, c in plan.columns.items() if c.nullable and "nullable" in c.model_fields_set}
    withheld = nullable | set(subject.coarsening.rules)
    with temporary_folder(context.scratch) as folder:
        ordered = subject.synthetic.in_content_order(Path(folder))
        seed = seed_of_draws(ordered.fingerprint, draws)
        context = replace(context, seed=seed, deadline=context.deadline.again(), cache=cache)
        examined = replace(subject, synthetic=ordered)
        with context.executor.beside(partial(check_table, suite, ordered)) as checking:
            found = run_examination(audits or audits_of(plan, suite), examined, plan.known_answer, context)
            context.progress("checks of the table, and the verdict", 0, 0)
            checks = (*checking(), fullness(subject.train, subject.synthetic, withheld))
    promise, target = Promise.of(plan.plain(), generator.privacy), subject.schema.target is not None
    gates = judge(suite, found.outcomes, checks, promise, target=target)
    tables = {"train": subject.train, "control": subject.control, "synthetic": subject.synthetic}
    public = {"synthetic"} if gates.verdict is Result.PASS else set()
    records = {n: TableRecord.of(t, salt, public=n in public) for n, t in tables.items() if t is not None}
    evidence = Evidence(
        table=plan.name,
        plan=plan.plain(),
        plan_sha256=plan.digest,
        seed=plan.seed,
        level=plan.corrected_level,
        suppression=plan.suppression,
        columns=column_records(subject.schema),
        tables=({"source": source} if source else {}) | records,
        generator=generator,
        outcomes=found.outcomes,
        table_checks=checks,
        gates=gates,
        verdict=gates.verdict,
        fitness=gates.fitness,
        salt_commitment="" if draws is None else salt.commitment,
        planting=found.planting,
        records=found.view,
        warnings=warnings,
        versions=installed_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        timings={**(timings or {}), **found.seconds},
    ).sealed()
    return Audited(evidence, found.exposed)


def audits_of(plan: Plan, suite: Suite) -> dict[str, Audit]:
    """The plan's audits, and with their defaults those that a blocking gate needs and the plan does not name.

    A gate brings its audit along: leaving an attack out of a plan must not make the release look safer,
    nor should it hold up a release that the attack would have let pass. A gate on fitness does so where
    fitness blocks, and where the plan names no audits.
    """
    audits = plan.build_audits()
    target = any("target" in spec.roles for spec in plan.columns.values())
    fit = [g for g in suite.measured if decides(g.fitness, target=target)]
    asked = fit if suite.fitness_blocks or not plan.audits else []
    wanted = {g.limit.audit for g in suite.measured if g.limit and (g.blocking or g in asked)}
    extra = {n: registry.build("audit", n, {}, where=f"audits.{n}") for n in sorted(wanted - set(audits))}
    return audits | extra


def release_synthetic(plan: Plan, workspace: Workspace) -> releasing.ReleaseRecord:
    """Release the audited bytes, or refuse; see :func:`synth_audit.pipeline.release.release`."""
    with (
        telemetry.stage("release", plan.name),
        in_use(workspace, write_rows=plan.execution.write_real_rows) as scratch,
        temporary_folder(scratch) as folder,
    ):
        rows = read_parquet(workspace.synthetic, made_by="synthetic", folder=Path(folder))
        return releasing.release(plan, workspace, rows)


def produce(plan: Plan, workspace: Workspace, context: RunContext = SERIAL) -> Evidence:
    """All stages up to the evidence; the report and the release are further steps."""
    context.progress("pull and split", 0, 1)
    split_table(plan, workspace)
    context.progress("pull and split", 1, 1)
    make_synthetic(plan, workspace, context)
    return audit_synthetic(plan, workspace, context)


def subject_of(plan: Plan, train: Table, control: Table | None, synthetic: Table) -> Subject:
    """Three tables of a run of this plan, with its generator and the terms that games fit it under."""
    rules = coarsening_of(plan, train.schema)
    if rules:
        schema, rules = rules.admitted(train.schema), rules.fixed_on(synthetic)
        train, synthetic = train.declared_as(schema), synthetic.declared_as(schema)
        control = control and control.declared_as(schema)
    return Subject(
        train,
        control,
        synthetic,
        plan.build_generator(),
        plan.corrected_level,
        plan.suppression,
        terms=plan.fit_terms,
        base=plan.base,
        random_split=RandomSplit(1 - plan.split.control, ours=True, apart=making.divides_equals(plan)),
        coarsening=rules,
    )


def anchored_subject(train: Given, control: Given | None, synthetic: Given, plan: Plan) -> Subject:
    """Three tables made elsewhere as a subject; the schema is read off train and the plan."""
    known, other = making.anchored(train, control, plan)
    candidate = read_table(synthetic, known.schema, where="synthetic", partial=True)
    chance = RandomSplit() if plan.split.made_elsewhere == "random" else None
    return Subject(known, other, candidate, None, plan.corrected_level, plan.suppression, random_split=chance)


def preflight(plan: Plan) -> None:
    """A mistake in suite, audits or release should show before a fit, not after it."""
    if plan.release is not None:
        releasing.release_target(plan)
    audits_of(plan, load_suite(plan.gates, plan.base))
