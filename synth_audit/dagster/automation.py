"""What starts runs of a table: its schedule, new files of its source, the last approval, and the clock."""

# Without `from __future__ import annotations`: Dagster reads the annotations of what it decorates.

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from synth_audit.dagster.entry import TableEntry, key_of, pattern_of
from synth_audit.errors import SynthAuditError
from synth_audit.plan.plan import Plan

SETTLED = 60.0
"""Seconds for which a file must not have changed before it is taken for a whole snapshot."""


def settled_files(pattern: Path, now: float) -> list[str]:
    """Keys of the files that fit a pattern and have not changed for a while, in order."""
    found = {file: key_of(file.name, pattern) for file in pattern.parent.glob("*")}
    return sorted(key for file, key in found.items() if key and _settled(file, now))


def _settled(file: Path, now: float) -> bool:
    try:
        return file.is_file() and now - file.stat().st_mtime >= SETTLED
    except OSError:  # gone meanwhile
        return False


def sensor_of(
    table: str, plan: Plan, job: "dg.UnresolvedAssetJobDefinition", partitions: dg.DynamicPartitionsDefinition
) -> dg.SensorDefinition:
    """Adds a snapshot for each new file of the source and runs it once; off until it is switched on."""
    pattern = pattern_of(plan)
    assert pattern is not None  # refused before

    @dg.sensor(name=f"{table}_snapshots", job=job, minimum_interval_seconds=60)
    def new_snapshots(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        known = set(context.instance.get_dynamic_partitions(str(partitions.name)))
        new = [key for key in settled_files(pattern, time.time()) if key not in known]
        return dg.SensorResult(
            run_requests=[dg.RunRequest(run_key=key, partition_key=key) for key in new],
            dynamic_partitions_requests=[partitions.build_add_request(new)] if new else [],
        )

    return new_snapshots


def schedule_of(
    table: str,
    job: "dg.UnresolvedAssetJobDefinition",
    partitions: dg.PartitionsDefinition[str],
    cron: str,
    timezone: str,
) -> dg.ScheduleDefinition:
    """Runs the newest snapshot whose time is over, at each tick; off until it is switched on."""

    @dg.schedule(name=f"{table}_schedule", job=job, cron_schedule=cron, execution_timezone=timezone)
    def newest_snapshot(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        with dg.partition_loading_context(context.scheduled_execution_time):
            key = partitions.get_last_partition_key()
        return dg.RunRequest(run_key=key, partition_key=key) if key else dg.SkipReason("no snapshot yet")

    return newest_snapshot


def approvals_of(table: TableEntry) -> dg.SensorDefinition:
    """Releases what was waiting, once the last approval is there; off until it is switched on."""
    out = [table.asset("release"), table.released]

    @dg.sensor(
        name=f"{table.key}_approvals",
        target=dg.AssetSelection.assets(*out),
        minimum_interval_seconds=60,
    )
    def approved(context: dg.SensorEvaluationContext) -> list[dg.RunRequest]:
        from synth_audit.pipeline.approval import approved_release

        keys: list[str | None] = [None]
        if table.partitions is not None:
            keys = list(context.instance.get_materialized_partitions(table.asset("report")))
        due = []
        for key in keys:
            try:
                here = table if key is None else table.snapshot(key)
                found = approved_release(here.plan, here.workspace)
            except SynthAuditError as error:  # one snapshot must not hold up the others
                context.log.warning(f"{table.key} {key or ''}: {error}")
                continue
            if found:
                due.append(dg.RunRequest(run_key=f"{key or ''}{found}", partition_key=key))
        return due

    return approved


def freshness_of(
    table: TableEntry, partitions: dg.TimeWindowPartitionsDefinition, hours: float
) -> tuple[dg.AssetChecksDefinition, dg.ScheduleDefinition]:
    """A check whether the newest snapshot was released in time, and an hourly schedule that is off at first.

    Dagster's freshness policies look at the newest event of any partition, so a backfill of old snapshots
    would pass for news.
    """
    release = table.asset("release")

    @dg.asset_check(
        asset=release,
        name="newest_snapshot_released",
        description=f"Was each snapshot released within {hours:g} hours of its end?",
    )
    def fresh(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        with dg.partition_loading_context(datetime.now(UTC) - timedelta(hours=hours)):
            key = partitions.get_last_partition_key()
        there = key is None or key in context.instance.get_materialized_partitions(release)
        return dg.AssetCheckResult(
            passed=there,
            severity=dg.AssetCheckSeverity.WARN,
            description="Yes."
            if there
            else f"Snapshot {key} ended over {hours:g} hours ago and is not released.",
        )

    job = dg.define_asset_job(f"{table.key}_freshness", selection=dg.AssetSelection.checks(fresh))
    return fresh, dg.ScheduleDefinition(job=job, cron_schedule="0 * * * *")
