"""Tables that others made go through audit, report and release; nothing is split or fitted."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.dagster.component import TableSettings
from synth_audit.errors import PlanError

Run = Callable[..., dg.ExecuteInProcessResult]
PLACES = {name: f"{name}.parquet" for name in ("train", "control", "synthetic")}
NOTHING = {"source": None, "made_elsewhere": PLACES}


@pytest.fixture
def vendor(home: Path) -> Callable[[bool], None]:
    """Writes the three tables: an independent draw, or a copy of train."""

    def write(copied: bool) -> None:
        whole = pq.read_table(home / "people.parquet")
        train, control = whole.slice(0, 200), whole.slice(200)
        rng = np.random.default_rng(2)
        mixed = {n: train[n].take(pa.array(rng.integers(200, size=200))) for n in ("city", "x", "y")}
        made = train.drop_columns(["id"]) if copied else pa.table(mixed)
        for name, table in {"train": train, "control": control, "synthetic": made}.items():
            pq.write_table(table, home / f"{name}.parquet")

    return write


def ended(run: Run) -> tuple[bool, list[str]]:
    result = run(None, **NOTHING)
    keys = [e.asset_key.path[-1] for e in result.get_asset_materialization_events()]
    return result.success, keys


def test_a_safe_table_is_released_as_it_lies_there(run: Run, vendor: Any, home: Path) -> None:
    vendor(False)
    assert ended(run) == (True, ["audit", "report", "release", "released"])
    assert pq.read_table(home / "out/released.parquet").num_rows == 200
    assert not (home / "people-audit/restricted/train.parquet").exists()


def test_a_copy_is_refused_and_so_is_a_table_that_was_exchanged(run: Run, vendor: Any, home: Path) -> None:
    vendor(True)
    assert ended(run) == (True, ["audit", "report"])
    vendor(False)
    assert run(None, "audit", "report", **NOTHING).success
    table = pq.read_table(home / "synthetic.parquet")
    pq.write_table(table.slice(1), home / "synthetic.parquet")
    result = run(None, "release", **NOTHING)
    [failure] = [e.step_failure_data.user_failure_data for e in result.get_step_failure_events()]
    assert "not the bytes that were audited" in failure.description
    assert not (home / "out").exists()


def test_the_three_tables_stand_in_the_lineage(component: Callable[..., Any]) -> None:
    graph = dg.build_defs_for_component(
        component(None, deps=["vendor/drop"], **NOTHING)
    ).resolve_asset_graph()
    audit = graph.get(dg.AssetKey(["people", "audit"]))
    assert {key.path[-1] for key in audit.parent_keys} == set(PLACES)
    assert graph.get(dg.AssetKey(["people", "train"])).parent_keys == {dg.AssetKey(["vendor", "drop"])}
    assert dg.AssetKey(["people", "split"]) not in graph.get_all_asset_keys()


def test_what_contradicts_it_is_refused(component: Callable[..., Any]) -> None:
    with pytest.raises(PlanError) as caught:
        component("shuffled", **NOTHING).table()
    assert caught.value.where == "generator"
    with pytest.raises(ValueError, match="same table"):
        component(None, source=None, made_elsewhere=PLACES | {"control": "train.parquet"})


def test_the_schema_knows_it() -> None:
    checker = jsonschema.Draft202012Validator(TableSettings.model_json_schema())
    assert checker.is_valid({"made_elsewhere": PLACES})
    for wrong in ({"train": "a.csv"}, PLACES | {"train": "nonsense"}, PLACES | {"other": "a.csv"}):
        assert not checker.is_valid({"made_elsewhere": wrong})


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    monkeypatch.setenv("SYNTH_AUDIT_OPENLINEAGE", str(tmp_path / "events.jsonl"))
    return lambda: [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]


def test_a_release_tells_where_it_came_from_and_what_was_asserted(
    run: Run, home: Path, events: Callable[[], list[dict[str, Any]]]
) -> None:
    result = run("shuffled")
    audit, release = events()
    assert [e["job"]["name"] for e in (audit, release)] == ["people_audit.audit", "people_audit.release"]
    for event in (audit, release):
        assert event["eventType"] == "COMPLETE"
        assert event["run"]["facets"]["parent"]["run"]["runId"] == result.run_id
        assert uuid.UUID(event["run"]["runId"])
        assert event["inputs"][0]["name"] == str(home / "people.parquet")
    [out] = release["outputs"]
    assert (out["namespace"], out["name"]) == ("file", str(home / "out/released.parquet"))
    assert [f["name"] for f in out["facets"]["schema"]["fields"]] == ["city", "x", "y"]
    train = json.loads((home / "people-audit/restricted/split.json").read_text())["train"]["rows"]
    assert out["outputFacets"]["outputStatistics"]["rowCount"] == train
    asserted = audit["inputs"][1]["inputFacets"]["dataQualityAssertions"]["assertions"]
    found = {a["assertion"]: (a["success"], a["severity"]) for a in asserted}
    assert found["no-copies"] == (True, "error")
    assert found["few.copies"] == (False, "warn")


def test_a_refusal_is_an_event_without_output_and_holds_no_cell(
    run: Run, events: Callable[[], list[dict[str, Any]]]
) -> None:
    run("copied")
    audit, release = events()
    assert not all(
        a["success"] for a in audit["inputs"][1]["inputFacets"]["dataQualityAssertions"]["assertions"]
    )
    assert (release["eventType"], release["outputs"]) == ("ABORT", [])
    assert "verdict is fail" in release["run"]["facets"]["errorMessage"]["message"]
    assert "Amsterdam" not in json.dumps([audit, release])


@pytest.mark.parametrize("target", ["http://127.0.0.1:1/secret-path", "/nonexistent/events.jsonl"])
def test_a_target_that_takes_nothing_changes_nothing(
    run: Run, home: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setenv("SYNTH_AUDIT_OPENLINEAGE", target)
    result = run("shuffled")
    assert result.success
    assert (home / "out/released.parquet").is_file()
    said = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert any("SYNTH_AUDIT_OPENLINEAGE did not take" in text for text in said)
    assert not any("secret-path" in text for text in said)
