"""With `write_real_rows: false` no row of the source lies on a disk, and the evidence is the same."""

import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.errors import DataError, PlanError
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import in_processes
from synth_audit.files import IN_MEMORY as MEMORY
from synth_audit.pipeline import stages
from synth_audit.pipeline.rerun import rerun
from synth_audit.plan.sections import ExecutionSpec
from synth_audit.sources.duckdb import _connection
from synth_audit.store import scratch
from synth_audit.store.evidence import SplitRecord
from synth_audit.studies.sweep import sweep
from synth_audit.table import arrow

BESIDE = """
from synth_audit.store.scratch import in_use
with in_use(None, write_rows=False) as place:
    print(place)
"""

UNWRITTEN = {"write_real_rows": False}

pytestmark = [
    pytest.mark.skipif(not scratch._lies_in_memory(MEMORY), reason="no file system in memory"),
    pytest.mark.xdist_group("memory"),  # what is left there is looked for
]

KILLED = """
import os, signal, sys
from synth_audit.pipeline import making, stages
from synth_audit.plan.plan import load_plan
from synth_audit.store.workspace import Workspace
from synth_audit.table import arrow
from pathlib import Path

folder, stage, when = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
arrow.MOST_HELD = 0
laid = arrow._written

def dying(*args):
    global when
    path = laid(*args)
    when -= 1
    if when == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return path

arrow._written = dying
getattr(stages, stage)(load_plan(folder / "plan.yaml"), Workspace(folder / "out"))
"""


@pytest.fixture
def case(make_case, tmp_path):
    """A plan whose rows must not be written, though even few would be laid out in files."""
    return make_case(tmp_path / "unwritten", audits=["exact_match", "closest_record"], execution=UNWRITTEN)


@pytest.fixture
def places(monkeypatch):
    """Where tables are laid out."""
    found, laid = [], arrow._written
    monkeypatch.setattr(arrow, "MOST_HELD", 0)
    monkeypatch.setattr(
        arrow, "_written", lambda folder, *rows: (found.append(folder), laid(folder, *rows))[1]
    )
    return found


def in_memory():
    return set(MEMORY.glob("synth-audit-rows-*"))


def with_rows(case):
    """Files, but the source, that hold an identifier of the source, which no candidate has."""
    files = [p for p in case.folder.rglob("*") if p.is_file() and p.name != "people.parquet"]
    assert len(files) > 3
    return [p for p in files if b"Person-0-" in p.read_bytes()]


def test_evidence_is_the_same_and_nothing_is_left(case, make_case, tmp_path, places):
    written = make_case(tmp_path / "written", audits=["exact_match", "closest_record"])
    before = in_memory()
    assert api.run(written.plan, written.workspace.root).verdict == "pass"
    assert with_rows(written) != []
    places.clear()
    assert api.run(case.plan, case.workspace.root).verdict == "pass"
    assert with_rows(case) == []
    assert case.evidence.digest == written.evidence.digest
    assert len(places) > 5
    assert all(place.is_relative_to(MEMORY) for place in places)
    assert in_memory() == before
    assert (case.folder / "out-of-the-house/released.parquet").is_file()


def test_stages_alone_and_by_processes_write_no_rows(case, places):
    stages.split_table(case.plan, case.workspace)
    stages.make_synthetic(case.plan, case.workspace)
    one = stages.audit_synthetic(case.plan, case.workspace).digest
    context = RunContext(executor=in_processes(2))
    several = stages.audit_synthetic(case.plan, case.workspace, context)
    assert several.digest == one
    assert all(place.is_relative_to(MEMORY) for place in places)
    assert with_rows(case) == []


def test_rows_that_were_written_before_are_deleted(case):
    frontier = {"generators": [{"independent": {"minimum_people": 1}}]}
    case.replan(execution={}, frontier=frontier)
    sweep(case.plan, case.workspace)
    assert len(with_rows(case)) == 4
    case.replan(execution=UNWRITTEN)
    stages.split_table(case.plan, case.workspace)
    assert with_rows(case) == []


