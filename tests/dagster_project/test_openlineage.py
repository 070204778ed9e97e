"""OpenLineage's events of a run: who read what, which gates it met, what left."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

Run = Callable[..., dg.ExecuteInProcessResult]


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
