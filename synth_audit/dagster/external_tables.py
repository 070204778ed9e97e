"""Tables that others made: a vendor's, or dbt's; nothing is fitted here, and all else is as for our own."""

# Without `from __future__ import annotations`: pydantic reads them.

from typing import TYPE_CHECKING

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, model_validator

from synth_audit.dagster.entry import TableEntry
from synth_audit.plugins.plugin_config import Location

if TYPE_CHECKING:
    import pyarrow as pa

    from synth_audit.execution.context import RunContext
    from synth_audit.pipeline.release import ReleaseRecord
    from synth_audit.store.evidence import Evidence

ROLES = ("train", "control", "synthetic")


class MadeElsewhere(BaseModel):
    """Where the three tables are that an audit is about."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    train: Location = Field(description="real rows that the synthetic ones were made from")
    control: Location = Field(description="real rows of the same population that the maker never had")
    synthetic: Location = Field(description="the table that was made")

    @model_validator(mode="after")
    def _three_places(self) -> "MadeElsewhere":
        if len({getattr(self, role).model_dump_json() for role in ROLES}) < len(ROLES):
            raise ValueError("two of train, control and synthetic are the same table")
        return self


def specs(table: TableEntry) -> list[dg.AssetSpec]:
    """The three tables as assets that others make."""
    before = [dg.AssetKey.from_user_string(name) for name in table.settings.deps]
    return [
        dg.AssetSpec(
            table.asset(role),
            deps=before,
            group_name=table.key,
            kinds={getattr(table.settings.made_elsewhere, role).name, "table"},
            description=MadeElsewhere.model_fields[role].description,
        )
        for role in ROLES
    ]


def audit(table: TableEntry, context: "RunContext", workers: int | None) -> "Evidence":
    """Audit the three tables and file the evidence."""
    from synth_audit import api

    train, control, synthetic = (_rows(table, role) for role in ROLES)
    return api.audit(
        train,
        control,
        synthetic,
        table.plan,
        out=table.workspace.root,
        progress=context.progress,
        workers=workers,
    )


def release(table: TableEntry) -> "ReleaseRecord":
    """Release the table that was audited, read once more where it lies, if its content is still the same."""
    from synth_audit import api

    return api.release(table.plan, table.workspace.root, _rows(table, "synthetic"))


def _rows(table: TableEntry, role: str) -> "pa.Table":
    from synth_audit.plugins.source import read_whole

    place = getattr(table.settings.made_elsewhere, role)
    source = table.plan.model_copy(update={"source": place}).build_source()
    return read_whole(source, table.plan.base)