def test_a_source_that_changed_between_stages_is_refused(case, make_people):
    stages.split_table(case.plan, case.workspace)
    pq.write_table(make_people(seed=1), case.folder / "people.parquet")
    with pytest.raises(DataError, match="other rows, or types, than it had"):
        stages.make_synthetic(case.plan, case.workspace)


def test_a_source_that_gives_another_order_is_refused(case, make_people):
    stages.split_table(case.plan, case.workspace)
    stages.make_synthetic(case.plan, case.workspace)
    table = make_people()
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), case.folder / "people.parquet")
    with pytest.raises(DataError, match="in another order"):
        stages.audit_synthetic(case.plan, case.workspace)


def test_a_rerun_says_that_the_order_changed(case, make_people):
    stages.produce(case.plan, case.workspace)
    table = make_people()
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), case.folder / "people.parquet")
    held = {check.what: check.holds for check in rerun(case.plan, case.workspace)}
    assert held["content of train"] is True
    assert held["order of train and control"] is False


def test_a_source_that_gives_other_types_is_refused(case, make_people):
    stages.split_table(case.plan, case.workspace)
    table = make_people()
    city = table.column("city").dictionary_encode()
    pq.write_table(table.set_column(3, "city", city), case.folder / "people.parquet")
    with pytest.raises(DataError, match="or types"):
        stages.make_synthetic(case.plan, case.workspace)


def test_a_split_with_written_rows_is_not_taken_over_and_its_order_not_known(case):
    case.replan(execution={})
    stages.produce(case.plan, case.workspace)
    case.replan(execution=UNWRITTEN)
    assert [c.what for c in rerun(case.plan, case.workspace) if not c.holds] == ["order of train and control"]
    with pytest.raises(DataError, match="lets real rows be written"):
        stages.make_synthetic(case.plan, case.workspace)


def test_the_first_run_of_a_workspace_keeps_its_folder(case, places):
    case.workspace.salt.unlink()
    case.workspace.restricted.joinpath(".gitignore").unlink()
    case.workspace.restricted.rmdir()
    before = in_memory()
    assert api.run(case.plan, case.workspace.root, release=False).verdict == "pass"
    assert places
    assert in_memory() == before


def test_two_runs_at_once_keep_their_folders(tmp_path):
    with scratch.in_use(None, write_rows=False) as one:
        with scratch.in_use(None, write_rows=False) as same:
            assert same == one  # of the outer block
        beside = subprocess.run(
            [sys.executable, "-c", BESIDE], check=True, capture_output=True, text=True
        ).stdout.strip()
        assert one.is_dir()
    assert not one.exists()
    assert beside not in {str(one), ""}
    assert not Path(beside).exists()


def test_records_do_not_depend_on_whether_rows_are_written_but_for_their_order(case, make_case, tmp_path):
    written = make_case(tmp_path / "written")
    stages.split_table(written.plan, written.workspace)
    stages.split_table(case.plan, case.workspace)
    one, other = (SplitRecord.read(c.workspace.split_record) for c in (written, case))
    assert (one.train, one.control, one.source) == (other.train, other.control, other.source)
    assert (one.order, len(other.order)) == ("", 64)


