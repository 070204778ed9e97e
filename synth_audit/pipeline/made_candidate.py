"""The candidate that a workspace holds, with the real tables it was made from: one run of one plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from synth_audit.core.errors import DataError
from synth_audit.core.plan import Plan
from synth_audit.core.salt import Salt
from synth_audit.core.table import Table, read_table
from synth_audit.pipeline.making import anchored
from synth_audit.store.evidence_records import TableRecord
from synth_audit.store.salts import known_salt
from synth_audit.store.stage_records import SplitRecord, SyntheticRecord
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import map_parquet


@dataclass(frozen=True, eq=False)
class MadeCandidate:
    """What the stages before an audit left, each of the same plan and data."""

    train: Table
    control: Table
    synthetic: Table
    splitting: SplitRecord
    making: SyntheticRecord
    salt: Salt

    @classmethod
    def of(cls, plan: Plan, workspace: Workspace, rows: Path, folder: Path) -> MadeCandidate:
        """Read the three tables.

        Args:
            rows: file of the candidate. folder: where tables are laid out, to be mapped.

        Raises:
            DataError: a stage did not run, or with another plan or on other data than the others.
        """
        splitting = SplitRecord.read(workspace.split_record)
        making = SyntheticRecord.read(workspace.synthetic_record)
        train, control = real_tables(plan, workspace, folder)
        data = map_parquet(rows, made_by="synthetic", named=workspace.synthetic, folder=folder)
        synthetic = read_table(data, train.schema, where="synthetic", partial=True)
        made = cls(train, control, synthetic, splitting, making, known_salt(workspace))
        made._refuse_stale(plan)
        return made

    @property
    def identity(self) -> str:
        """Which candidate it is."""
        return TableRecord.of(self.synthetic, self.salt).identity

    def _refuse_stale(self, plan: Plan) -> None:
        """An audit must describe one run of one plan: nothing may have changed between the stages."""
        tables = (self.train, self.control, self.synthetic)
        train, control, synthetic = (TableRecord.of(t, self.salt) for t in tables)
        split, made = self.splitting, self.making
        stale = ""
        if (plan.digest, train, control) != (split.plan_sha256, split.train, split.control):
            stale = "split"
        elif (plan.digest, train, synthetic) != (made.plan_sha256, made.train, made.table):
            stale = "synthetic"
        if stale:
            raise DataError(
                f"the output of the {stale} stage does not belong to this plan and data",
                where="workspace",
                expected="all stages run with the same plan, in order",
                fix=f"run the {stale} stage and those after it again",
            )


def real_tables(plan: Plan, workspace: Workspace, folder: Path | None = None) -> tuple[Table, Table]:
    """Train and control as the split left them; see :func:`map_parquet` for ``folder``."""
    paths = (workspace.train, workspace.control)
    train, control = (map_parquet(p, made_by="split", folder=folder) for p in paths)
    known, other = anchored(train, control, plan)
    return known, other
