"""The GitHub Action: its shell steps, run as a runner runs them."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

ACTION = Path(__file__).parents[1] / "action"


def audited(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step `Audit`, under the shell and the environment that GitHub documents for it."""
    [step] = [s for s in yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"] if "id" in s]
    given = {name: inputs.get(name.lower(), "") for name in step["env"]}
    files = {"GITHUB_STEP_SUMMARY": folder / "summary.md", "GITHUB_OUTPUT": folder / "output"}
    paths = {"GITHUB_ACTION_PATH": ACTION, "RUNNER_TEMP": folder, **files}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **given, **{k: str(v) for k, v in paths.items()}, "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def inputs(tmp_path: Path, make_people: Callable[..., pa.Table]) -> dict[str, str]:
    for number, name in enumerate(("train", "control")):
        pq.write_table(make_people(200, number), tmp_path / f"{name}.parquet")
    (tmp_path / "plan.yaml").write_text("audits: [exact_match]\n")
    return {"train": "train.parquet", "control": "control.parquet", "plan": "plan.yaml", "out": "audit"}


def test_a_copy_of_the_training_set_is_an_error_on_the_pull_request(
    tmp_path: Path, inputs: dict[str, str]
) -> None:
    pq.write_table(pq.read_table(tmp_path / "train.parquet"), tmp_path / "made.parquet")
    done = audited(tmp_path, **inputs, synthetic="made.parquet")
    assert done.returncode == 1, done.stderr
    assert "::error file=made.parquet,title=exact_copies%3A fail::" in done.stdout
    assert (tmp_path / "output").read_text() == "verdict=fail\n"
    assert "| fail | yes |" in (tmp_path / "summary.md").read_text()


def test_what_is_no_table_has_no_verdict(tmp_path: Path, inputs: dict[str, str]) -> None:
    done = audited(tmp_path, **inputs, synthetic="none.parquet")
    assert done.returncode == 2
    assert "::error file=none.parquet,title=No verdict::the audit ended with exit code 2" in done.stdout
    assert not (tmp_path / "output").exists()


def test_a_pass_is_a_notice_and_no_sign_begins_another_command() -> None:
    spec = importlib.util.spec_from_file_location("annotate", ACTION / "annotate.py")
    assert spec is not None
    assert spec.loader is not None
    annotate: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(annotate)
    gate = {"gate": "A", "result": "fail", "blocking": False, "explanation": "x\n::error::y"}
    found = {"verdict": "pass", "digest": "0" * 64, "gates": [gate], "errors": []}
    advice, told = annotate.annotations(found, "a.parquet")
    assert advice.startswith("::notice ")
    assert "\n" not in advice
    assert told.startswith("::notice ")
