"""The sweep from the shell: its table, its exit code, what comes next, and how it ends when it is told to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from synth_audit.store.workspace import Workspace
from synth_audit.studies.frontier import read_frontier

from .test_cli import invoke

PLAN = {
    "source": "people.parquet",
    "columns": {"person": {"role": "identifier"}},
    "generator": "independent",
    "audits": ["exact_match", "marginals"],
    "gates": "gates.json",
    "release": {"parquet": {"path": "released.parquet"}},
    "frontier": {"generators": ["independent", "resample"], "privacy": "exact_match.excess"},
}


def set_plan(**changes):
    Path("plan.yaml").write_text(yaml.safe_dump(PLAN | changes))


@pytest.fixture
def home(tmp_path, monkeypatch, with_salt, write_suite):
    """The working folder, with a plan of which one candidate passes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    columns = {"person": [f"P{i}" for i in range(150)], "age": rng.integers(18, 90, 150)}
    pq.write_table(pa.table({**columns, "income": rng.lognormal(10, 0.4, 150)}), "people.parquet")
    write_suite()
    set_plan()
    with_salt(Workspace(tmp_path / "plan-audit"))
    return tmp_path


def test_a_sweep_says_what_was_chosen_and_the_next_command_releases_it(home):
    shown = invoke("frontier", "plan.yaml", "--out", "out dir").stdout
    lines = shown.splitlines()
    assert lines[0].split("  ")[0] == "candidate"
    assert lines[1].startswith("independent")
    assert "2 ✓" in lines[1]
    assert "pass" in lines[1]
    assert "✗" in lines[2]
    assert "97.5 %: each of 2 candidates is a chance of a wrong pass" in shown
    assert "independent is the only one of 2 candidates that may leave." in shown
    assert "frontier.html" in shown
    [command] = [line.removeprefix("next: ") for line in lines if line.startswith("next: ")]
    assert command == "synth-audit release plan.yaml --out 'out dir' --candidate independent"
    assert (
        "released" in invoke("release", "plan.yaml", "--out", "out dir", "--candidate", "independent").stdout
    )
    assert Path("released.parquet").is_file()
    again = invoke("frontier", "plan.yaml", "--out", "out dir").stdout
    assert again.count("(kept)") == 2
    assert "is kept; --fresh pulls the source again" in again
    assert "is kept" not in shown
    assert "(kept)" not in invoke("frontier", "plan.yaml", "--out", "out dir", "--fresh").stdout


def test_json_is_the_record_alone(home):
    shown = invoke("frontier", "plan.yaml", "--json").stdout
    assert shown == Path("plan-audit/review/frontier.json").read_text()
    assert read_frontier("plan-audit/review/frontier.json").chosen == "independent"


def test_none_that_passes_ends_in_1_and_releases_nothing(home, write_suite):
    write_suite(-0.9)
    result = invoke("frontier", "plan.yaml", code=1)
    assert "None of 2 candidates may leave: 2 failed a gate." in result.stdout
    assert "next: the page says what held each candidate" in result.stdout
    invoke("release", "plan.yaml", "--candidate", "independent", code=1)
    assert not Path("released.parquet").exists()


def test_a_generator_that_fails_ends_in_3_only_if_none_is_chosen(home):
    missing = {"external": {"source": "nowhere.parquet"}}
    set_plan(frontier={"generators": [missing, "independent"]})
    result = invoke("frontier", "plan.yaml")
    assert "DataError: " in result.stdout
    set_plan(frontier={"generators": [missing, "resample"]})
    invoke("frontier", "plan.yaml", code=3)


def test_a_plan_with_nothing_to_sweep_ends_in_2(home):
    set_plan(frontier=None)
    assert "nothing to sweep" in invoke("frontier", "plan.yaml", code=2).stderr
    invoke("release", "plan.yaml", "--candidate", "independent", code=2)


def test_without_a_target_it_says_so_before_the_work(home):
    set_plan(release=None)
    result = invoke("frontier", "plan.yaml")
    assert "names no `release`" in result.stderr
    assert "next: name a target" in result.stdout


@pytest.mark.slow
def test_a_request_to_end_leaves_no_temporary_folder_and_keeps_what_is_whole(home):
    started = home / "started"
    program = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(60)"
    waiting = [sys.executable, "-c", program, "{train}", "{synthetic}", "{rows}"]
    set_plan(frontier={"generators": ["independent", {"external": {"command": waiting}}]})
    (home / "tmp").mkdir()
    code = "from synth_audit.cli import main; main(['frontier', 'plan.yaml'], prog_name='synth-audit')"
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(home / "tmp")})
    out = Workspace(home / "plan-audit")
    deadline = time.monotonic() + 60
    while not started.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 1
    assert list((home / "tmp").iterdir()) == []
    assert sorted(p.name for p in out.candidates.iterdir()) == ["independent"]
    assert not list(out.scratch.iterdir())
    assert out.candidate("independent").evidence.is_file()
    assert not out.frontier.exists()
