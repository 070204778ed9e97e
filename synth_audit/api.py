"""Every verb as a function, on pandas frames, Arrow tables or files; the command line calls these."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.plan import Plan, load_plan, parse_plan
from synth_audit.core.plugin_config import PluginChoice
from synth_audit.frames import as_arrow

if TYPE_CHECKING:
    from synth_audit.core.context import Device, Progress, RunContext
    from synth_audit.core.execution import ExecutorName
    from synth_audit.frames import Frame
    from synth_audit.pipeline.check import Check
    from synth_audit.pipeline.release import ReleaseRecord
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.purge import PurgeRecord, Sweep
    from synth_audit.store.workspace import Workspace
    from synth_audit.studies.calibration import Calibration
    from synth_audit.studies.frontier import FrontierRecord

PlanLike: TypeAlias = Plan | Mapping[str, Any] | str | Path


class Execution(TypedDict, total=False):
    """Where the work is done; no number depends on it.

    What is given here stands above the plan's ``execution``.

    Attributes:
        workers: processes to spread audits and games over; 1 if left out.
        executor: ``serial``, ``processes`` or ``dask``; what the others imply if left out.
        scheduler: address of a Dask scheduler; without one, ``dask`` means a cluster on this machine.
        deadline: longest time in seconds of one candidate's audits, and of one fit of its generator.
        device: what networks are computed on: ``cpu``, ``cuda`` or ``auto``.
    """

    workers: int | None
    executor: ExecutorName | None
    scheduler: str | None
    deadline: float | None
    device: Device | None


class Running(Execution, total=False):
    """Where the work is done, and who is told of it.

    Attributes:
        progress: called with what is under way and how many pieces are done.
    """

    progress: Progress | None


@contextmanager
def run_context(plan: Plan, scratch: Path | None = None, **running: Unpack[Running]) -> Iterator[RunContext]:
    """The context that a verb's work is done in: here, and nowhere else, it is made.

    Args:
        scratch: where temporary folders are made; the system's place for them if None.
    """
    from synth_audit.core.context import RunContext, silent
    from synth_audit.core.deadline import Deadline
    from synth_audit.core.execution import opened

    progress = running.pop("progress", None)
    settled = plan.execution.changed(running)
    with opened(settled.name, settled.n_workers, settled.scheduler) as executor:
        yield RunContext(
            seed=plan.seed,
            executor=executor,
            progress=progress or silent,
            deadline=Deadline.within(settled.deadline),
            device=settled.device,
            scratch=scratch,
        )


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
    from synth_audit.pipeline import stages as pipeline
    from synth_audit.pipeline.warnings import about_formulas
    from synth_audit.pipeline.write_evidence import write_evidence
    from synth_audit.report import write_report
    from synth_audit.store.evidence import TableRecord
    from synth_audit.store.evidence_store import begin_attempt
    from synth_audit.store.salts import workspace_salt
    from synth_audit.store.scratch import in_use
    from synth_audit.store.workspace import Workspace

    settled = _narrowed(as_plan(plan if plan is not None else _named_after(synthetic)), only, seed)
    subject = pipeline.anchored_subject(
        as_arrow(train, "train"),
        None if control is None else as_arrow(control, "control"),
        as_arrow(synthetic, "synthetic"),
        settled,
    )
    workspace = None if out is None else Workspace(Path(out))
    salt = Salt.fresh() if workspace is None else workspace_salt(workspace)
    # With a target in CSV the plan itself makes them be looked for.
    by_target = settled.release is not None and settled.release.name == "csv"
    as_csv = isinstance(synthetic, (str, Path)) and Path(synthetic).suffix.lower() == ".csv" and not by_target
    attempt = None
    if workspace is not None:
        candidate = TableRecord.of(subject.synthetic, salt).identity
        attempt = begin_attempt(workspace, plan=settled.digest, candidate=candidate)
    held = nullcontext() if workspace is None else in_use(workspace)
    with held as scratch, run_context(settled, scratch, **running) as context:
        audited = pipeline.examine(
            settled,
            subject,
            pipeline.MADE_ELSEWHERE,
            context,
            salt,
            audits=settled.build_audits() if only else None,
            warnings=about_formulas(settled, subject.synthetic.data, as_csv=True) if as_csv else (),
        )
        if workspace is None or attempt is None:
            return audited.evidence
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


def frontier(
    plan: PlanLike,
    out: str | Path | None = None,
    *,
    fresh: bool = False,
    **running: Unpack[Running],
) -> FrontierRecord:
    """Audit every candidate that the plan's ``frontier`` asks for and choose among those that pass.

    Each gets a workspace of its own under ``candidates/``, with a report; a candidate that an earlier call
    finished is kept. Nothing is released: see :func:`release` and its ``candidate``.

    Args:
        out: workspace folder; ``<plan's name>-audit`` beside the plan if left out.
        fresh: pull the source again and keep nothing of earlier calls.
        running: how the work is done, see :class:`Running`.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    from synth_audit.store.scratch import in_use

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        return swept(settled, workspace, context, fresh=fresh)


