"""Several releases of the same people, attacked together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from synth_audit.api.auditing import audit
from synth_audit.api.plans import PlanLike, as_plan, workspace_of

if TYPE_CHECKING:
    from synth_audit.api.running import Running
    from synth_audit.store.evidence import Evidence

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
