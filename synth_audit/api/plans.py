"""Plans as a caller gives them, and the workspace that goes with one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from synth_audit.errors import PlanError

if TYPE_CHECKING:
    from synth_audit.api.frames import Frame
    from synth_audit.plan.plan import Plan
    from synth_audit.store.workspace import Workspace

PlanLike: TypeAlias = "Plan | Mapping[str, Any] | str | Path"


def as_plan(plan: PlanLike) -> Plan:
    """A validated plan from a plan, its values, or its file."""
    from synth_audit.plan.plan import Plan, load_plan, parse_plan

    if isinstance(plan, Plan):
        return plan.check()
    if isinstance(plan, (str, Path)):
        return load_plan(plan)
    return parse_plan(plan).check()


def workspace_of(plan: PlanLike, out: str | Path | None) -> Workspace:
    """The workspace of a plan: ``out``, else ``<name>-audit`` in the folder its paths start from."""
    from synth_audit.store.workspace import Workspace

    settled = as_plan(plan)
    return Workspace(Path(out) if out is not None else settled.base / f"{settled.name}-audit")


def named_after(table: Frame) -> dict[str, str]:
    """A plan for a table without one: a report is headed by the name of the file it judges."""
    if not isinstance(table, (str, Path)):
        return {}
    return {"name": re.sub(r"[^\w.-]", "_", Path(table).stem)[:200] or "table"}


def narrowed(plan: Plan, only: tuple[str, ...], seed: int | None = None) -> Plan:
    """The plan with another seed and with these of its audits only, where they are given."""
    from synth_audit.plan.plan import parse_plan
    from synth_audit.plugins.plugin_config import PluginChoice

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
