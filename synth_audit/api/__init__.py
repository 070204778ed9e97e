"""Every verb as a function, on pandas frames, Arrow tables or files; the command line calls these."""

from __future__ import annotations

from synth_audit.api.approving import approve, new_key
from synth_audit.api.auditing import audit, rerun, run
from synth_audit.api.evidence import (
    compare,
    gate,
    load_evidence,
    render_report,
    verify,
    write_certificate,
    write_pdf,
    write_report,
)
from synth_audit.api.indexing import write_index
from synth_audit.api.mechanisms import test_mechanism
from synth_audit.api.mending import mend, refuse_mended_place, write_mended_plan
from synth_audit.api.plans import PlanLike, as_plan, workspace_of
from synth_audit.api.recipes import RecipeState, install_recipe, recipes, try_recipe
from synth_audit.api.releasing import purge, release, rollback
from synth_audit.api.running import Execution, Running, run_context
from synth_audit.api.studies import calibrate, estimate, frontier, swept
from synth_audit.api.tables import fill_table
from synth_audit.api.together import exposure

__all__ = [
    "Execution",
    "PlanLike",
    "RecipeState",
    "Running",
    "approve",
    "as_plan",
    "audit",
    "calibrate",
    "compare",
    "estimate",
    "exposure",
    "fill_table",
    "frontier",
    "gate",
    "install_recipe",
    "load_evidence",
    "mend",
    "new_key",
    "purge",
    "recipes",
    "refuse_mended_place",
    "release",
    "render_report",
    "rerun",
    "rollback",
    "run",
    "run_context",
    "swept",
    "test_mechanism",
    "try_recipe",
    "verify",
    "workspace_of",
    "write_certificate",
    "write_index",
    "write_mended_plan",
    "write_pdf",
    "write_report",
]
