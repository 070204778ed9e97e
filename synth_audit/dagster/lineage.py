"""What lies before and behind a table's stages: the sensitive source, and the table that was released."""

# Without `from __future__ import annotations`: Dagster reads the annotations of what it decorates.

from collections.abc import Iterator
from typing import Any

import dagster as dg

from synth_audit.dagster import external_tables
from synth_audit.dagster.entry import TableEntry


def places(table: TableEntry) -> list[dg.AssetSpec]:
    """Source and, where the plan names a target, released table: others make the one and read the other."""
    found = [] if table.settings.made_elsewhere is None else external_tables.specs(table)
    if table.plan.source is not None:
        found.append(_place(table, table.asset("source"), "The sensitive table.", table.plan.source.name))
    if table.plan.release is not None:
        behind = [table.asset("release")]
        kind = table.plan.release.name
        found.append(_place(table, table.released, "The table that was released.", kind, behind))
    return found


def _place(
    table: TableEntry, key: dg.AssetKey, what: str, kind: str, deps: list[dg.AssetKey] | None = None
) -> dg.AssetSpec:
    before = (
        deps if deps is not None else [dg.AssetKey.from_user_string(name) for name in table.settings.deps]
    )
    return dg.AssetSpec(
        key,
        deps=before,
        group_name=table.key,
        kinds={kind, "table"},
        partitions_def=table.partitions,
        owners=list(table.settings.owners),
        tags=dict(table.settings.tags),
        description="\n\n".join(filter(None, [what, table.settings.description])),
    )


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
        told = {"where": metadata["where"], "released sha256": metadata["released sha256"], **rows}
        yield dg.AssetMaterialization(table.released, metadata=told, tags=tags, partition=partition)
