"""Audits: of tables at hand, of all that a plan says, again under the same salt, and of several releases."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from synth_audit.api.frames import placed_rows, refuse_same_file
from synth_audit.api.plans import PlanLike, as_plan, named_after, narrowed, workspace_of

if TYPE_CHECKING:
    import pyarrow as pa

    from synth_audit.api.frames import Frame
    from synth_audit.pipeline.verify import Check
    from synth_audit.plan.plan import Plan
    from synth_audit.plugins.audit import Audit, Subject
    from synth_audit.run.context import Progress, RunContext
    from synth_audit.run.seeds import Salt
    from synth_audit.run.workplace import Device, ExecutorName
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.workspace import Workspace


class Execution(TypedDict, total=False):
    """Where the work is done; no number depends on it.

    What is given here stands above the plan's ``execution``.

    Attributes:
        workers: processes to spread audits and games over; 1 if left out.
        executor: ``serial``, ``processes`` or ``dask``; what the others imply if left out.
        scheduler: address of a Dask scheduler; without one, ``dask`` means a cluster on this machine.
        deadline: longest time in seconds of one candidate's audits, and of one fit of its generator.
        device: what networks and long searches are computed on: ``cpu``, ``cuda`` or ``auto``.
    """

    workers: int | None
    executor: ExecutorName | None
    scheduler: str | None
    deadline: float | None
    device: Device | None


class Running(Execution, total=False):
    """Where the work is done, and who is told of it.

    Attributes:
        progress: called with what is under way and how many pieces are done; True prints a line now and then.
            Left out, a notebook shows a line that is rewritten.
    """

    progress: Progress | bool | None


@contextmanager
def run_context(plan: Plan, scratch: Path | None = None, **running: Unpack[Running]) -> Iterator[RunContext]:
    """The context that a verb's work is done in: here, and nowhere else, it is made.

    Args:
        scratch: where temporary folders are made; the system's place for them if None.
    """
    from synth_audit.run.context import RunContext, silent, spoken
    from synth_audit.run.executor import Deadline, opened

    progress = running.pop("progress", None)
    rewritten = progress is None and _in_notebook()
    if rewritten:
        progress = spoken(_rewrite, every=0.5)
    told = (spoken(print) if progress is True else progress) or silent
    settled = plan.execution.changed(running)
    with ExitStack() as stack:
        if rewritten:
            stack.callback(_rewrite, "")
        executor = stack.enter_context(opened(settled.name, settled.n_workers, settled.scheduler))
        yield RunContext(
            seed=plan.seed,
            executor=executor,
            progress=told,
            deadline=Deadline.within(settled.deadline),
            device=settled.device,
            scratch=scratch,
        )


def _in_notebook() -> bool:
    """Whether a kernel runs this, whose output a browser shows."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def _rewrite(line: str) -> None:
    print(f"\r{line:<79}", end="\r", flush=True)  # noqa: T201 (a notebook has no other place)