@pytest.mark.parametrize(
    ("stage", "when"), [("split_table", 1), ("split_table", 3), ("make_synthetic", 1), ("audit_synthetic", 2)]
)
def test_a_killed_stage_leaves_rows_in_memory_until_the_next(case, stage, when):
    if stage != "split_table":
        stages.split_table(case.plan, case.workspace)
    if stage == "audit_synthetic":
        stages.make_synthetic(case.plan, case.workspace)
    before = in_memory()
    words = [sys.executable, "-c", KILLED, str(case.folder), stage, str(when)]
    done = subprocess.run(words, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert with_rows(case) == []
    [left] = in_memory() - before
    assert left.stat().st_mode & 0o077 == 0
    stages.produce(case.plan, case.workspace)
    assert in_memory() == before


def test_a_sweep_a_rerun_and_a_mend_write_no_rows(case, places):
    case.replan(frontier={"generators": [{"independent": {"minimum_people": 1}}, "resample"]})
    record = sweep(case.plan, case.workspace)
    assert [c.verdict for c in record.candidates] == ["pass", "fail"]
    assert with_rows(case) == []
    assert [c.kept for c in sweep(case.plan, case.workspace).candidates] == [True, True]
    stages.produce(case.plan, case.workspace)
    assert all(check.holds for check in rerun(case.plan, case.workspace))
    assert with_rows(case) == []
    assert all(place.is_relative_to(MEMORY) for place in places)


def test_an_audit_of_files_lays_them_out_in_memory(case, make_people, tmp_path, places):
    files = [tmp_path / f"{name}.parquet" for name in ("train", "control", "synthetic")]
    for i, file in enumerate(files):
        pq.write_table(make_people(seed=i), file)
    plan = {"audits": ["exact_match"], "gates": str(case.folder / "gates.json"), "execution": UNWRITTEN}
    api.audit(*files, plan)
    api.audit(*files, plan, out=tmp_path / "kept")
    assert len(places) > 5
    assert all(place.is_relative_to(MEMORY) for place in places)


def test_without_memory_to_write_to_nothing_starts(case, monkeypatch):
    monkeypatch.setattr(scratch, "IN_MEMORY", case.folder)
    with pytest.raises(PlanError, match="no file system in memory"):
        stages.split_table(case.plan, case.workspace)
    assert not case.workspace.split_record.exists()


def test_a_scheduler_elsewhere_may_write_rows():
    with pytest.raises(ValueError, match="its workers may write rows"):
        ExecutionSpec(scheduler="tls://10.0.0.5:8786", **UNWRITTEN)


def test_duckdb_sets_no_rows_aside(tmp_path):
    file = tmp_path / "people.duckdb"
    duckdb.connect(str(file)).close()
    where = []
    for write_rows in (True, False):
        with (
            scratch.in_use(None, write_rows=write_rows),
            _connection(file, 1.0, read_only=True) as connection,
        ):
            where += connection.execute("SELECT current_setting('temp_directory')").fetchone()
            with pytest.raises(duckdb.Error):
                connection.execute("SELECT * FROM read_csv('/etc/passwd')")
    assert where == [f"{file}.tmp", ""]


def test_times_in_seconds_are_kept_as_a_file_keeps_them(case, make_case, tmp_path, make_people):
    written = make_case(tmp_path / "written", audits=["exact_match"])
    table = make_people()
    n = table.num_rows
    times = {
        "seen": pa.array(range(n), pa.timestamp("s")),
        "zoned": pa.array(range(n), pa.timestamp("s", "UTC")),
        "at": pa.array(range(n), pa.time32("s")),
    }
    for name, values in times.items():
        table = table.append_column(name, values)
    digests = []
    for one in (written, case):
        one.replan(audits=["exact_match"], source={"duckdb": {"path": "people.duckdb", "table": "kept"}})
        connection = duckdb.connect(str(one.folder / "people.duckdb"))
        connection.register("people", table)
        connection.execute("CREATE TABLE kept AS SELECT * FROM people")
        connection.close()
        digests.append(stages.produce(one.plan, one.workspace).digest)
    assert digests[0] == digests[1]


def test_only_what_is_mounted_last_counts(monkeypatch):
    lines = [f"tmpfs {MEMORY} tmpfs rw 0 0", f"/dev/sda1 {MEMORY} ext4 rw 0 0"]
    for mounts, lies in ((lines, False), (lines[::-1], True), ([], False)):
        monkeypatch.setattr(Path, "read_text", lambda path, mounts=mounts: "\n".join(mounts))
        assert scratch._lies_in_memory(MEMORY) is lies
