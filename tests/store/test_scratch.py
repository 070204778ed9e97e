"""Temporary files lie in one private place; batches become one file or nothing."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import DataError
from synth_audit.execution import dask_cluster
from synth_audit.files import lasting_folder, temporary_folder
from synth_audit.generators.external.program import _run
from synth_audit.store.files import write_parts
from synth_audit.store.journal import open_journal
from synth_audit.store.scratch import fit_checkpoint, in_use
from synth_audit.store.workspace import Workspace
from synth_audit.studies.sweep import exclusive_lock


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "out").prepare()


def leave(workspace):
    """What a killed run leaves, and what it does not."""
    hidden = ".x.0123456789ab.tmp"
    left = [
        workspace.scratch / "synth-audit-1" / "train.parquet",
        workspace.restricted / hidden,
        workspace.audits / hidden / "evidence.json",
        workspace.candidates / hidden / "restricted" / "train.parquet",
        workspace.candidates / "vine" / "restricted" / hidden,
    ]
    own = [workspace.restricted / "train.parquet", workspace.review / ".x.tmp", workspace.root / hidden]
    workspace.scratch.mkdir(mode=0o700, exist_ok=True)
    for path in (*left, *own):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of somebody")
    return left, own


def test_the_next_start_clears_away_what_was_left_and_nothing_else(workspace):
    left, own = leave(workspace)
    with in_use(workspace.candidate("vine")) as scratch:
        assert scratch == workspace.scratch
        assert list(scratch.iterdir()) == []
        assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    assert [p for p in left if p.exists()] == []
    assert all(p.exists() for p in own)


STARTS = """
import sys
from pathlib import Path
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
with in_use(Workspace(Path(sys.argv[1]))):
    pass
"""


def start_elsewhere(workspace):
    subprocess.run([sys.executable, "-c", STARTS, str(workspace.root)], check=True)


def test_nobody_clears_away_while_another_is_at_work(workspace):
    with in_use(workspace):
        left, _ = leave(workspace)
        start_elsewhere(workspace)
        with in_use(workspace):
            pass
        assert all(p.exists() for p in left)
    start_elsewhere(workspace)
    assert not any(p.exists() for p in left)


def test_nobody_clears_away_while_an_audit_is_filed_or_released(workspace):
    left, _ = leave(workspace)
    with open_journal(workspace), in_use(workspace):
        pass
    assert all(p.exists() for p in left)


def test_temporary_folders_are_made_there_and_elsewhere_again_afterwards(workspace):
    with in_use(workspace):
        folder = lasting_folder()
        with temporary_folder() as other:
            assert Path(other).parent == folder.parent == workspace.scratch
    with temporary_folder() as other:
        assert Path(other).parent != workspace.scratch


def test_without_a_workspace_nothing_is_made(tmp_path):
    with in_use(Workspace(tmp_path / "none")) as scratch:
        assert scratch is None
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_place_of_scratch_is_not_followed(workspace, tmp_path):
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "rows").write_text("of somebody")
    workspace.scratch.symlink_to(other)
    with in_use(workspace):
        assert not workspace.scratch.is_symlink()
        workspace.scratch.rmdir()
        workspace.scratch.symlink_to(other)
        with pytest.raises(DataError, match="is a link"), in_use(workspace):
            pass
    inner = workspace.restricted / ".rows.0123456789ab.tmp"
    inner.symlink_to(other)
    with in_use(workspace):
        assert not os.path.lexists(inner)
    assert (other / "rows").exists()


@pytest.mark.parametrize("name", ["deep", ".deep.0123456789ab.tmp"])
def test_folders_that_reviewers_nest_without_end_hold_nobody_up(workspace, name, monkeypatch):
    top = workspace.review / name
    left = workspace.audits / f".{'ab' * 32}.0123456789ab.tmp"
    left.mkdir(parents=True)
    top.mkdir()
    monkeypatch.chdir(top)
    for _ in range(1100):  # more than Python's recursion, and longer than a path may be
        os.mkdir("d" * 8)
        os.chdir("d" * 8)
    monkeypatch.chdir("/")
    try:
        with in_use(workspace):
            assert not left.exists()
    finally:
        subprocess.run(["rm", "-rf", str(top)], check=True)


def test_scratch_that_others_may_look_into_is_refused(workspace):
    with in_use(workspace):
        workspace.scratch.chmod(0o755)
        with pytest.raises(DataError, match="open to other users"), in_use(workspace):
            pass
    with in_use(workspace) as scratch:
        assert stat.S_IMODE(scratch.stat().st_mode) == 0o700, "nobody was at work, so it is a new one"


def test_a_link_in_place_of_the_lock_is_refused(workspace, tmp_path):
    (workspace.restricted / ".in-use.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError), in_use(workspace):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_cluster_on_this_machine_has_its_files_there(workspace, monkeypatch):
    import distributed

    seen = []

    @contextmanager
    def cluster(**settings):
        seen.append(Path(settings["local_directory"]))
        yield None

    monkeypatch.setattr(distributed, "LocalCluster", cluster)
    with in_use(workspace), dask_cluster._started(2):
        pass
    assert [p.parent for p in seen] == [workspace.scratch]


def test_a_program_is_not_handed_the_key_of_evidence(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNTH_AUDIT_EVIDENCE_KEY", "00" * 32)
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "its own")
    asks = "import os, sys; sys.exit(3 if 'SYNTH_AUDIT_EVIDENCE_KEY' in os.environ else 0)"
    assert _run([sys.executable, "-c", asks], tmp_path, 60, shown=False, where="x") == 0
    asks = asks.replace("SYNTH_AUDIT_EVIDENCE_KEY", "WAREHOUSE_PASSWORD")
    assert _run([sys.executable, "-c", asks], tmp_path, 60, shown=False, where="x") == 3


RUN = """
import os, signal, sys, tempfile
from pathlib import Path
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import in_processes
from synth_audit.plan.plan import load_plan
from synth_audit.pipeline import stages
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace

folder, point, parent = Path(sys.argv[1]), sys.argv[2], os.getpid()
plan, workspace = load_plan(folder / "plan.yaml"), Workspace(folder / "out")

def half(data, path, *args, **kwargs):
    Path(path).write_bytes(b"half of the rows")
    os.kill(parent, signal.SIGKILL)

def work(item):
    (Path(tempfile.mkdtemp()) / "rows").write_bytes(b"real rows")
    if os.getppid() == parent:  # of two pieces one kills it, and its number may be another's then
        os.kill(parent, signal.SIGKILL)

if point == "a worker":
    with in_use(workspace) as scratch:
        RunContext(executor=in_processes(2), scratch=scratch).map("piece", work, [1, 2])
if point == "half a table":
    stages.write_table.__globals__["pq"].write_table = half
if point == "a fit":
    stages.make_synthetic(plan, workspace)
stages.split_table(plan, workspace)
"""

KILLS = "import os, signal; os.getppid() > 1 and os.kill(os.getppid(), signal.SIGKILL)"


@pytest.mark.parametrize("point", ["a worker", "half a table", "a fit"])
def test_a_kill_leaves_rows_in_the_restricted_folder_alone_and_the_next_start_clears_them(
    case, tmp_path, point
):
    system = tmp_path / "system"
    system.mkdir()
    if point == "a fit":
        command = [sys.executable, "-c", KILLS, "{train}", "{synthetic}", "{rows}"]
        case.replan(generator={"external": {"command": command}})
    before = {*case.folder.rglob("*")}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(case.folder), point],
        env={**os.environ, "TMPDIR": str(system)},
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [p for p in system.rglob("*") if p.is_file()] == []
    left = [p for p in case.folder.rglob("*") if p not in before and p.is_file()]
    assert left
    assert all(case.workspace.restricted in p.parents for p in left)
    with in_use(case.workspace) as scratch:
        assert list(scratch.iterdir()) == []
    assert [p for p in left if p.exists()] == []


def test_checkpoints_and_locks_are_private_whatever_the_umask(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "out").prepare()
    before = os.umask(0)
    try:
        with exclusive_lock(workspace), fit_checkpoint(workspace, "plan", "rows"):
            found = [*workspace.restricted.rglob("*")]
            modes = [stat.S_IMODE(path.stat().st_mode) for path in found]
    finally:
        os.umask(before)
    assert len(found) == 4  # with .gitignore
    assert all(not mode & 0o077 for mode in modes)


def parts_of(*batches):
    return (SimpleNamespace(data=batch) for batch in batches)


def test_batches_lie_below_one_another_under_the_types_of_the_first(tmp_path):
    first = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", None]})
    second = pa.table({"b": ["y"], "a": pa.array([3], pa.int32())})
    path = write_parts(tmp_path / "t.parquet", parts_of(first, second))
    assert pq.read_table(path).to_pydict() == {"a": [1, 2, 3], "b": ["x", None, "y"]}
    assert pq.read_schema(path).types == first.schema.types


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"a": ["secret-7391"]}),
        pa.table({"c": [1]}),
        pa.table({"a": [1], "key": ["secret-7391"]}),
        pa.table({"a": [2**40]}),
    ],
    ids=["text", "another column", "a column more", "too large"],
)
def test_batches_that_differ_leave_what_was_there_and_show_no_value(tmp_path, other):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"before")
    first = pa.table({"a": pa.array([1], pa.int32())})
    with pytest.raises(DataError, match="differ in their columns or types") as caught:
        write_parts(path, parts_of(first, other))
    assert "7391" not in str(caught.value)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


def test_no_batch_is_no_table(tmp_path):
    with pytest.raises(DataError, match="no rows"):
        write_parts(tmp_path / "t.parquet", [])
    assert not list(tmp_path.iterdir())