def swept(plan: Plan, workspace: Workspace, context: RunContext, *, fresh: bool = False) -> FrontierRecord:
    """Sweep as :func:`frontier` does, in a context at hand, and write the pages."""
    from synth_audit.report import write_report
    from synth_audit.report.frontier import write_frontier
    from synth_audit.studies.sweep import sweep

    record = sweep(plan, workspace, context, fresh=fresh)
    for found in record.candidates:
        own = workspace.candidate(found.slug)
        if own.newest_pointer.exists() and not own.report.exists():
            write_report(own)
    write_frontier(record, workspace.frontier_page)
    return record


def calibrate(
    train: Frame,
    control: Frame,
    plan: PlanLike | None = None,
    *,
    steps: int = 10,
    noise: bool = True,
    only: tuple[str, ...] = (),
    seed: int | None = None,
    out: str | Path | None = None,
    **running: Unpack[Running],
) -> Calibration:
    """Plant leaks of every size in real rows and measure them with every privacy audit.

    Args:
        train: real rows; half of them play the training rows, the other half people never seen.
        control: real rows kept apart from both.
        steps: leaks at 0, 1/steps, … 1 of the rows.
        noise: repeat with all settings of the published leaky evaluation, eight times the work.
        out: folder to write ``review/calibration.json`` and ``.html`` into; nothing is written without it.
        running: how the work is done, see :class:`Running`.

    Raises:
        DataError: train has too few rows to plant a leak in.
        PlanError: no privacy audit is chosen, or there are fewer than two steps.
    """
    from synth_audit.pipeline import stages as pipeline
    from synth_audit.report.calibration import render_calibration
    from synth_audit.store.scratch import in_use
    from synth_audit.store.workspace import Workspace, write_text
    from synth_audit.studies import calibration

    settled = _narrowed(as_plan(plan if plan is not None else _named_after(train)), only, seed)
    if steps < 2:
        raise PlanError(
            "a calibration needs leaks of more than one size",
            where="steps",
            expected="2 or more",
            fix="try 10",
        )
    real = as_arrow(train, "train")
    subject = pipeline.anchored_subject(real, as_arrow(control, "control"), real, settled)
    workspace = None if out is None else Workspace(Path(out)).prepare_review()
    held = nullcontext() if workspace is None else in_use(workspace)
    with held as scratch, run_context(settled, scratch, **running) as context:
        found = calibration.calibrate(
            settled.build_audits(),
            subject,
            context,
            table=settled.name,
            shares=[i / steps for i in range(steps + 1)],
            noises=calibration.LOUD if noise else calibration.QUIET,
            max_rows=settled.known_answer.max_rows,
        )
    if workspace is not None:
        write_text(workspace.calibration, found.to_json())
        write_text(workspace.calibration_page, render_calibration(found))
    return found


