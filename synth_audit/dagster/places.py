"""Tables before and behind a table's stages: its source, tables that others made, and the released one.

Where others made the table, a vendor or dbt, nothing is fitted here, and all else is as for our own.
"""

# Without `from __future__ import annotations`: pydantic and Dagster read them.

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, model_validator

from synth_audit.dagster.entry import TableEntry
from synth_audit.dagster.verdict_message import page_link
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


def places(table: TableEntry) -> list[dg.AssetSpec]:
    """What others make and what they read: the source, or the three tables, and the released table."""
    plan, made = table.plan, table.settings.made_elsewhere
    before = [dg.AssetKey.from_user_string(name) for name in table.settings.deps]
    found = []
    if made is not None:
        roles = ((role, getattr(made, role).name, MadeElsewhere.model_fields[role]) for role in ROLES)
        found += [
            _place(table, table.asset(n), field.description or "", kind, before) for n, kind, field in roles
        ]
    if plan.source is not None:
        found.append(_place(table, table.asset("source"), "The sensitive table.", plan.source.name, before))
    if plan.release is not None:
        what, behind = "The table that was released.", [table.asset("release")]
        found.append(_place(table, table.released, what, plan.release.name, behind))
    return found


def _place(
    table: TableEntry, key: dg.AssetKey, what: str, kind: str, deps: list[dg.AssetKey]
) -> dg.AssetSpec:
    return dg.AssetSpec(
        key,
        deps=deps,
        group_name=table.key,
        kinds={kind, "table"},
        partitions_def=table.partitions,
        owners=list(table.settings.owners),
        tags=dict(table.settings.tags),
        description="\n\n".join(filter(None, [what, table.settings.description])),
    )


def pages(table: TableEntry, evidence: "Evidence") -> dict[str, Any]:
    """Links to the certificate and the report of an audit."""
    from synth_audit.store.evidence_store import evidence_store

    where = evidence_store(table.workspace).where(evidence.digest)
    links = {
        name: page_link(table.plan.name, evidence.digest, where[name]) for name in ("certificate", "report")
    }
    return {f"{name} link": dg.MetadataValue.url(link) for name, link in links.items() if link}


def events(
    table: TableEntry, stage: str, metadata: dict[str, Any], version: str, partition: str | None = None
) -> Iterator[Any]:
    """What a stage tells of a place that is not its own."""
    tags = {"dagster/data_version": version}
    rows = {"dagster/row_count": metadata.get("dagster/row_count")}
    if stage == "split" and table.plan.source is not None:
        told = {"source, keyed hash": metadata["source, keyed hash"], **rows}
        tags = {"dagster/data_version": metadata["source, keyed hash"]}
        yield dg.AssetObservation(table.asset("source"), metadata=told, tags=tags, partition=partition)
    if stage == "release":
        names = ("table", "where", "certificate link", "released sha256")
        told = {name: metadata[name] for name in names if name in metadata} | rows
        yield dg.AssetMaterialization(table.released, metadata=told, tags=tags, partition=partition)
