"""A Dask scheduler of somebody else: real rows go to it encrypted, and its loss is one clear error."""

import json
import operator
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import distributed  # noqa: F401 - its settings must be read before a test changes some of them
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from dask import config

from synth_audit import api
from synth_audit.errors import PlanError, Unavailable, may_pass
from synth_audit.examination import audit_runner
from synth_audit.execution import dask_cluster
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import SharedValue, opened

pytestmark = pytest.mark.xdist_group("dask")
SEARCHES = ("closest_record", "coverage", "linkability", "inference")
KEYS = ("ca-file", "client.cert", "client.key")
SECRET = "Amsterdam-7391"


def refused(address):
    with ExitStack() as stack, pytest.raises(PlanError) as caught:
        stack.enter_context(opened("dask", scheduler=address))
    return str(caught.value)


@pytest.mark.parametrize("host", ["10.0.0.5", "127.0.0.1.example.org"])
def test_real_rows_are_not_sent_unencrypted_to_another_machine(host):
    told = refused(f"tcp://{host}:8786")
    assert "unencrypted" in told
    assert "tls://" in told


def test_a_tls_scheduler_without_keys_is_refused_at_once():
    start = time.monotonic()
    with config.set({f"distributed.comm.tls.{key}": None for key in KEYS}):
        told = refused("tls://10.0.0.5:8786")
    assert all(f"distributed.comm.tls.{key}" in told for key in KEYS)
    assert time.monotonic() - start < 25, "not after the 30 seconds in which a scheduler may answer"


