"""One audited table as the assets and checks see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import dagster as dg

from synth_audit.build import build_version
from synth_audit.errors import NotAsAudited
from synth_audit.plan.plan import Plan
from synth_audit.store.workspace import Workspace

if TYPE_CHECKING:
    from synth_audit.dagster.component import TableSettings
    from synth_audit.store.evidence import Evidence
    from synth_audit.verdict.suite import Suite


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
