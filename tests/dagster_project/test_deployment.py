"""A deployment as its page describes it: code server, web server and daemon as processes, each run another.

``SYNTH_AUDIT_DEPLOYED`` names the environment that they run from, such as one with the built wheel and
``dagster-postgres``. There Dagster's record of runs is a PostgreSQL, with the settings of
``docs/deployment/dagster.yaml``; in the tests' own environment it is files.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow.parquet as pq
import pytest

from synth_audit.store.workspace import Workspace

ROOT = Path(__file__).parents[2]
BIN = Path(os.environ.get("SYNTH_AUDIT_DEPLOYED", Path(sys.executable).parents[1])) / "bin"
PATIENCE = 900
SECRET = "Amsterdam-7391"
STAGES = ("split", "synthetic", "audit", "report", "release")

LOCATION = '''
"""Tables of a test. The stage that a file `hold` names waits when its work is done, before Dagster knows."""
import os, time
from dataclasses import replace
from pathlib import Path
import dagster as dg
from synth_audit.dagster import assets
from synth_audit.dagster.component import AuditedTable, TableSettings

HOME = Path(__file__).parent

def held(stage):
    def run(table, how):
        told = stage.run(table, how)
        while (HOME / "hold").exists() and (HOME / "hold").read_text() == f"{table.plan.name} {stage.name}":
            (HOME / "held").write_text(str(os.getpid()))
            time.sleep(0.1)
        return told
    return replace(stage, run=run)

assets.STAGES = tuple(map(held, assets.STAGES))

def table(name, **settings):
    settings |= {
        "source": f"{name}/{{snapshot}}.parquet",
        "release": {"parquet": {"path": f"out/{name}-{{snapshot}}.parquet"}},
        "columns": {"id": {"role": "identifier"}},
        "generator": "independent", "audits": ["exact_match"], "gates": "gates.json",
    }
    made = AuditedTable(settings=TableSettings.model_validate(settings), folder=name, home=HOME)
    return dg.build_defs_for_component(made)

defs = dg.Definitions.merge(
    table("people", snapshots={"every": "day", "start": "START"}, schedule="* * * * *"),
    table("files", snapshots={"every": "file"}),
    dg.Definitions(executor=dg.in_process_executor),
)
'''

BACKFILL = """mutation($p: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $p) { __typename ... on PythonError { message } } }"""
SCHEDULE = """mutation($s: ScheduleSelector!) {
  startSchedule(scheduleSelector: $s) { __typename ... on PythonError { message } } }"""
SENSOR = """mutation($s: SensorSelector!) {
  startSensor(sensorSelector: $s) { __typename ... on PythonError { message } } }"""
RUNS = "{ runsOrError { ... on Runs { results { status startTime tags { key value } } } } }"
OVER = ("SUCCESS", "FAILURE", "CANCELED")


@dataclass
class Deployment:
    home: Path
    url: str

    def ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})  # noqa: S310
        try:
            with urlopen(request, timeout=120) as answer:  # noqa: S310
                found = json.load(answer)
        except HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from None
        assert "errors" not in found, found
        assert "Error" not in json.dumps([v.get("__typename", "") for v in found["data"].values()]), found
        return found["data"]

    def runs(self, key: str) -> list[tuple[str, str]]:
        """Status and outcome of the runs of a snapshot, oldest first."""
        found = []
        for run in reversed(self.ask(RUNS)["runsOrError"]["results"]):
            tags = {tag["key"]: tag["value"] for tag in run["tags"]}
            outcome = next((v for k, v in tags.items() if k.startswith("synth_audit/outcome")), "")
            if tags.get("dagster/partition") == key:
                found.append((run["status"], outcome))
        return found

    def finished(self, key: str, number: int) -> list[tuple[str, str]]:
        wait(lambda: len(self.runs(key)) >= number and all(s in OVER for s, _ in self.runs(key)))
        return self.runs(key)

    def backfill(self, *keys: str) -> None:
        assets = [{"path": ["people", stage]} for stage in STAGES]
        self.ask(BACKFILL, p={"partitionNames": keys, "assetSelection": assets})

    def start(self, query: str, kind: str, name: str) -> None:
        where = {"repositoryName": "__repository__", "repositoryLocationName": "deployed"}
        self.ask(query, s=where | {f"{kind}Name": name})


def wait(done: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(2)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def served(home: Path, *words: str) -> Iterator[None]:
    with (home / f"{words[0]}.log").open("wb") as log:
        running = subprocess.Popen(
            [str(BIN / words[0]), *words[1:]], cwd=home, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(running.pid, signal.SIGTERM)
            running.wait(60)


@pytest.fixture
def days() -> list[str]:
    return [(datetime.now(UTC).date() - timedelta(days=n)).isoformat() for n in (3, 2, 1)]


@pytest.fixture
def deployment(
    home: Path,
    days: list[str],
    with_salt: Callable[[Workspace], None],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Deployment]:
    rows, old = pq.read_table(home / "people.parquet"), time.time() - 3600
    for table, keys in {"people": (days[0], days[2]), "files": ("drop",)}.items():
        (home / table).mkdir()
        for key in keys:  # a day is missing
            pq.write_table(rows, home / table / f"{key}.parquet")
            os.utime(home / table / f"{key}.parquet", (old, old))
            with_salt(Workspace(home / f"{table}-audit" / key))
    (home / "deployed.py").write_text(LOCATION.replace("START", days[0]))
    (home / "dagster").mkdir()
    settings = (ROOT / "docs/deployment/dagster.yaml").read_text()
    if (BIN / "python").exists() and not subprocess.run(
        [BIN / "python", "-c", "import dagster_postgres"], capture_output=True, cwd=home
    ).returncode:
        server = request.getfixturevalue("postgres")
        server.run("CREATE ROLE dagster LOGIN PASSWORD 'of-this-test'")
        server.run("CREATE DATABASE dagster OWNER dagster")
        settings = settings.replace("port: 5432", f"port: {server.port}")
    else:
        settings = re.sub(r"(?ms)^storage:.*?(?=^\w)", "", settings)
    (home / "dagster/dagster.yaml").write_text(settings)
    code, web = free_port(), free_port()
    (home / "workspace.yaml").write_text(
        f"load_from: [{{grpc_server: {{host: 127.0.0.1, port: {code}, location_name: deployed}}}}]\n"
    )
    for name, value in {
        "DAGSTER_HOME": str(home / "dagster"),
        "DAGSTER_PG_HOST": "127.0.0.1",
        "DAGSTER_PG_PASSWORD": "of-this-test",
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": os.pathsep.join(
            [str(home), *([] if "SYNTH_AUDIT_DEPLOYED" in os.environ else sys.path)]
        ),
    }.items():
        monkeypatch.setenv(name, value)
    found = Deployment(home, f"http://127.0.0.1:{web}")
    with ExitStack() as stack:
        words = ("code-server", "start", "-m", "deployed", "-h", "127.0.0.1", "-p", str(code))
        stack.enter_context(served(home, "dagster", *words))
        wait(lambda: _listens(code))
        stack.enter_context(served(home, "dagster-webserver", "-w", "workspace.yaml", "-p", str(web)))
        stack.enter_context(served(home, "dagster-daemon", "run", "-w", "workspace.yaml"))
        wait(lambda: _listens(web))
        yield found


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_backfill_schedule_sensor_and_a_kill_in_each_stage(deployment: Deployment, days: list[str]) -> None:
    home, (first, missing, last) = deployment.home, days
    deployment.backfill(*days)
    assert deployment.finished(first, 1) == [("SUCCESS", "released")]
    assert deployment.finished(last, 1) == [("SUCCESS", "released")]
    assert [status for status, _ in deployment.finished(missing, 1)] == ["FAILURE"], "it stops no other"
    assert {p.name for p in (home / "out").iterdir()} == {f"people-{d}.parquet" for d in (first, last)}

    deployment.start(SCHEDULE, "schedule", "people_schedule")
    deployment.start(SENSOR, "sensor", "files_snapshots")
    assert deployment.finished(last, 2)[1] == ("SUCCESS", "released")
    assert deployment.finished("drop", 1) == [("SUCCESS", "released")]

    released = pq.read_table(home / f"out/people-{first}.parquet")
    for kills, stage in enumerate(STAGES, start=1):
        (home / "hold").write_text(f"people-{first} {stage}")
        deployment.backfill(first)
        wait((home / "held").exists)
        os.kill(int((home / "held").read_text()), signal.SIGKILL)
        (home / "hold").unlink()
        (home / "held").unlink()
        (status, outcome), repeated = deployment.finished(first, 1 + 2 * kills)[-2:]
        assert (status, outcome in ("", "open")) == ("FAILURE", True), f"killed in {stage}"
        assert repeated == ("SUCCESS", "released"), f"killed in {stage}"
        assert pq.read_table(home / f"out/people-{first}.parquet") == released
    deployment.backfill(first)
    assert deployment.finished(first, 2 + 2 * len(STAGES))[-1] == ("SUCCESS", "released")

    seen = [p.read_bytes() for p in home.rglob("*.log")] + [
        p.read_bytes() for p in (home / "dagster").rglob("*") if p.is_file()
    ]
    if "postgres:" in (home / "dagster/dagster.yaml").read_text():
        seen.append(_dumped(home))
    assert seen
    assert not any(SECRET.encode() in content for content in seen)


def _dumped(home: Path) -> bytes:
    """All that Dagster wrote into its database."""
    sys.path.insert(0, str(ROOT / "tests"))
    from postgres_server import binaries

    port = re.search(r"port: (\d+)", (home / "dagster/dagster.yaml").read_text())
    programs = binaries()
    assert programs is not None
    assert port is not None
    return subprocess.run(
        [programs / "pg_dump", "-h", "127.0.0.1", "-p", port[1], "-U", "dagster", "dagster"],
        env={**os.environ, "PGPASSWORD": "of-this-test"},
        capture_output=True,
        check=True,
    ).stdout