@pytest.fixture
def cluster(tmp_path):
    """The address and process of a scheduler with a worker, and what starts another; each is a process.

    All that they log and write lies in ``cluster``.
    """
    there = tmp_path / "cluster"
    there.mkdir()
    where = there / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    path = str(Path(__file__).resolve().parents[2])
    spilling = {"DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "1e-9"}  # whatever a worker is given
    env = os.environ | {"PYTHONPATH": path, "TMPDIR": str(there)} | spilling
    ports = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    with (there / "log").open("wb") as log:

        def run(*command):
            return subprocess.Popen([*dask, *command], stdout=log, stderr=log, cwd=there, env=env)

        scheduler = run("scheduler", *ports, "--scheduler-file", str(where))
        workers = []

        def start():
            workers.append(run("worker", "--scheduler-file", str(where), "--no-nanny", "--no-dashboard"))
            return workers[-1]

        start()
        try:
            for _ in range(600):
                if where.exists() and where.read_text().strip():
                    break
                time.sleep(0.1)
            yield json.loads(where.read_text())["address"], scheduler, workers, start
        finally:
            for process in (*workers, scheduler):
                process.kill()
                process.wait()


@pytest.fixture
def hasty(monkeypatch):
    """Dask would try for 30 seconds to find a scheduler again: as long as it may take to answer at first."""
    connected = dask_cluster.connected

    @contextmanager
    def giving_up_soon(*where):
        with connected(*where) as pool:
            pool.client._timeout = pool.client.rpc.timeout = 1
            yield pool

    monkeypatch.setattr(dask_cluster, "connected", giving_up_soon)


@pytest.mark.usefixtures("hasty")
def test_a_scheduler_that_is_lost_is_one_error_that_may_pass(cluster, capfd):
    address, scheduler, *_ = cluster
    with opened("dask", scheduler=address) as executor:
        context = RunContext(executor=executor)
        assert context.map("piece", abs, [-1, -2]) == [1, 2]
        scheduler.kill()
        scheduler.wait()
        with pytest.raises(Unavailable, match="scheduler has gone") as caught:
            context.map("piece", time.sleep, [5.0, 5.0])
    assert may_pass(caught.value)
    assert "Traceback" not in capfd.readouterr().err


def same(rows):
    return rows


class Unreadable:
    """A value whose own reading, on the worker, fails with a cell value in the words."""

    def __reduce__(self):
        return fails_on, (pa.table({"x": [SECRET]}),)


class Unwritable:
    """A result whose own writing fails alike."""

    def __init__(self, _):
        pass

    def __reduce__(self):
        raise ValueError(f"no such value: {SECRET}")


def fails_on(rows):
    raise ValueError(f"no such value: {rows.column(0)[0]}")


def test_no_value_is_left_where_a_cluster_writes(cluster, audit, tmp_path):
    """Its workers write all they are given to their disks."""
    with opened("dask", scheduler=cluster[0]) as executor:
        context, table = RunContext(executor=executor), pa.table({"x": [SECRET] * 10_000})
        for rows in (table, table.slice(0, 3)):  # sent once for all, and with the call
            assert context.map("piece", same, [rows, rows]) == [rows, rows]
            with pytest.raises(ValueError, match=SECRET):
                context.map("piece", fails_on, [rows, rows])
        assert context.map("piece", type, [Unreadable(), Unreadable()]) == [Unreadable] * 2, "done here"
        assert [*map(type, context.map("piece", Unwritable, [1, 2]))] == [Unwritable] * 2, "done here"
        seen = written(tmp_path / "cluster")
        assert sum(len(content) for content in seen.values()) > table.nbytes
    audit(scheduler=cluster[0])
    for name, content in (seen | written(tmp_path / "cluster")).items():
        assert SECRET.encode() not in content, name


def written(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def sizes(monkeypatch):
    """How large each thing is that goes to a cluster, from the call on that is made with its client."""

    def of(client):
        found, submit = [], client.submit
        monkeypatch.setattr(
            client, "submit", lambda f, *a, **k: found.append(len(pickle.dumps(a[0]))) or submit(f, *a, **k)
        )
        return found

    return of


class Numbers(SharedValue):
    def __init__(self, n):
        self.numbers = list(range(n))


def test_a_value_that_pieces_share_goes_to_the_cluster_once(cluster, sizes):
    shared = Numbers(100_000)
    whole = len(pickle.dumps(shared))
    with opened("dask", scheduler=cluster[0]) as executor:
        sent = sizes(executor.pool.client)
        found = RunContext(executor=executor).map("piece", operator.attrgetter("numbers"), [shared] * 3)
        assert found == [shared.numbers] * 3
        assert sorted(sent)[-1] >= whole > 100 * sorted(sent)[-2]
        del shared
        assert not executor.pool.sent


def test_a_table_goes_to_the_cluster_once_and_outlives_the_worker_that_has_it(cluster, sizes):
    address, _, (worker,), start = cluster
    table = pa.table({"x": np.arange(100_000)})
    with opened("dask", scheduler=address) as executor:
        client = executor.pool.client
        sent = sizes(client)
        context = RunContext(executor=executor)
        rows = operator.attrgetter("num_rows")
        equal = pa.table({"x": np.arange(100_000)})
        assert context.map("piece", rows, [table, equal, table]) == [table.num_rows] * 3
        start()
        client.wait_for_workers(2, timeout=30)
        worker.kill()
        worker.wait()
        assert context.map("piece", rows, [table] * 3) == [table.num_rows] * 3
        assert sorted(sent)[-1] > table.nbytes > 100 * sorted(sent)[-2]
        del table, equal
        assert not executor.pool.sent


@pytest.fixture
def audit(population, tmp_path):
    """Audits that search, in one workspace; ``then`` is called when the first has ended."""
    # Too few rows to plant leaks among.
    tables = [
        t.set_column(2, "region", pc.replace_substring(t["region"], "a", SECRET))
        for t in (population(38, 1), population(30, 2), population(38, 3))
    ]

    def run(then=None, *, anew=False, **where):
        waiting = [then] if then else []
        if anew:
            shutil.rmtree(tmp_path / "out/restricted/outcomes")

        def tell(what, done, total):
            if done and waiting:
                waiting.pop()()

        return api.audit(*tables, only=SEARCHES, out=tmp_path / "out", progress=tell, **where)

    return run


def test_audits_outlive_a_killed_worker_and_end_in_the_same_evidence(cluster, audit):
    address, _, (worker,), start = cluster

    def exchange():
        """All that is at work is with the worker that dies."""
        worker.kill()
        worker.wait()
        start()

    there = audit(exchange, scheduler=address)
    assert worker.returncode == -signal.SIGKILL
    assert {o.audit: o.status for o in there.outcomes} == dict.fromkeys(SEARCHES, "measured")
    assert there.digest == audit(anew=True).digest


@pytest.mark.usefixtures("hasty")
def test_what_ended_before_the_scheduler_was_killed_is_not_measured_again(cluster, audit, monkeypatch):
    address, scheduler, *_ = cluster
    with pytest.raises(Unavailable, match="scheduler has gone") as caught:
        audit(scheduler.kill, scheduler=address)
    assert may_pass(caught.value)
    measured, run = [], audit_runner._run_one
    monkeypatch.setattr(audit_runner, "_run_one", lambda c, task: measured.append(task.name) or run(c, task))
    resumed = audit()
    assert 0 < len(measured) < len(SEARCHES)
    assert resumed.digest == audit(anew=True).digest
    assert len(measured) > len(SEARCHES)
