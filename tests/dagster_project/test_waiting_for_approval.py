"""A release that waits for people is no fault of the pipeline, and is told as such."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from synth_audit.dagster.outcomes import MISMATCH, REFUSAL, WAITING, kind_of_failure
from synth_audit.errors import ApprovalMissing, NotAsAudited, ReleaseRefused
from synth_audit.store.approvals import new_key


@pytest.mark.parametrize(
    ("error", "kind"), [(ApprovalMissing, WAITING), (ReleaseRefused, REFUSAL), (NotAsAudited, MISMATCH)]
)
def test_it_is_told_apart_from_a_refusal(error: type[ReleaseRefused], kind: str) -> None:
    assert kind_of_failure(error("release refused: waiting for approval, 1 of 2 are there.")) == kind


def test_a_run_that_waits_is_well_and_says_so(
    run: Callable[..., dg.ExecuteInProcessResult], home: Path, instance: dg.DagsterInstance
) -> None:
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