def gate(evidence: Evidence | str | Path, suite: str) -> Evidence:
    """Judge existing evidence by another suite; needs no data. The result is no basis for a release."""
    from synth_audit.judging import judge as room
    from synth_audit.judging.privacy_budget import promise_of

    known = _evidence(evidence)
    if not known.intact:
        raise DataError(
            "the evidence was altered after the audit",
            where=str(evidence) if isinstance(evidence, (str, Path)) else "evidence",
            expected="evidence whose digest matches its content",
            fix="run the audit again; `synth-audit verify` shows what does not agree",
        )
    report = room.judge(
        room.load_suite(suite, Path.cwd()), known.outcomes, known.table_checks, promise_of(known)
    )
    return replace(known, gates=report, verdict=report.verdict).sealed()


def render_report(evidence: Evidence | str | Path, path: str | Path | None = None) -> str:
    """Render the report from evidence alone; also write it to ``path`` if given."""
    from synth_audit.report import render_report as render
    from synth_audit.store.workspace import write_text

    html = render(_evidence(evidence))
    if path is not None:
        write_text(Path(path), html)
    return html


def write_report(evidence: str | Path) -> Path:
    """Render the report of an audit into its folder, where one that is there stays: it may have been signed.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.

    Returns:
        Where the report is.

    Raises:
        DataError: another report is there.
    """
    from synth_audit.report import file_report
    from synth_audit.store.locate import locate_evidence

    return file_report(locate_evidence(Path(evidence)))


def verify(
    evidence: Evidence | str | Path,
    tables: Mapping[str, Frame] | None = None,
    *,
    salt: str | Path | None = None,
) -> tuple[Check, ...]:
    """Recompute hashes, values against limits and verdict; compare what lies beside the evidence with it.

    Args:
        evidence: evidence, its file, the folder of its audit, or a workspace, whose newest audit is meant.
        tables: any of ``source``, ``train``, ``control``, ``synthetic`` still at hand; those in the
            restricted folder beside the evidence are checked without being named.
        salt: file of the workspace's salt, where the evidence does not lie in its workspace. Without it only
            a synthetic table that passed can be compared.

    Returns:
        What holds, what does not, and what is not checkable here.

    Raises:
        DataError: the evidence or the salt cannot be read, or the salt is of another workspace.
    """
    from synth_audit.pipeline.verify import purged_check, refuse_foreign, verify_filed
    from synth_audit.pipeline.verify import verify as check
    from synth_audit.report import page_check
    from synth_audit.store.locate import locate_evidence
    from synth_audit.store.salts import read_salt

    named = {name: as_arrow(t, name) for name, t in (tables or {}).items()}
    secret = None if salt is None else read_salt(Path(salt))
    if not isinstance(evidence, (str, Path)):
        if secret is not None:
            refuse_foreign(secret, evidence)
        return check(evidence, named, secret)
    if (purged := purged_check(Path(evidence))) is not None:
        return (purged,)
    found = locate_evidence(Path(evidence))
    known, checks = verify_filed(found, named, secret)
    return (*checks, *page_check(known, found))


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


def release(
    plan: PlanLike,
    out: str | Path | None = None,
    synthetic: Frame | None = None,
    *,
    candidate: str | None = None,
) -> ReleaseRecord:
    """Release the audited table of a workspace to the plan's target, or refuse.

    Args:
        synthetic: the table that was audited, when it was made elsewhere and is not in the workspace.
        candidate: name or folder of one that a sweep of this plan tried, to release that.
    """
    from synth_audit.pipeline import stages as pipeline
    from synth_audit.pipeline.release import release as leave
    from synth_audit.studies.candidates import candidate_of

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    if candidate is not None:
        chosen, workspace = candidate_of(settled, workspace, candidate)
        settled = chosen.plan
    if synthetic is None:
        return pipeline.release_synthetic(settled, workspace)
    return leave(settled, workspace, as_arrow(synthetic, "synthetic"))


