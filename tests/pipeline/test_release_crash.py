"""Whatever goes wrong in the middle of a release, the last good one stays."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import duckdb
import pyarrow.parquet as pq
import pytest

from synth_audit.core.errors import DataError
from synth_audit.core.fingerprint import fingerprint
from synth_audit.pipeline import release as room
from synth_audit.pipeline import stages as pipeline

TARGETS = {
    "parquet": {"parquet": {"path": "there/released.parquet"}},
    "duckdb": {"duckdb": {"path": "there/warehouse.duckdb", "table": "released.people"}},
}


class FullDisk:
    """A connection that runs out of space at the very end."""

    def __init__(self, connection):
        self._connection = connection

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def commit(self):
        raise duckdb.IOException("No space left on device")


def _half_written(data, path, *args, **kwargs):
    path.write_bytes(b"PAR1 the first half")
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


def fill_the_disk(monkeypatch, target):
    if target == "parquet":
        monkeypatch.setattr(pq, "write_table", _half_written)
        return
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: FullDisk(connect(*a, **k)))


@pytest.fixture(params=sorted(TARGETS))
def target(request):
    return request.param


@pytest.fixture
def before(case, target, make_people, monkeypatch):
    """A case whose plan leads to ``target``, where an older release already is; and that release."""
    plan = case.replan(release=TARGETS[target])
    old = make_people(30, seed=3).drop_columns(["person"])
    plan.build_release().write(old, plan.base)
    monkeypatch.setattr(room, "refuse_unless_allowed", lambda *a: None)  # what is tested here comes after it
    return case, fingerprint(old)


def there(case):
    return {p.name for p in (case.folder / "there").iterdir()}


def test_a_full_disk_leaves_the_last_good_release_and_nothing_else(before, target, monkeypatch):
    case, old = before
    files = there(case)
    with monkeypatch.context() as patch:
        fill_the_disk(patch, target)
        with pytest.raises(DataError, match="cannot be written") as caught:
            pipeline.release_synthetic(case.plan, case.workspace)
    assert "untouched" in caught.value.fix
    assert fingerprint(case.plan.build_release().read(case.folder)) == old
    assert there(case) == files
    record = pipeline.release_synthetic(case.plan, case.workspace)
    assert fingerprint(case.plan.build_release().read(case.folder)) == record.table.sha256
    assert there(case) == files


KILLED = """
import os, signal, sys
from pathlib import Path
import duckdb, pyarrow.parquet as pq
from synth_audit.core.plan import load_plan
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline import release
from synth_audit.store.workspace import Workspace

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

def half_then_die(data, path, *args, **kwargs):
    Path(path).write_bytes(b"PAR1 the first half")
    die()

class Dying:
    commit = die
    def __init__(self, connection): self.connection = connection
    def __getattr__(self, name): return getattr(self.connection, name)

connect = duckdb.connect
duckdb.connect = lambda *a, **k: Dying(connect(*a, **k))
pq.write_table = half_then_die
release.refuse_unless_allowed = lambda *a: None
folder = Path(sys.argv[1])
pipeline.release_synthetic(load_plan(folder / "plan.yaml"), Workspace(folder / "out"))
"""


def test_a_kill_leaves_the_last_good_release(before, target):
    case, old = before
    done = subprocess.run([sys.executable, "-c", KILLED, str(case.folder)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert fingerprint(case.plan.build_release().read(case.folder)) == old
    visible = {name for name in there(case) if not name.startswith(".")}
    assert visible <= {"released.parquet", "warehouse.duckdb", "warehouse.duckdb.wal"}
    record = pipeline.release_synthetic(case.plan, case.workspace)
    assert fingerprint(case.plan.build_release().read(case.folder)) == record.table.sha256


@pytest.mark.parametrize("name", ["evidence", "measurements"])
def test_a_full_disk_leaves_the_last_good_evidence(case, name, monkeypatch):
    path = getattr(case.workspace, name)
    old = path.read_bytes()
    files = sorted(p.name for p in case.workspace.review.iterdir())

    def full(self_or_data, *args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    owner = pq if name == "measurements" else type(path)
    monkeypatch.setattr(owner, "write_table" if name == "measurements" else "write_text", full)
    with pytest.raises(DataError, match="cannot be written") as caught:
        pipeline.keep(pipeline.Audited(case.evidence, pq.read_table(case.workspace.exposed)), case.workspace)
    assert caught.value.fix
    assert path.read_bytes() == old
    left = sorted(p.name for p in case.workspace.review.iterdir())
    assert left == [f for f in files if f != "report.html"]
