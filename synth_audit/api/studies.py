"""Many audits for one question: which candidate to choose, and how audits answer leaks."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from synth_audit.api.plans import PlanLike, as_plan, named_after, narrowed, workspace_of
from synth_audit.api.running import Running, run_context
from synth_audit.core.errors import PlanError
from synth_audit.frames import as_arrow

if TYPE_CHECKING:
    from synth_audit.core.context import RunContext
    from synth_audit.core.plan import Plan
    from synth_audit.frames import Frame
    from synth_audit.store.workspace import Workspace
    from synth_audit.studies.calibration import Calibration
    from synth_audit.studies.frontier import FrontierRecord
    from synth_audit.studies.run_estimate import RunEstimate


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
    from synth_audit.store.evidence_store import evidence_store
    from synth_audit.studies.sweep import sweep

    record = sweep(plan, workspace, context, fresh=fresh)
    for found in record.candidates:
        own = workspace.candidate(found.slug)
        store = evidence_store(own)
        if store.newest_digest() and store.newest().report is None:
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
        out: folder to write ``review/calibration.json`` and ``.html`` into, with temporary files in its
            ``restricted/``; nothing is written without it.
        running: how the work is done, see :class:`Running`.

    Raises:
        DataError: train has too few rows to plant a leak in.
        PlanError: no privacy audit is chosen, or there are fewer than two steps.
    """
    from synth_audit.pipeline import stages as pipeline
    from synth_audit.report.calibration import render_calibration
    from synth_audit.store.scratch import in_use
    from synth_audit.store.workspace import Workspace
    from synth_audit.store.workspace_files import write_text
    from synth_audit.studies import calibration

    settled = narrowed(as_plan(plan if plan is not None else named_after(train)), only, seed)
    if steps < 2:
        raise PlanError(
            "a calibration needs leaks of more than one size",
            where="steps",
            expected="2 or more",
            fix="try 10",
        )
    real = as_arrow(train, "train")
    subject = pipeline.anchored_subject(real, as_arrow(control, "control"), real, settled)
    workspace = None if out is None else Workspace(Path(out)).prepare()
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


def estimate(plan: PlanLike, **running: Unpack[Running]) -> RunEstimate:
    """How long a run of a plan should take here: two small parts of its table are run, and nothing is kept.

    Args:
        running: how the work is done, see :class:`Running`; a run is expected to be done alike.

    Raises:
        PlanError, DataError, GateError: what a run of the plan would raise, or there are too few rows.
    """
    from synth_audit.core.files import temporary_folder
    from synth_audit.studies.run_estimate import estimate as extrapolate

    settled = as_plan(plan)
    with temporary_folder() as scratch, run_context(settled, Path(scratch), **running) as context:
        return extrapolate(settled, context, Path(scratch))
