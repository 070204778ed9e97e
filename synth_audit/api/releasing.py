"""What leaves, and what goes: the release of an audited table, and the end of old audits."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from synth_audit.api.plans import PlanLike, as_plan, workspace_of
from synth_audit.frames import as_arrow

if TYPE_CHECKING:
    from synth_audit.frames import Frame
    from synth_audit.pipeline.release import ReleaseRecord
    from synth_audit.store.purge import PurgeRecord, Sweep
    from synth_audit.store.workspace import Workspace


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
    from synth_audit.store.scratch import in_use
    from synth_audit.studies.candidates import candidate_of

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    if candidate is not None:
        chosen, workspace = candidate_of(settled, workspace, candidate)
        settled = chosen.plan
    if synthetic is None:
        return pipeline.release_synthetic(settled, workspace)
    with in_use(workspace):
        return leave(settled, workspace, as_arrow(synthetic, "synthetic"))


def rollback(plan: PlanLike, out: str | Path | None = None) -> ReleaseRecord:
    """Put the release before the last of a workspace back, or refuse."""
    from synth_audit.pipeline.rollback import rollback as lead_back

    settled = as_plan(plan)
    return lead_back(settled, workspace_of(settled, out))


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
    folder = isinstance(table, (str, Path)) and os.path.isdir(table)
    workspace = Workspace(Path(str(table))) if folder else workspace_of(table, None)
    sweep = _newest_sweep(workspace)
    return survey(workspace, retention, sweep) if dry_run else delete(workspace, retention, sweep, only)


def _newest_sweep(workspace: Workspace) -> Sweep | None:
    from synth_audit.store.purge import Sweep
    from synth_audit.studies.frontier import read_frontier

    if not os.path.isfile(workspace.kept_frontier):
        return None
    record = read_frontier(workspace.kept_frontier)
    best = record.best
    return Sweep({c.slug for c in record.candidates}, None if best is None else best.slug)
