"""The stages in a row. Each reads the values before it from the workspace, so each can run alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.inference import infer_schema
from synth_audit.core.plan import Plan
from synth_audit.core.plugin import PrivacyCertificate
from synth_audit.core.registry import config_of
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table, read_table
from synth_audit.workflow import gate
from synth_audit.workflow.evidence import (
    Evidence,
    GeneratorRecord,
    TableRecord,
    column_records,
    installed_versions,
    read_evidence,
)
from synth_audit.workflow.inspection import inspect
from synth_audit.workflow.measurements import measurement_frame
from synth_audit.workflow.records import SplitRecord, SyntheticRecord
from synth_audit.workflow.release import ReleaseRecord, release, release_target
from synth_audit.workflow.runner import Progress, run_audits, silent
from synth_audit.workflow.split import split
from synth_audit.workflow.workspace import Workspace, read_parquet, write_parquet, write_text

MADE_ELSEWHERE = GeneratorRecord(
    name="external",
    config={},
    certificate=PrivacyCertificate("none", "the table was made elsewhere; nothing is known of how"),
)


def split_table(plan: Plan, workspace: Workspace) -> SplitRecord:
    """Pull the source and set control rows aside.

    Raises:
        PlanError: the suite has a blocking gate on an audit that the plan does not run, or the release
            could not be written or would replace the source.
        DataError: the source cannot be read or split.
    """
    _refuse_hopeless(plan)
    data = plan.build_source().read(plan.base)
    schema = infer_schema(data, plan.columns, where="source")
    source = read_table(data, schema, where="source")
    if source.n_rows < 2:
        raise DataError(
            "the source has a single row",
            where="source",
            expected="rows for both train and control",
            fix="check the query or file that the plan's source reads",
        )
    train, control = split(source, plan.split.control, plan.seed)
    train, control = _anchor(train.data, control.data, plan)
    record = SplitRecord(
        plan_sha256=plan.digest,
        source=TableRecord.of(source),
        train=TableRecord.of(train),
        control=TableRecord.of(control),
        columns=column_records(train.schema),
        warnings=inspect(train, control, plan.suppression),
    )
    workspace.prepare()
    write_parquet(workspace.train, train.data, private=True)
    write_parquet(workspace.control, control.data, private=True)
    record.write(workspace.split_record)
    return record


def make_synthetic(plan: Plan, workspace: Workspace, progress: Progress = silent) -> SyntheticRecord:
    """Fit the generator on train and draw the candidate."""
    data = read_parquet(workspace.train, made_by="split")
    train = read_table(data, infer_schema(data, plan.columns), where="train")
    generator = plan.build_generator()
    assert plan.generator is not None
    name = plan.generator.name
    start = time.perf_counter()
    progress(f"fit {name}", 0, 2)
    model = generator.fit(train.released_only(), child_rng(plan.seed, "generator", name, "fit"))
    progress(f"sample {name}", 1, 2)
    drawn = model.sample(plan.rows or train.n_rows, child_rng(plan.seed, "generator", name, "sample"))
    progress(name, 2, 2)
    synthetic = read_table(drawn.data, train.schema, where="synthetic", partial=True)
    record = SyntheticRecord(
        plan_sha256=plan.digest,
        train=TableRecord.of(train),
        table=TableRecord.of(synthetic),
        generator=GeneratorRecord(name, config_of(generator), model.certificate),
        columns=column_records(synthetic.schema.released_only()),
        seconds=round(time.perf_counter() - start, 3),
    )
    write_parquet(workspace.synthetic, synthetic.data, private=True)
    record.write(workspace.synthetic_record)
    return record


def audit_synthetic(plan: Plan, workspace: Workspace, progress: Progress = silent) -> Evidence:
    """Audit and judge the candidate; write the evidence and the measurements."""
    splitting = SplitRecord.read(workspace.split_record)
    making = SyntheticRecord.read(workspace.synthetic_record)
    train, control = _anchor(
        read_parquet(workspace.train, made_by="split"),
        read_parquet(workspace.control, made_by="split"),
        plan,
    )
    data = read_parquet(workspace.synthetic, made_by="synthetic")
    synthetic = read_table(data, train.schema, where="synthetic", partial=True)
    _refuse_stale(plan, splitting, making, (train, control, synthetic))
    subject = Subject(train, control, synthetic, plan.build_generator(), plan.level, plan.suppression)
    evidence = examine(
        plan,
        subject,
        making.generator,
        source=splitting.source,
        warnings=_about_external(making.generator),
        timings={"generate": making.seconds},
        progress=progress,
    )
    keep(evidence, workspace)
    return evidence


def examine(
    plan: Plan,
    subject: Subject,
    generator: GeneratorRecord,
    *,
    source: TableRecord | None = None,
    warnings: tuple[str, ...] = (),
    timings: Mapping[str, float] | None = None,
    progress: Progress = silent,
) -> Evidence:
    """Audit and judge three tables at hand: the one place where evidence is made."""
    suite = gate.load_suite(plan.gates, plan.base)
    gate.check_suite(suite)
    outcomes, seconds = run_audits(plan.build_audits(), subject, plan.seed, progress)
    checks = gate.check_table(suite, subject.synthetic)
    gates = gate.judge(suite, outcomes, checks)
    tables = {"train": subject.train, "control": subject.control, "synthetic": subject.synthetic}
    records = {name: TableRecord.of(table) for name, table in tables.items() if table is not None}
    return Evidence(
        table=plan.name,
        plan=plan.plain(),
        plan_sha256=plan.digest,
        seed=plan.seed,
        level=plan.level,
        suppression=plan.suppression,
        columns=column_records(subject.schema),
        tables=({"source": source} if source else {}) | records,
        generator=generator,
        outcomes=outcomes,
        table_checks=checks,
        gates=gates,
        verdict=gates.verdict,
        warnings=(*warnings, *inspect(subject.train, subject.control, plan.suppression)),
        versions=installed_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        timings=dict(timings or {}) | seconds,
    ).sealed()


def keep(evidence: Evidence, workspace: Workspace) -> None:
    """Write evidence and measurements into the review folder, and drop the report of an older audit."""
    workspace.prepare_review()
    workspace.report.unlink(missing_ok=True)
    write_parquet(workspace.measurements, measurement_frame(evidence))
    write_text(workspace.evidence, evidence.to_json())


def release_synthetic(plan: Plan, workspace: Workspace) -> ReleaseRecord:
    """Release the audited bytes, or refuse; see :func:`synth_audit.workflow.release.release`."""
    evidence = read_evidence(workspace.evidence)
    return release(plan, evidence, read_parquet(workspace.synthetic, made_by="synthetic"))


def produce(plan: Plan, workspace: Workspace, progress: Progress = silent) -> Evidence:
    """All stages up to the evidence; the report and the release are further steps."""
    progress("pull and split", 0, 1)
    split_table(plan, workspace)
    progress("pull and split", 1, 1)
    make_synthetic(plan, workspace, progress)
    return audit_synthetic(plan, workspace, progress)


def anchored_subject(train: pa.Table, control: pa.Table | None, synthetic: pa.Table, plan: Plan) -> Subject:
    """Three tables made elsewhere as a subject; the schema is read off train and the plan."""
    known, other = _anchor(train, control, plan)
    candidate = read_table(synthetic, known.schema, where="synthetic", partial=True)
    return Subject(known, other, candidate, None, plan.level, plan.suppression)


def _anchor(train: pa.Table, control: pa.Table | None, plan: Plan) -> tuple[Table, Any]:
    schema = infer_schema(train, plan.columns)
    known = read_table(train, schema, where="train")
    if known.n_rows < 2:
        raise DataError(
            "train has a single row",
            where="train",
            expected="at least two rows",
            fix="check the file, or set fewer rows aside",
        )
    return known, None if control is None else read_table(control, schema, where="control")


def _about_external(generator: GeneratorRecord) -> tuple[str, ...]:
    if generator.name != MADE_ELSEWHERE.name:
        return ()
    return (
        "the table was made elsewhere before this split: if control rows were among those it was made from, "
        "every comparison with control understates the risk",
    )


def _refuse_hopeless(plan: Plan) -> None:
    """A mistake in suite or release, or a gate without its audit, should show before a fit, not after it."""
    if plan.release is not None:
        release_target(plan)
    suite = gate.load_suite(plan.gates, plan.base)
    planned = plan.build_audits()
    for wanted in suite.measured:
        if wanted.blocking and wanted.limit and (audit := wanted.limit.audit) not in planned:
            raise PlanError(
                f"the gate {wanted.id!r} needs the audit {audit!r}, which the plan does not run",
                where="audits",
                expected=f"`{audit}` among the audits; without its number no table passes this gate",
                fix=f"add {audit!r} to `audits`, or name a suite without that gate in `gates`",
            )


def _refuse_stale(
    plan: Plan, splitting: SplitRecord, making: SyntheticRecord, tables: tuple[Table, Table, Table]
) -> None:
    """An audit must describe one run of one plan: nothing may have changed between the stages."""
    train, control, synthetic = (TableRecord.of(table) for table in tables)
    stale = ""
    if (plan.digest, train, control) != (splitting.plan_sha256, splitting.train, splitting.control):
        stale = "split"
    elif (plan.digest, train, synthetic) != (making.plan_sha256, making.train, making.table):
        stale = "synthetic"
    if stale:
        raise DataError(
            f"the output of the {stale} stage does not belong to this plan and data",
            where="workspace",
            expected="all stages run with the same plan, in order",
            fix=f"run the {stale} stage and those after it again",
        )
