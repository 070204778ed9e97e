"""Snapshots of one table: each audited and released by itself, found by themselves, run again one by one."""

import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pyarrow.parquet as pq
import pytest

from synth_audit.dagster import automation, entry
from synth_audit.dagster.component import AuditedTable
from synth_audit.errors import PlanError
from synth_audit.store.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore::dagster.PreviewWarning")

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
PLACES = {
    "source": "drops/people-{snapshot}.parquet",
    "release": {"parquet": {"path": "out/people-{snapshot}.parquet"}},
}
MONTHS = {"every": "month", "start": "2026-01-01"}
JANUARY, FEBRUARY = "2026-01-01", "2026-02-01"


@pytest.fixture
def drops(home: Path, with_salt: Callable[[Workspace], None]) -> Path:
    rows = pq.read_table(home / "people.parquet")
    folder = home / "drops"
    folder.mkdir()
    for key, part in {JANUARY: rows, FEBRUARY: rows.slice(0, 290)}.items():
        pq.write_table(part, folder / f"people-{key}.parquet")
        with_salt(Workspace(home / "people-audit" / key))
    return folder


@pytest.fixture
def defs_of(component: Callable[..., AuditedTable]) -> Callable[..., dg.Definitions]:
    def make(generator: str = "shuffled", **settings: object) -> dg.Definitions:
        return dg.build_defs_for_component(
            component(generator, **(PLACES | {"snapshots": MONTHS} | settings))
        )

    return make


def run(defs: dg.Definitions, instance: dg.DagsterInstance, key: str) -> dg.ExecuteInProcessResult:
    job = defs.resolve_job_def("people_audit")
    return job.execute_in_process(
        instance=instance, run_config=QUIET, raise_on_error=False, partition_key=key
    )


