"""A Dask scheduler of somebody else: real rows go to it encrypted, and its loss is one clear error."""

import json
import operator
import os
import pickle
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import distributed  # noqa: F401 - its settings must be read before a test changes some of them
import numpy as np
import pyarrow as pa
import pytest
from dask import config

from synth_audit.errors import PlanError, Unavailable, may_pass
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import opened

pytestmark = pytest.mark.xdist_group("dask")
KEYS = ("ca-file", "client.cert", "client.key")


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
    """The address and process of a scheduler with a worker, and what starts another; each is a process."""
    where = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    path = str(Path(__file__).resolve().parents[2])
    quiet["env"] = os.environ | {"PYTHONPATH": path}
    ports = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    scheduler = subprocess.Popen([*dask, "scheduler", *ports, "--scheduler-file", str(where)], **quiet)
    workers = []

    def start():
        command = [*dask, "worker", "--scheduler-file", str(where), "--no-nanny", "--no-dashboard"]
        workers.append(subprocess.Popen(command, **quiet))
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


def test_a_scheduler_that_is_lost_is_one_error_that_may_pass(cluster, capfd, monkeypatch):
    address, scheduler, *_ = cluster
    with opened("dask", scheduler=address) as executor:
        # Dask would try for 30 seconds to find it again: as long as it may take to answer at first.
        monkeypatch.setattr(executor.pool.client, "_timeout", 1)
        monkeypatch.setattr(executor.pool.client.rpc, "timeout", 1)
        context = RunContext(executor=executor)
        assert context.map("piece", abs, [-1, -2]) == [1, 2]
        scheduler.kill()
        scheduler.wait()
        with pytest.raises(Unavailable, match="scheduler has gone") as caught:
            context.map("piece", time.sleep, [5.0, 5.0])
    assert may_pass(caught.value)
    assert "Traceback" not in capfd.readouterr().err


def test_a_table_goes_to_the_cluster_once_and_outlives_the_worker_that_has_it(cluster, monkeypatch):
    address, _, (worker,), start = cluster
    table = pa.table({"x": np.arange(100_000)})
    with opened("dask", scheduler=address) as executor:
        client, sizes = executor.pool.client, []
        submit = client.submit
        monkeypatch.setattr(
            client, "submit", lambda f, *a, **k: sizes.append(len(pickle.dumps(a[0]))) or submit(f, *a, **k)
        )
        context = RunContext(executor=executor)
        rows = operator.attrgetter("num_rows")
        equal = pa.table({"x": np.arange(100_000)})
        assert context.map("piece", rows, [table, equal, table]) == [table.num_rows] * 3
        start()
        client.wait_for_workers(2, timeout=30)
        worker.kill()
        worker.wait()
        assert context.map("piece", rows, [table] * 3) == [table.num_rows] * 3
        assert sorted(sizes)[-1] > table.nbytes > 100 * sorted(sizes)[-2]
        del table, equal
        assert not executor.pool.sent
