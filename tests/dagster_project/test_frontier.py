"""The sweep as an asset: beside the audit and never part of it, and said without a cell value."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from synth_audit.dagster.component import AuditedTable
from synth_audit.errors import PlanError
from synth_audit.studies.frontier import read_frontier

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SPEC = {"generators": ["shuffled", "copied", "broken"], "privacy": "exact_match.excess"}
KEY = dg.AssetKey(["people", "frontier"])
Make = Callable[..., AuditedTable]


def swept(component: Make, instance: dg.DagsterInstance, **settings: object) -> dg.ExecuteInProcessResult:
    made = dg.build_defs_for_component(component("shuffled", **settings))
    job = made.resolve_job_def("people_frontier")
    return job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)


def test_only_a_plan_that_asks_for_a_sweep_has_the_asset(component: Make) -> None:
    without = dg.build_defs_for_component(component())
    assert KEY not in without.resolve_asset_graph().get_all_asset_keys()
    assert [j.name for j in without.jobs or []] == ["people_audit"]
    made = dg.build_defs_for_component(component(frontier=SPEC))
    graph = made.resolve_asset_graph()
    assert graph.get(KEY).parent_keys == {dg.AssetKey(["people", "split"])}
    assert {j.name for j in made.jobs or []} == {"people_audit", "people_frontier"}
    audit = made.resolve_job_def("people_audit")
    assert KEY not in audit.asset_layer.executable_asset_keys
    assert made.resolve_job_def("people_frontier").asset_layer.executable_asset_keys == {KEY}


def test_the_code_version_follows_what_is_asked(component: Make) -> None:
    tables = [component(frontier={**SPEC, "alpha": alpha}).table() for alpha in (0.5, 0.6, 0.5)]
    a, b, c = (t.code_version("frontier") for t in tables)
    assert a == c != b
    assert len({t.code_version("audit") for t in tables}) == 1


def test_it_runs_alone_and_says_what_was_chosen(
    component: Make, instance: dg.DagsterInstance, home: Path
) -> None:
    result = swept(component, instance, frontier=SPEC)
    assert result.success
    [event] = result.get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert metadata["candidates"].value == 3
    assert metadata["chosen"].value == "shuffled"
    rows = [record.data for record in metadata["all candidates"].value.records]
    assert [r["verdict"] for r in rows] == ["pass", "fail", "error"]
    assert rows[2]["problem"]
    said = "\n".join(repr(entry) for entry in instance.all_logs(result.run_id))
    assert "Amsterdam-7391" not in said, "a value of the table, and what the broken generator says"
    record = read_frontier(home / "people-audit/review/frontier.json")
    assert metadata["reason"].value == record.reason
    assert event.materialization.tags["dagster/data_version"] == record.digest
    assert not (home / "out").exists(), "nothing is released"


@pytest.mark.parametrize(
    ("frontier", "message"),
    [
        ({}, "nothing to sweep"),
        ({"generators": ["nobody"]}, "unknown generator"),
        ({"generators": ["shuffled"], "privacy": "exact_match.nonsense"}, "no measurement"),
    ],
)
def test_what_cannot_be_swept_does_not_load(
    component: Make, frontier: dict[str, object], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        dg.build_defs_for_component(component("shuffled", frontier=frontier))


@pytest.mark.parametrize("frontier", [{"vary": {"strength": []}}, {"alpha": 2}])
def test_a_malformed_key_does_not_load(component: Make, frontier: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="frontier"):
        component(frontier=frontier)
