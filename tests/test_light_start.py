"""Looking around must not wait for what only an audit needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "opacus",
    "dp_accounting",
    "sklearn",
    "pyvinecopulib",
    "great_expectations",
    "dagster",
    "matplotlib",
    "lark",
)

_LOOK = """
import json, sys
{code}
print("\\n" + json.dumps(sorted(name for name in {heavy!r} if name in sys.modules)))
"""


def _command(*words: str) -> str:
    """Code that runs the command line as the installed script would."""
    return (
        f"from synth_audit.cli import main\ntry:\n    main({list(words)!r}, prog_name='synth-audit')\n"
        "except SystemExit as end:\n    assert end.code == 0, end.code"
    )


PLAN = "name: x\nsource: data.parquet\ngenerator: vine\nrelease: {parquet: {path: r.parquet}}\n"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import synth_audit", id="import"),
        pytest.param(_command("--help"), id="help"),
        pytest.param(_command("list") + "\n" + _command("describe", "vine"), id="list and describe"),
        pytest.param(
            "from synth_audit.core.plan import load_plan\n"
            "from synth_audit.core.plan_schema import plan_schema\n"
            "load_plan('plan.yaml')\nplan_schema()",
            id="plan",
        ),
        pytest.param("import synth_audit.core.noise\nimport synth_audit.store.ledger", id="ledger"),
    ],
)
def test_nothing_heavy_is_imported(code, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    done = subprocess.run(
        [sys.executable, "-c", _LOOK.format(code=code, heavy=HEAVY)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_the_look_would_find_something():
    code = _LOOK.format(code="import sklearn", heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == ["sklearn"]
