"""Tables of papers, with releases of ours as rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from synth_audit.api.plans import as_plan, workspace_of
from synth_audit.api.running import Running

if TYPE_CHECKING:
    from synth_audit.core.plan import Plan
    from synth_audit.store.evidence import Evidence
    from synth_audit.studies.published_table import FilledTable

_PLANS = (".yaml", ".yml")


def fill_table(
    name: str, places: Sequence[str | Path], out: str | Path | None = None, **running: Unpack[Running]
) -> FilledTable:
    """A paper's table about releases of ours.

    Args:
        name: of the table, such as ``disjoint_generative_models``.
        places: for each row an evidence file, the folder of an audit or a workspace; or a plan, which is run
            with the table's audits in a workspace of its own. Nothing is released.
        out: folder of these workspaces; ``<plan's name>-table`` beside the plan if left out.
        running: how the work is done, see :class:`Running`.

    Raises:
        PlanError, DataError: there is no such table; see their messages for what to do.
    """
    from synth_audit.store.evidence import Evidence
    from synth_audit.studies.published_table import filled, published_table

    table = published_table(name)

    def made(plan: Plan) -> Evidence:
        from synth_audit.api.auditing import run

        own = Path(out) / plan.name if out is not None else plan.base / f"{plan.name}-table"
        return run(plan, workspace_of(plan, own).root, release=False, **running)

    # All are read before any is run, which may take hours.
    found = [
        table.asked_of(as_plan(place)) if place.suffix.lower() in _PLANS else _located(place)
        for place in map(Path, places)
    ]
    releases = [one if isinstance(one, Evidence) else made(one) for one in found]
    return filled(table, tuple(zip(map(str, places), releases, strict=True)))


def _located(place: Path) -> Evidence:
    from synth_audit.store.evidence import evidence_of
    from synth_audit.store.locate import locate_evidence

    found = locate_evidence(place)
    return evidence_of(found.content()[0], found.file)
