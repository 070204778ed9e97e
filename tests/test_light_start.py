"""Looking around must not wait for what only an audit needs."""

import json
import pkgutil
import subprocess
import sys

import pytest

import synth_audit

HEAVY = (
    "torch",
    "opacus",
    "dp_accounting",
    "sklearn",
    "pyvinecopulib",
    "great_expectations",
    "pandas",
    "dagster",
    "matplotlib",
    "lark",
    "jsonschema",
    "duckdb",
    "scipy",
    "jinja2",
    "synth_audit.report.page",
)
LIBRARIES = ("numpy", "pyarrow", "pydantic", "yaml")
"""What reading a plan takes and a list of verbs does not."""

_LOOK = """
import json, sys
seen = {{}}
for name, code in json.loads({steps!r}):
    exec(code, {{}})
    seen[name] = sorted(name for name in {heavy!r} if name in sys.modules)
print("\\n" + json.dumps(seen))
"""


def _command(*words: str) -> str:
    """Code that runs the command line as the installed script would."""
    return (
        f"from synth_audit.cli import main\ntry:\n    main({list(words)!r}, prog_name='synth-audit')\n"
        "except SystemExit as end:\n    assert end.code == 0, end.code"
    )


def test_no_room_has_the_name_of_a_verb():
    rooms = {module.name for module in pkgutil.iter_modules(synth_audit.__path__)}
    assert not rooms & set(synth_audit.__all__)  # importing the room would take the verb's place


PLAN = "name: x\nsource: data.parquet\ngenerator: vine\nrelease: {parquet: {path: r.parquet}}\n"


STEPS = {
    "import": "import synth_audit",
    "help": _command("--help"),
    "help of a verb": _command("audit", "--help"),
    "version": _command("--version"),
    "list and describe": _command("list") + "\n" + _command("describe", "vine"),
    "plan": (
        "from synth_audit.plan.plan import load_plan\n"
        "from synth_audit.plan.plan import plan_schema\n"
        "load_plan('plan.yaml')\nplan_schema()"
    ),
    "ledger": "import synth_audit.dp.mechanisms\nimport synth_audit.store.ledger",
    "generators and sources": (
        "import importlib, pkgutil, synth_audit.generators, synth_audit.sources\n"
        "for room in (synth_audit.generators, synth_audit.sources):\n"
        "    for m in pkgutil.iter_modules(room.__path__):\n"
        "        importlib.import_module(f'{room.__name__}.{m.name}')"
    ),
    "report": "import synth_audit.report",
}
WITHOUT_A_PLAN = ("import", "help", "help of a verb", "version")
LAST = {"something heavy": "import sklearn"}


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """What is imported after each step, one after the other in one fresh process."""
    home = tmp_path_factory.mktemp("home")
    (home / "plan.yaml").write_text(PLAN)
    code = _LOOK.format(steps=json.dumps([*STEPS.items(), *LAST.items()]), heavy=HEAVY + LIBRARIES)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.xdist_group("light start")
@pytest.mark.parametrize("step", STEPS)
def test_nothing_heavy_is_imported(step, imported):
    light = LIBRARIES if step not in WITHOUT_A_PLAN else ()
    assert set(imported[step]) <= set(light)


@pytest.mark.xdist_group("light start")
def test_the_look_would_find_something(imported):
    assert {"sklearn", "numpy", "pydantic"} <= set(imported["something heavy"])
