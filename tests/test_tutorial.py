"""The tutorial does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from synth_audit import cli

PAGE = Path(__file__).parents[1] / "docs/tutorial.md"
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_its_commands_and_options_exist():
    lines = [
        line
        for language, block in BLOCKS
        if language == "sh"
        for line in block.replace("\\\n", "").splitlines()
    ]
    told = [words for line in lines for words in [line.split()] if words[:1] == ["synth-audit"]]
    assert {words[1] for words in told} >= {"init", "run", "audit", "compare", "verify", "report"}
    for words in told:
        options = [p for p in cli.main.commands[words[1]].params if isinstance(p, click.Option)]
        known = {name for option in options for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known
    for language, block in BLOCKS:
        if language == "python":
            compile(block, str(PAGE), "exec")


# The page's own commands draw a new salt. No outcome rests on it: the page goes on whatever the verdict on
# the first table is, and a whole copy is refused under every salt.
@pytest.mark.slow
def test_it_runs_as_printed(tmp_path):
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = ""
    for language, block in BLOCKS:
        command = ["bash", "-ec", block] if language == "sh" else [sys.executable, "-c", block]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PATH": place},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        said += done.stdout
    assert "exit code 1: refused, as it should be" in said
    assert "100% of the copy are real patients" in said
    assert "Traceback" not in said
