"""The smallest coarsening with which a refused release would pass, and the plan that says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from synth_audit.api.plans import PlanLike, as_plan, workspace_of
from synth_audit.api.running import Running, run_context
from synth_audit.core.errors import PlanError

if TYPE_CHECKING:
    from synth_audit.studies.mend_record import MendRecord


def mend(
    plan: PlanLike, out: str | Path | None = None, *, tries: int = 5, **running: Unpack[Running]
) -> MendRecord:
    """Try coarser values on the refused release of a plan, and judge each at a level corrected for all.

    Nothing is released: run the plan with the ``coarsen`` of the record's ``mended``.

    Args:
        out: workspace folder of the run; ``<plan's name>-audit`` beside the plan if left out.
        tries: the most candidates to judge, 1 to 5.
        running: how the work is done, see :class:`Running`.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    from synth_audit.store.scratch import in_use
    from synth_audit.studies.mend import mend as search

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        return search(settled, workspace, context, tries=tries)


def refuse_mended_place(plan: Path, to: Path) -> None:
    """Raise ``PlanError`` where the mended plan may not be written: paths in it start where the plan lies."""
    if os.path.lexists(to) or to.resolve().parent != plan.resolve().parent:
        raise PlanError(
            "the mended plan cannot be written there",
            where=str(to),
            expected=f"a file that does not exist, in {plan.resolve().parent}, where its paths start",
            fix="name another with --write",
        )


def write_mended_plan(plan: Path, found: MendRecord, to: Path) -> None:
    """Write the plan that carries the mend, and how many candidates it was chosen among.

    The plan's own text is kept where keys can be added below it.

    Raises:
        PlanError: nothing was mended, or the file may not be written there.
    """
    from synth_audit.core.plan_file import parse_plan
    from synth_audit.core.strict_yaml import load_yaml
    from synth_audit.store.workspace_files import write_text

    refuse_mended_place(plan, to)
    if found.mended is None:
        raise PlanError("nothing was mended", where="mend", expected="a try that passed", fix=found.reason)
    text = plan.read_text(encoding="utf-8")
    more: dict[str, Any] = {"coarsen": dict(found.mended.coarsen)}
    value = load_yaml(text)
    if "name" not in value:  # the file's, and that is another now
        more = {"name": found.table} | more
    block = f"# Written by `synth-audit mend`: chosen on real data.\n{_yaml(more)}"
    both = f"{text.rstrip()}\n\n{block}"
    try:
        kept = load_yaml(both) == value | more
    except ValueError:
        kept = False
    parse_plan(value | more)
    write_text(to, both if kept else _yaml(value | more))


def _yaml(value: object) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
