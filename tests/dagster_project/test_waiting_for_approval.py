"""A release that waits for people is no fault of the pipeline, and is told as such."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from synth_audit.dagster.component import AuditedTable
from synth_audit.dagster.outcomes import MISMATCH, REFUSAL, WAITING, kind_of_failure
from synth_audit.errors import ApprovalMissing, NotAsAudited, ReleaseRefused
from synth_audit.pipeline.approval import approve
from synth_audit.store.approvals import new_key
from synth_audit.store.locate import locate_evidence

Run = Callable[..., dg.ExecuteInProcessResult]


@pytest.mark.parametrize(
    ("error", "kind"), [(ApprovalMissing, WAITING), (ReleaseRefused, REFUSAL), (NotAsAudited, MISMATCH)]
)
def test_it_is_told_apart_from_a_refusal(error: type[ReleaseRefused], kind: str) -> None:
    assert kind_of_failure(error("release refused: waiting for approval, 1 of 2 are there.")) == kind


def test_a_run_that_waits_is_well_and_says_so(run: Run, home: Path, instance: dg.DagsterInstance) -> None:
    who = {"Ann": new_key(home / "ann.pem")}
    target = {"parquet": {"path": "out/released.parquet"}, "approvals": 1, "approvers": who}
    result = run("shuffled", release=target)
    assert result.success
    assert not (home / "out").exists()
    record = instance.get_run_by_id(result.run_id)
    assert record is not None
    assert record.tags["synth_audit/outcome.people"] == "not released: waiting for approval"
    [told] = [e for e in result.get_asset_observation_events() if e.asset_key.path[-1] == "release"]
    assert told.asset_observation_data.asset_observation.metadata["kind"].value == WAITING


def test_the_last_approval_starts_the_release_once(
    run: Run, component: Callable[..., AuditedTable], home: Path, instance: dg.DagsterInstance
) -> None:
    who = {name: new_key(home / f"{name}.pem") for name in ("Ann", "Bob")}
    target = {"parquet": {"path": "out/released.parquet"}, "approvals": 2, "approvers": who}
    made = dg.build_defs_for_component(component("shuffled", release=target)).get_repository_def()
    sensor = made.get_sensor_def("people_approvals")

    def due() -> list[str | None]:
        context = dg.build_sensor_context(instance, repository_def=made)
        return [request.run_key for request in sensor.evaluate_tick(context).run_requests or []]

    assert due() == []
    run("shuffled", release=target)
    for name in who:
        assert due() == []
        until = datetime.now(UTC).date() + timedelta(days=9)
        approve(locate_evidence(home / "people-audit"), by=name, key=home / f"{name}.pem", until=until)
    assert len(due()) == 1
    assert due() == due(), "asked again under the same key, which Dagster runs once"
    run("shuffled", "release", release=target)
    assert (home / "out/released.parquet").is_file()
    assert due() == []