def audit(
    train: Frame,
    control: Frame | None,
    synthetic: Frame,
    plan: PlanLike | None = None,
    *,
    only: tuple[str, ...] = (),
    out: str | Path | None = None,
    **running: Unpack[Running],
) -> Evidence:
    """Audit a synthetic table made elsewhere and judge it by the plan's gates.

    Args:
        train: real rows the synthetic ones were made from. control: real rows of the same population
            that were kept from the generator; None leaves every audit that needs them not applicable.
        plan: a plan, its values, or its file; ``source``, ``split`` and ``generator`` are not used.
        only: run just these audits; the gates on the others then lack evidence.
        out: folder to write ``review/`` (evidence, measurements, report; on a pass also
            ``synthetic.parquet``, the file to share: audited rows and values alone) and ``restricted/``
            (positions of exposed training rows, the salt that tables are hashed under) into. The account
            remembers the salt and the audits of a training table, so that another folder draws alike.
            Without ``out`` nothing is written, what the audits draw can be predicted, and of the tables only
            a synthetic one that passed can be compared with the evidence later.
        running: how the work is done, see :class:`Running`.

    Returns:
        The evidence; ``evidence.verdict`` says whether the table may leave.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    from synth_audit.pipeline.coarsening import refuse_coarsening
    from synth_audit.report import write_report
    from synth_audit.report.notebook import shown
    from synth_audit.store.salts import workspace_salt
    from synth_audit.store.scratch import in_use
    from synth_audit.store.workspace import Workspace

    settled = narrowed(as_plan(plan if plan is not None else named_after(synthetic)), only)
    refuse_coarsening(settled)
    frames = (train, control, synthetic)
    refuse_same_file({"train": train, "control": control, "synthetic": synthetic})
    audits = settled.build_audits() if only else None
    if out is None:
        return shown(_audited(settled, frames, audits, None, None, running))
    workspace = Workspace(Path(out))
    workspace_salt(workspace)  # made before any rows lie there, which without it would be of a lost one
    with in_use(workspace) as scratch:
        evidence = _audited(settled, frames, audits, workspace, scratch, running)
    write_report(workspace)
    return shown(evidence)


def _audited(
    plan: Plan,
    frames: tuple[Frame, Frame | None, Frame],
    audits: dict[str, Audit] | None,
    workspace: Workspace | None,
    scratch: Path | None,
    running: Running,
) -> Evidence:
    """Audit train, control and synthetic; with a workspace as an attempt of it, with evidence filed there.

    Many rows of files are laid out once, in a folder that is there as long as the audits are, so that all
    processes map the same pages.
    """
    from synth_audit.files import temporary_folder
    from synth_audit.pipeline.stages import MADE_ELSEWHERE, examine
    from synth_audit.run.seeds import Salt

    with temporary_folder(scratch) as folder:
        subject = _subject(plan, frames, Path(folder))
        warnings = _about_file(plan, subject, frames[-1])
        if workspace is not None:
            return _attempted(plan, subject, audits, workspace, scratch, warnings, running)
        with run_context(plan, scratch, **running) as context:
            salt = Salt.fresh()
            return examine(
                plan, subject, MADE_ELSEWHERE, context, salt, draws=None, audits=audits, warnings=warnings
            ).evidence


def _attempted(
    plan: Plan,
    subject: Subject,
    audits: dict[str, Audit] | None,
    workspace: Workspace,
    scratch: Path | None,
    warnings: tuple[str, ...],
    running: Running,
) -> Evidence:
    """Audit as an attempt of a workspace, by the draws that the account keeps for the training table."""
    from synth_audit.pipeline.stages import MADE_ELSEWHERE, examine, write_evidence
    from synth_audit.pipeline.warnings import about_draws, about_reports
    from synth_audit.store.evidence import TableRecord
    from synth_audit.store.ledger import begin_attempt
    from synth_audit.store.reports import enter_report, people_behind
    from synth_audit.store.salts import TrainingTable, workspace_salt
    from synth_audit.verdict.suite import load_suite

    suite = load_suite(plan.gates, plan.base).sha256
    salt = workspace_salt(workspace)
    candidate = TableRecord.of(subject.synthetic, salt).identity
    people = people_behind((subject.train, subject.control), workspace)
    standing = enter_report(people, workspace, plan=plan.digest, candidate=candidate, most=plan.most_reports)
    number, head, earlier = begin_attempt(workspace, plan=plan.digest, candidate=candidate, suite=suite)
    table = TrainingTable.remembered(subject.train, salt)
    if table is not None:
        same = TableRecord.of(subject.synthetic, table.salt).identity
        known = table.ledger.attempt(plan=plan.digest, candidate=same, suite=suite)
        earlier = table.ledger.other_settings(known)
    warnings += about_reports(standing) + about_draws(table, salt)
    with run_context(plan, scratch, **running) as context:
        audited = examine(
            plan,
            subject,
            MADE_ELSEWHERE,
            context,
            salt,
            draws=salt if table is None else table.salt,
            audits=audits,
            warnings=warnings,
        )
    audited = audited.numbered(number, head, earlier)
    evidence = write_evidence(audited, workspace, table=_to_share(plan, subject, audited.evidence, salt))
    if table is not None:
        table.ledger.judged(known, verdict=evidence.verdict, evidence=evidence.digest)
    return evidence


def _to_share(plan: Plan, subject: Subject, evidence: Evidence, salt: Salt) -> pa.Table | None:
    """The audited rows and values alone; None for what did not pass, or waits for more than a pass."""
    import pyarrow as pa

    from synth_audit.findings.verdict import Result
    from synth_audit.pipeline.release import as_audited

    waits = plan.release is not None and (plan.release.approvals > 0 or plan.release.not_worse)
    if evidence.verdict is not Result.PASS or waits:
        return None
    rows = pa.table({name: subject.synthetic.column(name) for name in subject.synthetic.names})
    return as_audited(rows, evidence, salt)


def _subject(plan: Plan, frames: tuple[Frame, Frame | None, Frame], folder: Path) -> Subject:
    """The three tables, those of large files laid out in a folder."""
    from synth_audit.files import scratch_in
    from synth_audit.pipeline.stages import anchored_subject

    train, control, synthetic = frames
    with scratch_in(folder):
        return anchored_subject(
            placed_rows(train, "train", folder),
            None if control is None else placed_rows(control, "control", folder),
            placed_rows(synthetic, "synthetic", folder),
            plan,
        )


def _about_file(plan: Plan, subject: Subject, synthetic: Frame) -> tuple[str, ...]:
    """Warnings about what a file holds beside its rows, and about CSV cells that a spreadsheet would run."""
    from synth_audit.pipeline.input_checks import about_metadata, about_unused_labels
    from synth_audit.pipeline.warnings import about_formulas
    from synth_audit.sources.parquet import Parquet

    suffix = Path(synthetic).suffix.lower() if isinstance(synthetic, (str, Path)) else ""
    found: tuple[str, ...] = ()
    if suffix in Parquet.info.suffixes:
        found += about_metadata(Parquet(path=str(synthetic)).schema(Path.cwd()))
    found += about_unused_labels(subject.synthetic, plan.suppression)
    # With a target in CSV the plan itself makes them be looked for.
    by_target = plan.release is not None and plan.release.name == "csv"
    as_csv = suffix == ".csv" and not by_target
    return found + (about_formulas(plan, subject.synthetic, as_csv=True) if as_csv else ())


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
    from synth_audit.findings.verdict import Result
    from synth_audit.pipeline import stages
    from synth_audit.report import write_report
    from synth_audit.report.notebook import shown
    from synth_audit.store.scratch import in_use

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        evidence = stages.produce(settled, workspace, context)
    write_report(workspace)
    if release and settled.release is not None and evidence.verdict is Result.PASS:
        stages.release_synthetic(settled, workspace)
    return shown(evidence)


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
    from synth_audit.studies.ranking import candidate_of

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    if candidate is not None:
        chosen, workspace = candidate_of(settled, workspace, candidate)
        settled = chosen.plan
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        return again(settled, workspace, context)


FOLDER = "together"
"""Folder of the audit within the workspace."""


def exposure(plan: PlanLike, out: str | Path | None = None, **running: Unpack[Running]) -> Evidence:
    """Audit the releases of a workspace as one table, against the rows that all of them were made from.

    Each release may pass and all together give somebody away. The answer is filed under ``together/`` in the
    workspace; it holds back and takes back nothing by itself.

    Raises:
        DataError: there are not two releases of the present training rows whose rows are kept.
        PlanError: the plan makes values coarser, which an audit of finished tables does not do.
    """
    from synth_audit.pipeline.releases_together import plan_of_all, releases_together

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    found = releases_together(workspace)
    return audit(
        found.train,
        found.control,
        found.synthetic,
        plan_of_all(settled),
        out=workspace.root / FOLDER,
        **running,
    )