def purge(
    table: PlanLike,
    *,
    keep: int | None = None,
    older_than: str | timedelta | None = None,
    dry_run: bool = True,
    only: Collection[str] | None = None,
) -> PurgeRecord:
    """Delete old audits of a table, and old candidates of its sweeps, or say what would be deleted.

    The newest audit stays, and one that was released or whose release was interrupted, and so do the ledger,
    the journal and the salt. The journal says when an audit was purged.

    Args:
        table: its workspace folder, or its plan if the workspace has the place that goes with it.
        keep: so many of the newest audits, and the candidates of the newest sweep, are not old.
        older_than: nothing is old that was made less than this ago, such as ``90d``, ``12w`` or ``36h``. With
            both, what is old by both goes.
        dry_run: False deletes.
        only: names of what may go, as an earlier dry run gave them.

    Raises:
        PlanError: neither of the two is given, or one that would keep nothing.
        DataError: there is no journal, another run is at work, or something cannot be deleted.
    """
    from synth_audit.store.purge import purge as delete
    from synth_audit.store.purge import survey
    from synth_audit.store.retention import Retention
    from synth_audit.store.workspace import Workspace

    retention = Retention.of(keep, older_than)
    folder = isinstance(table, (str, Path)) and Path(table).is_dir()
    workspace = Workspace(Path(str(table))) if folder else workspace_of(table, None)
    sweep = _newest_sweep(workspace)
    return survey(workspace, retention, sweep) if dry_run else delete(workspace, retention, sweep, only)


def _newest_sweep(workspace: Workspace) -> Sweep | None:
    from synth_audit.store.purge import Sweep
    from synth_audit.studies.frontier import read_frontier

    if not workspace.frontier.is_file():
        return None
    record = read_frontier(workspace.frontier)
    best = record.best
    return Sweep({c.slug for c in record.candidates}, None if best is None else best.slug)


def as_plan(plan: PlanLike) -> Plan:
    """A validated plan from a plan, its values, or its file."""
    if isinstance(plan, Plan):
        return plan.check()
    if isinstance(plan, (str, Path)):
        return load_plan(plan)
    return parse_plan(plan).check()


def workspace_of(plan: PlanLike, out: str | Path | None) -> Any:
    """The workspace of a plan: ``out``, else ``<name>-audit`` in the folder its paths start from."""
    from synth_audit.store.workspace import Workspace

    settled = as_plan(plan)
    return Workspace(Path(out) if out is not None else settled.base / f"{settled.name}-audit")


def _named_after(table: Frame) -> dict[str, str]:
    """Without a plan, a report is headed by the name of the file it judges."""
    if not isinstance(table, (str, Path)):
        return {}
    return {"name": re.sub(r"[^\w.-]", "_", Path(table).stem)[:200] or "table"}


def _narrowed(plan: Plan, only: tuple[str, ...], seed: int | None) -> Plan:
    changed: dict[str, object] = {}
    if seed is not None:
        changed["seed"] = parse_plan({"seed": seed}, where="the seed given").seed
    if only:
        listed = {choice.name: choice for choice in plan.audits}
        if plan.audits and (strange := sorted(set(only) - set(listed))):
            raise PlanError(
                f"the plan has no audit {strange[0]!r}",
                where="--only",
                expected=f"any of {', '.join(listed)}",
                fix="name one of these, or add it to the plan's audits",
            )
        chosen = dict.fromkeys(only)  # naming one twice runs it once
        changed["audits"] = tuple(listed.get(name, PluginChoice(name=name)) for name in chosen)
    return plan.model_copy(update=changed).located(plan.base).check() if changed else plan


def _evidence(evidence: Evidence | str | Path) -> Evidence:
    from synth_audit.store.checked_evidence import checked_evidence
    from synth_audit.store.locate import locate_evidence

    if not isinstance(evidence, (str, Path)):
        return evidence
    return checked_evidence(locate_evidence(Path(evidence)))
