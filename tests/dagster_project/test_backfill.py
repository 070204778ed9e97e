"""A backfill as people start it: Dagster's daemon runs each snapshot, and one that breaks stops no other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest
from dagster._core.execution.backfill import BulkActionStatus

from synth_audit.store.workspace import Workspace

LOCATION = """
from pathlib import Path
import dagster as dg
from synth_audit.dagster.component import AuditedTable, TableSettings

settings = TableSettings.model_validate({
    "source": "drops/people-{snapshot}.parquet",
    "release": {"parquet": {"path": "out/people-{snapshot}.parquet"}},
    "snapshots": {"every": "month", "start": "2026-01-01"},
    "columns": {"id": {"role": "identifier"}},
    "generator": "independent", "audits": ["exact_match"], "gates": "gates.json",
})
table = AuditedTable(settings=settings, folder="people", home=Path(__file__).parent)
defs = dg.Definitions.merge(
    dg.build_defs_for_component(table), dg.Definitions(executor=dg.in_process_executor)
)
"""
JANUARY, FEBRUARY, MARCH = "2026-01-01", "2026-02-01", "2026-03-01"
PATIENCE = 240


@pytest.fixture
def place(home: Path, with_salt: Callable[[Workspace], None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A location on a disk, with the snapshots of January and March and none of February."""
    (home / "drops").mkdir()
    for key in (JANUARY, MARCH):
        pq.write_table(pq.read_table(home / "people.parquet"), home / f"drops/people-{key}.parquet")
        with_salt(Workspace(home / "people-audit" / key))
    (home / "location.py").write_text(LOCATION)
    (home / "dagster").mkdir()
    (home / "dagster/dagster.yaml").write_text("telemetry: {enabled: false}\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home / "dagster"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return home


@contextmanager
def daemon(home: Path) -> Iterator[None]:
    command = [str(Path(sys.executable).with_name("dagster-daemon")), "run", "-f", "location.py"]
    with (home / "daemon.log").open("wb") as log:
        running = subprocess.Popen(command, cwd=home, stdout=log, stderr=log)
        try:
            yield
        finally:
            running.terminate()
            running.wait(60)


@pytest.mark.slow
def test_a_backfill_runs_every_snapshot_and_one_that_breaks_stops_no_other(place: Path) -> None:
    asked = ["job", "backfill", "-f", "location.py", "-j", "people_audit", "--noprompt"]
    with daemon(place), dg.DagsterInstance.get() as instance:
        subprocess.run(
            [sys.executable, "-m", "dagster", *asked, "--from", JANUARY, "--to", MARCH], cwd=place, check=True
        )
        [backfill] = instance.get_backfills()
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not _over(instance, backfill.backfill_id):
            time.sleep(1)
        runs = {r.tags["dagster/partition"]: r for r in instance.get_runs()}
        release = dg.AssetKey(["people", "release"])
        assert {key: run.status.value for key, run in runs.items()} == {
            JANUARY: "SUCCESS",
            FEBRUARY: "FAILURE",
            MARCH: "SUCCESS",
        }
        assert instance.get_materialized_partitions(release) == {JANUARY, MARCH}
    assert {run.tags["synth_audit/outcome.people"] for k, run in runs.items() if k != FEBRUARY} == {
        "released"
    }
    assert {p.name for p in (place / "out").iterdir()} == {f"people-{k}.parquet" for k in (JANUARY, MARCH)}


def _over(instance: dg.DagsterInstance, backfill_id: str) -> bool:
    found = instance.get_backfill(backfill_id)
    done = [run for run in instance.get_runs() if run.is_finished]
    return found is not None and found.status is not BulkActionStatus.REQUESTED and len(done) == 3
