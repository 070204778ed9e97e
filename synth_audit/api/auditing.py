"""Audits: of tables at hand, of all that a plan says, and again under the same salt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from synth_audit.api.plans import PlanLike, as_plan, named_after, narrowed, workspace_of
from synth_audit.api.running import Running, run_context
from synth_audit.frames import as_arrow

if TYPE_CHECKING:
    from synth_audit.core.audit import Audit
    from synth_audit.core.plan import Plan
    from synth_audit.core.subject import Subject
    from synth_audit.frames import Frame
    from synth_audit.pipeline.check import Check
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.workspace import Workspace


def audit(
    train: Frame,
    control: Frame | None,
    synthetic: Frame,
    plan: PlanLike | None = None,
    *,
    only: tuple[str, ...] = (),
    seed: int | None = None,
    out: str | Path | None = None,
    **running: Unpack[Running],
) -> Evidence:
    """Audit a synthetic table made elsewhere and judge it by the plan's gates.

    Args:
        train: real rows the synthetic ones were made from. control: real rows of the same population
            that were kept from the generator; None leaves every audit that needs them not applicable.
        plan: a plan, its values, or its file; ``source``, ``split`` and ``generator`` are not used.
        only: run just these audits; the gates on the others then lack evidence.
        seed: instead of the plan's.
        out: folder to write ``review/`` (evidence, measurements, report) and ``restricted/`` (positions of
            exposed training rows, the salt that tables are hashed under) into; without it nothing is written,
            and of the tables only a synthetic one that passed can be compared with the evidence later.
        running: how the work is done, see :class:`Running`.

    Returns:
        The evidence; ``evidence.verdict`` says whether the table may leave.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    from synth_audit.core.salt import Salt
    from synth_audit.pipeline.coarsening import refuse_coarsening
    from synth_audit.pipeline.stages import MADE_ELSEWHERE, anchored_subject, examine
    from synth_audit.store.workspace import Workspace

    settled = narrowed(as_plan(plan if plan is not None else named_after(synthetic)), only, seed)
    refuse_coarsening(settled)
    with _room_for_files(out):
        subject = anchored_subject(
            as_arrow(train, "train"),
            None if control is None else as_arrow(control, "control"),
            as_arrow(synthetic, "synthetic"),
            settled,
        )
    warnings = _about_formulas(settled, subject, synthetic)
    audits = settled.build_audits() if only else None
    if out is not None:
        return _filed(settled, subject, audits, warnings, Workspace(Path(out)), running)
    with run_context(settled, **running) as context:
        return examine(
            settled,
            subject,
            MADE_ELSEWHERE,
            context,
            Salt.fresh(),
            salted=False,
            audits=audits,
            warnings=warnings,
        ).evidence


@contextmanager
def _room_for_files(out: str | Path | None) -> Iterator[None]:
    """Let the rows of large files be laid out and mapped: in the workspace if it is there, else in the
    system's place for temporary files. What lies there has no name, and goes when nobody holds it."""
    from synth_audit.core.files import scratch_in, temporary_folder
    from synth_audit.store.scratch import in_use
    from synth_audit.store.workspace import Workspace

    room = nullcontext() if out is None else in_use(Workspace(Path(out)))
    with room as scratch, temporary_folder(scratch) as folder, scratch_in(Path(folder)):
        yield


def _about_formulas(plan: Plan, subject: Subject, synthetic: Frame) -> tuple[str, ...]:
    """Warnings about cells of a CSV file that a spreadsheet would run."""
    from synth_audit.pipeline.warnings import about_formulas

    # With a target in CSV the plan itself makes them be looked for.
    by_target = plan.release is not None and plan.release.name == "csv"
    as_csv = isinstance(synthetic, (str, Path)) and Path(synthetic).suffix.lower() == ".csv" and not by_target
    return about_formulas(plan, subject.synthetic, as_csv=True) if as_csv else ()


def _filed(
    plan: Plan,
    subject: Subject,
    audits: dict[str, Audit] | None,
    warnings: tuple[str, ...],
    workspace: Workspace,
    running: Running,
) -> Evidence:
    """Audit as an attempt of a workspace, with evidence and report filed there."""
    from synth_audit.pipeline.stages import MADE_ELSEWHERE, examine
    from synth_audit.pipeline.write_evidence import write_evidence
    from synth_audit.report import write_report
    from synth_audit.store.attempts import begin_attempt
    from synth_audit.store.evidence_records import TableRecord
    from synth_audit.store.salts import workspace_salt
    from synth_audit.store.scratch import in_use

    salt = workspace_salt(workspace)
    candidate = TableRecord.of(subject.synthetic, salt).identity
    attempt = begin_attempt(workspace, plan=plan.digest, candidate=candidate)
    with in_use(workspace) as scratch, run_context(plan, scratch, **running) as context:
        audited = examine(plan, subject, MADE_ELSEWHERE, context, salt, audits=audits, warnings=warnings)
        evidence = write_evidence(audited.numbered(*attempt), workspace)
    write_report(workspace)
    return evidence


def run(
    plan: PlanLike,
    out: str | Path | None = None,
    *,
    release: bool = True,
    **running: Unpack[Running],
) -> Evidence:
    """Go the whole way: pull, split, generate, audit, gate, report and, on a pass, release.

    Args:
        out: workspace folder; ``<plan's name>-audit`` beside the plan if left out.
        release: False stops before the release.
        running: how the work is done, see :class:`Running`.
    """
    from synth_audit.core.verdict import Result
    from synth_audit.pipeline import stages as pipeline
    from synth_audit.report import write_report
    from synth_audit.store.scratch import in_use

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        evidence = pipeline.produce(settled, workspace, context)
    write_report(workspace)
    if release and settled.release is not None and evidence.verdict is Result.PASS:
        pipeline.release_synthetic(settled, workspace)
    return evidence


def rerun(
    plan: PlanLike,
    out: str | Path | None = None,
    *,
    candidate: str | None = None,
    **running: Unpack[Running],
) -> tuple[Check, ...]:
    """Repeat a run under the salt of its workspace and compare it with its evidence; nothing is written.

    Split, seeded fits and draws and all measurements are made again. What cannot be repeated, such as a table
    made elsewhere or a fit that spent privacy budget, is compared by its hash and audited as it was kept.

    Args:
        out: workspace folder; ``<plan's name>-audit`` beside the plan if left out.
        candidate: name or folder of one that a sweep of this plan tried, to repeat that.
        running: how the work is done, see :class:`Running`.

    Returns:
        What agrees, what does not, and what is not checkable here.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    from synth_audit.pipeline.rerun import rerun as again
    from synth_audit.store.scratch import in_use
    from synth_audit.studies.candidates import candidate_of

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    if candidate is not None:
        chosen, workspace = candidate_of(settled, workspace, candidate)
        settled = chosen.plan
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        return again(settled, workspace, context)