def test_each_snapshot_is_audited_and_released_by_itself(
    defs_of: Callable[..., dg.Definitions], drops: Path, home: Path
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        results = {key: run(defs_of(), instance, key) for key in (JANUARY, FEBRUARY)}
        refused = run(defs_of("copied"), instance, JANUARY)
        release = dg.AssetKey(["people", "release"])
        assert instance.get_materialized_partitions(release) == {JANUARY, FEBRUARY}
        report = dg.AssetKey(["people", "report"])
        verdict = dg.AssetCheckKey(report, "_verdict")
        graph = defs_of().resolve_asset_graph()
        assert graph.get_check_spec(verdict).partitions_def == graph.get(report).partitions_def
    assert all(result.success for result in results.values())
    for key, result in results.items():
        checks = {c.check_name: (c.passed, c.partition) for c in result.get_asset_check_evaluations()}
        assert checks["_verdict"] == (True, key)
        assert {e.partition for e in result.get_asset_materialization_events()} == {key}
        made = pq.read_table(home / f"out/people-{key}.parquet")
        assert made.num_rows == pq.read_table(home / f"people-audit/{key}/restricted/train.parquet").num_rows
    assert refused.success
    [told] = [e for e in refused.get_asset_observation_events() if e.asset_key == release]
    assert told.partition == JANUARY


def test_a_schedule_runs_the_newest_whole_snapshot(defs_of: Callable[..., dg.Definitions]) -> None:
    made = defs_of(schedule="0 3 2 * *", timezone="Europe/Berlin")
    [schedule] = made.get_repository_def().schedule_defs
    now = datetime(2026, 3, 2, 3, tzinfo=ZoneInfo("Europe/Berlin"))
    with dg.DagsterInstance.ephemeral() as instance:
        ticked = schedule.evaluate_tick(
            dg.build_schedule_context(
                instance, scheduled_execution_time=now, repository_def=made.get_repository_def()
            )
        )
    [request] = ticked.run_requests or []
    assert (request.partition_key, request.run_key) == (FEBRUARY, FEBRUARY)
    assert schedule.execution_timezone == "Europe/Berlin"


def test_a_backfill_of_old_snapshots_does_not_pass_for_news(defs_of: Callable[..., dg.Definitions]) -> None:
    made = defs_of(fresh_hours=48).get_repository_def()
    release = dg.AssetKey(["people", "release"])
    assert made.asset_graph.get(release).freshness_policy is None
    names = [
        k.asset_key.path[-1] for k in made.get_job("people_audit").asset_layer.asset_graph.asset_check_keys
    ]
    assert set(names) == {"report"}, "a run of one snapshot says nothing of another"
    newest = entry.Snapshots.model_validate(MONTHS).partitions("people", "UTC").get_last_partition_key()
    with dg.DagsterInstance.ephemeral() as instance:
        for key, fresh in ((JANUARY, False), (newest, True)):
            instance.report_runless_asset_event(dg.AssetMaterialization(release, partition=key))
            [check] = (
                made.get_job("people_freshness")
                .execute_in_process(instance=instance, run_config=QUIET)
                .get_asset_check_evaluations()
            )
            assert (check.passed, check.severity) == (fresh, dg.AssetCheckSeverity.WARN)


def test_new_files_are_found_once_and_only_when_they_are_whole(
    defs_of: Callable[..., dg.Definitions], drops: Path, tmp_path: Path
) -> None:
    made = defs_of(snapshots={"every": "file"})
    sensor = made.get_repository_def().get_sensor_def("people_snapshots")
    for name in ("people-half.parquet", "people-.parquet", "people-a b.parquet", "other-x.parquet"):
        (drops / name).touch()
    old = time.time() - 2 * automation.SETTLED
    for file in drops.iterdir():
        if file.name != "people-half.parquet":
            os.utime(file, (old, old))

    def tick(instance: dg.DagsterInstance) -> list[str]:
        # As the daemon makes it: what is asked for is compared with the snapshots that there will be.
        context = dg.SensorEvaluationContext(
            instance_ref=instance.get_ref(),
            last_tick_completion_time=None,
            last_run_key=None,
            cursor=None,
            repository_name=None,
            repository_def=made.get_repository_def(),
        )
        told = sensor.evaluate_tick(context)
        for request in told.dynamic_partitions_requests or []:
            instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return [request.partition_key or "" for request in told.run_requests or []]

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        assert tick(instance) == [JANUARY, FEBRUARY]
        assert tick(instance) == []
        os.utime(drops / "people-half.parquet", (old, old))
        assert tick(instance) == ["half"]


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"source": "people.parquet"}, "source"),
        ({"release": {"parquet": {"path": "out/people.parquet"}}}, "release"),
        ({"privacy": {"epsilon": 1, "delta": 1e-6, "rows_per_entity": 1}}, "privacy"),
        ({"snapshots": {"every": "file"}, "schedule": "0 3 * * *"}, "schedule"),
        ({"snapshots": {"every": "file"}, "source": "drops/{snapshot}/people.parquet"}, "source"),
        ({"snapshots": {"every": "file"}, "release": "drops/people-{snapshot}-made.parquet"}, "release"),
        ({"snapshots": {"every": "file"}, "release": "out/../drops/people-x{snapshot}.parquet"}, "release"),
    ],
)
def test_what_snapshots_cannot_be_is_refused(
    component: Callable[..., AuditedTable], settings: dict[str, object], where: str
) -> None:
    with pytest.raises(PlanError) as caught:
        component(**(PLACES | {"snapshots": MONTHS} | settings)).table()
    assert caught.value.where == where


@pytest.mark.parametrize("wrong", [{"every": "month"}, {"every": "file", "start": "2026-01-01"}])
def test_days_have_a_start_and_files_have_none(
    component: Callable[..., AuditedTable], wrong: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="start"):
        component(**(PLACES | {"snapshots": wrong}))


@pytest.mark.parametrize("key", ["../x", "a/b", "", ".", "..", "a b", "a'; DROP TABLE x", "ü"])
def test_a_key_that_leads_elsewhere_is_none(component: Callable[..., AuditedTable], key: str) -> None:
    plan = component(**(PLACES | {"snapshots": MONTHS})).table().plan
    with pytest.raises(PlanError, match="no key of a snapshot"):
        entry.of_snapshot(plan, key)
