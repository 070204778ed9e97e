"""Every benchmark starts: a name that moved elsewhere shows here, and not when somebody wants to measure."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("_"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_says_what_it_measures(script, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))  # as it is where a script is given by its path
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0
    assert "usage: " + script.name in capsys.readouterr().out


def test_the_folder_tells_of_every_one():
    told = (FOLDER / "README.md").read_text()
    assert [path.name for path in SCRIPTS if path.name not in told] == []
