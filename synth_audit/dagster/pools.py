"""Which stages must not run beside too many of their like: those whose fits need a GPU or much memory.

A pool's limit is set in the deployment, not here; see ``docs/dagster.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from synth_audit.dagster.entry import TableEntry
from synth_audit.plugins.audit import Need
from synth_audit.plugins.generator import Generator, Needs, needs_of

GPU = "gpu"
"""Pool of stages with a fit that needs a GPU."""

MEMORY = "memory"
"""Pool of stages with a fit that needs much memory, and no GPU."""


def pool_of(table: TableEntry, stage: str) -> str | None:
    """The pool in which a stage waits for its turn; None for what may run beside anything."""
    needs = Needs()
    for generator in _fitted(table, stage):
        needs |= needs_of(generator)
    return _waits(needs)


def _waits(needs: Needs) -> str | None:
    """The pool for what needs that much."""
    return GPU if needs.gpu else MEMORY if needs.memory else None


def _fitted(table: TableEntry, stage: str) -> Iterator[Generator]:
    """The generators that a stage fits: games do so too, and a sweep all its candidates."""
    plan = table.plan
    if stage == "frontier":
        from synth_audit.studies.ranking import candidates_of

        yield from (candidate.plan.build_generator() for candidate in candidates_of(plan, sys.maxsize))
    elif plan.generator is not None and stage in ("synthetic", "audit"):
        generator = plan.build_generator()
        # What waits for nothing anyway is not asked about: that would load every audit.
        if stage == "synthetic" or (_waits(needs_of(generator)) and _plays(table)):
            yield generator


def _plays(table: TableEntry) -> bool:
    """True when an audit of the plan, or one that a gate brings along, fits the generator again."""
    from synth_audit.pipeline.stages import audits_of

    return any(Need.GENERATOR in a.info.needs for a in audits_of(table.plan, table.suite).values())
