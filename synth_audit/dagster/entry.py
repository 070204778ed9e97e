"""One audited table as the assets and checks see it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, model_validator

from synth_audit.build import build_version
from synth_audit.errors import NotAsAudited
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Need
from synth_audit.plugins.generator import Generator, Needs, needs_of
from synth_audit.plugins.plugin_config import Location
from synth_audit.store.workspace import Workspace

if TYPE_CHECKING:
    from synth_audit.dagster.component import TableSettings
    from synth_audit.store.evidence import Evidence
    from synth_audit.verdict.suite import Suite

GPU = "gpu"
"""Pool of stages with a fit that needs a GPU; its limit is set in the deployment, see ``docs/dagster.md``."""

MEMORY = "memory"
"""Pool of stages with a fit that needs much memory, and no GPU."""


ROLES = ("train", "control", "synthetic")
"""The tables that an audit is about."""


class MadeElsewhere(BaseModel):
    """Where the three tables are that an audit is about."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    train: Location = Field(description="real rows that the synthetic ones were made from")
    control: Location = Field(description="real rows of the same population that the maker never had")
    synthetic: Location = Field(description="the table that was made")

    @model_validator(mode="after")
    def _three_places(self) -> MadeElsewhere:
        if len({getattr(self, role).model_dump_json() for role in ROLES}) < len(ROLES):
            raise ValueError("two of train, control and synthetic are the same table")
        return self


@dataclass(frozen=True)
class TableEntry:
    """A table's plan, gates and files, and how the catalogue shows it.

    Attributes:
        key: first part of every asset key, and the group.
        settings: as its ``defs.yaml`` states them.
        partitions: one for each snapshot, where the table has such; None where it is one table.
    """

    key: str
    plan: Plan
    suite: Suite
    workspace: Workspace
    settings: TableSettings
    partitions: dg.PartitionsDefinition[str] | None = None

    def at(self, context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> TableEntry:
        """The table of the snapshot that a run is about, with files of its own; the table itself without."""
        if self.partitions is None:
            return self
        from synth_audit.dagster.snapshots import of_snapshot

        key = context.partition_key
        plan = of_snapshot(self.plan, key)
        return replace(self, plan=plan, workspace=Workspace(self.workspace.root / key, table=self.workspace))

    def refuse_foreign(self, evidence: Evidence) -> None:
        """Raise ``NotAsAudited`` for evidence of another plan or suite than today's: a run must not bear the
        verdict of another."""
        if (evidence.plan_sha256, evidence.gates.suite_sha256) == (self.plan.digest, self.suite.sha256):
            return
        raise NotAsAudited(
            "the newest evidence is of another plan or gate suite",
            where=str(self.workspace.root),
            expected="evidence of today's plan and suite",
            fix="run the table from its split",
        )

    @property
    def released(self) -> dg.AssetKey:
        """Asset key of the released table."""
        return dg.AssetKey.from_user_string(self.settings.released_key or f"{self.key}/released")

    def asset(self, stage: str) -> dg.AssetKey:
        """Asset key of a stage."""
        return dg.AssetKey([self.key, stage])

    def code_version(self, stage: str) -> str:
        """Changes with the build of the package, the plan and, where gates are judged, the suite.

        Dagster shows from it which stages are out of date.
        """
        version = f"{build_version()}+{self.plan.digest[:12]}"
        if stage == "frontier" and self.plan.frontier is not None:
            version += f"+{self.plan.frontier.model_dump_json()}"
        return version if stage in ("split", "synthetic") else f"{version}+{self.suite.sha256[:12]}"


def pool_of(table: TableEntry, stage: str) -> str | None:
    """The pool in which a stage waits for its turn; None for what may run beside anything."""
    needs = Needs()
    for generator in _fitted(table, stage):
        needs |= needs_of(generator)
    return GPU if needs.gpu else MEMORY if needs.memory else None


def _fitted(table: TableEntry, stage: str) -> Iterator[Generator]:
    """The generators that a stage fits: games do so too, and a sweep all its candidates."""
    plan = table.plan
    if stage == "frontier":
        from synth_audit.studies.ranking import candidates_of

        yield from (candidate.plan.build_generator() for candidate in candidates_of(plan, sys.maxsize))
    elif plan.generator is not None and stage in ("synthetic", "audit"):
        generator = plan.build_generator()
        needs = needs_of(generator)
        if stage == "synthetic":
            yield generator
        elif needs.gpu or needs.memory:  # what waits for nothing is not asked about: that loads every audit
            from synth_audit.pipeline.stages import audits_of

            if any(Need.GENERATOR in a.info.needs for a in audits_of(plan, table.suite).values()):
                yield generator
