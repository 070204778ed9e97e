"""Whatever goes wrong in the middle of a release, the last good one stays."""

import errno
import signal
import subprocess
import sys

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from synth_audit import api, cli
from synth_audit.errors import DataError
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import release as room
from synth_audit.pipeline import stages as pipeline
from synth_audit.store.evidence_store import FiledAudit
from synth_audit.store.journal import read_journal
from synth_audit.store.records import Released, read_pointer
from synth_audit.table.content_hash import fingerprint

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
from synth_audit.plan.plan import load_plan
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


def test_a_release_clears_away_what_a_killed_one_left_in_the_workspace(case):
    left = [
        case.workspace.review / "audits" / f".{'ab' * 32}.0123456789ab.tmp",
        case.workspace.restricted / ".journal.json.0123456789ab.tmp",
    ]
    left[0].mkdir()
    left[1].write_text("{}")
    pipeline.release_synthetic(case.plan, case.workspace)
    assert not any(path.exists() for path in left)


def told(case):
    """What ``verify`` says of the pointer to what is out there."""
    checks = {c.what: c for c in api.verify(case.workspace.root)}
    return checks["pointer to what was released"]


def test_an_interrupted_release_is_told_and_the_evidence_of_the_last_one_stays(case, make_gate):
    pipeline.release_synthetic(case.plan, case.workspace)
    first = case.workspace.released_pointer.read_bytes()
    old = case.evidence.digest
    case.set_gates(make_gate("copies", "exact_match.excess", 0.3))
    pipeline.produce(case.plan, case.workspace)
    assert case.evidence.digest != old
    script = KILLED.replace("release.refuse_unless_allowed = lambda *a: None", "")
    done = subprocess.run([sys.executable, "-c", script, str(case.folder)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert case.workspace.released_pointer.read_bytes() == first
    assert FiledAudit.load(case.workspace.audit(old)).evidence.digest == old
    assert "began and did not end" in told(case).detail
    assert told(case).holds is False
    pipeline.release_synthetic(case.plan, case.workspace)
    assert told(case).holds is True
    released = read_pointer(Released, case.workspace.released_pointer)
    assert (released.digest, released.rows) == (case.evidence.digest, case.synthetic.num_rows)


def test_a_release_by_another_process_meanwhile_is_no_forgery(case, monkeypatch):
    as_audited = room.as_audited

    def meanwhile(*args):
        with monkeypatch.context() as patch:
            patch.setattr(room, "as_audited", as_audited)
            pipeline.release_synthetic(case.plan, case.workspace)
        return as_audited(*args)

    monkeypatch.setattr(room, "as_audited", meanwhile)
    pipeline.release_synthetic(case.plan, case.workspace)
    assert told(case).holds is True


def test_a_release_that_could_not_be_written_is_no_release(case, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", _half_written)
        with pytest.raises(DataError, match="cannot be written"):
            pipeline.release_synthetic(case.plan, case.workspace)
    assert told(case).detail == "nothing was released"
    assert not case.workspace.released_pointer.exists()


def release_again(case, **changes):
    case.replan(**changes)
    pipeline.produce(case.plan, case.workspace)
    return pipeline.release_synthetic(case.plan, case.workspace)


@pytest.fixture
def twice(case):
    """A table that was released twice from the same training rows."""
    first = pipeline.release_synthetic(case.plan, case.workspace).table.rows
    second = release_again(case, rows=first - 50).table.rows
    return case, first + second


def test_both_are_audited_as_one_table_and_what_is_out_there_stays(twice):
    case, rows = twice
    before = read_journal(case.workspace)
    words = ["exposure", str(case.folder / "plan.yaml"), "--out", str(case.workspace.root), "--json"]
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 0, result.output
    evidence = api.load_evidence(case.workspace.root / "together")
    assert evidence.tables["synthetic"].rows == rows
    assert evidence.verdict is Result.PASS
    assert evidence.table.endswith("-together")
    assert read_journal(case.workspace) == before


def test_one_release_adds_up_with_nothing(case):
    pipeline.release_synthetic(case.plan, case.workspace)
    pipeline.release_synthetic(case.plan, case.workspace)
    with pytest.raises(DataError, match="1 of the releases"):
        api.exposure(case.plan, case.workspace.root)


def test_releases_of_other_people_are_left_out(case, make_people):
    pipeline.release_synthetic(case.plan, case.workspace)
    pq.write_table(make_people(250, seed=1), case.folder / "people.parquet")
    release_again(case)
    with pytest.raises(DataError, match="1 of the releases"):
        api.exposure(case.plan, case.workspace.root)


def test_rows_that_were_exchanged_are_refused(twice):
    case, _ = twice
    journal = read_journal(case.workspace)
    kept = case.workspace.kept_rows(journal.previous.digest)
    pq.write_table(pq.read_table(kept).slice(1), kept)
    with pytest.raises(DataError, match="not those that were audited"):
        api.exposure(case.plan, case.workspace.root)


@pytest.mark.parametrize("which", ["train", "control"])
def test_real_rows_that_the_split_did_not_leave_are_refused(twice, which):
    case, _ = twice
    file = getattr(case.workspace, which)
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(DataError, match="not those that the split left"):
        api.exposure(case.plan, case.workspace.root)
