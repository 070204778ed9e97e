"""What the pages print for readers to paste works: commands, plans, Python, gates."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import click
import pytest
import yaml

import synth_audit
from synth_audit import cli, registry
from synth_audit.dagster.component import TableSettings

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = ROOT / "docs/tutorials"
_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_OTHERS = {"concurrency", "python_logs", "steps"}
"""Keys at the head of YAML that is Dagster's or GitHub's own."""


def blocks(page: Path, *languages: str) -> Iterator[tuple[str, str]]:
    """Language and content of each fenced block of a page."""
    for _, language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield language, block


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _with_keys(block: str) -> str:
    """A block in which each public key, shortened on the page, is one of its own."""
    numbers = count()
    return re.sub("(?<=ed25519:)…", lambda _: b64encode(bytes([next(numbers)] * 32)).decode(), block)


def commands(block: str) -> Iterator[list[str]]:
    """Words of each call of our command in a block of shell."""
    for line in block.replace("\\\n", "").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["synth-audit"]:
            yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_commands_and_options_exist(page):
    for _, block in blocks(page, "sh"):
        for words in commands(block):
            command: click.Command = cli.main
            while isinstance(command, click.Group):
                command, words = command.commands[words[0]], words[1:]
            known = {name for parameter in command.params for name in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known, words


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_python_compiles_and_names_what_there_is(page):
    for _, block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block, str(page))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "synth_audit":
                assert hasattr(synth_audit, node.attr), node.attr


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_yaml_is_a_plan_or_a_part_of_one(page):
    for _, block in blocks(page, "yaml"):
        values = yaml.safe_load(_with_keys(block))
        if values.keys() & _OTHERS:
            continue
        if "type" in values:
            assert values["type"] == "synth_audit.dagster.AuditedTable"
            values = values["attributes"]
        TableSettings.model_validate(values)


def test_a_wrong_plan_would_be_found():
    with pytest.raises(ValueError, match="generatr"):
        TableSettings.model_validate({"generatr": "vine"})


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_gates_name_measurements_that_there_are(page):
    for _, block in blocks(page, "json"):
        for gate in json.loads(f"[{block}]"):
            audit, quantity = gate["kwargs"]["name"].split(".")
            info = vars(registry.catalogue("audit")[audit].load())["info"]
            assert quantity in {q.name for q in info.quantities}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"])
def test_links_outside_the_site_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text) + re.findall(r"`(docs/[\w/.-]+)`", text)
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


def test_every_gate_that_holds_a_release_has_its_repair():
    text = (ROOT / "docs/refusals.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    suite = json.loads((ROOT / "expectations/sensitive.json").read_text(encoding="utf-8"))
    gates = {gate["meta"]["id"]: gate["severity"] for gate in suite["expectations"]}
    held = {gate for gate, severity in gates.items() if severity == "critical"}
    assert named - {"schema_contract"} <= set(gates)
    assert held - {"detection_limit"} <= named  # which is missing evidence, and has a part of its own


def test_the_project_of_the_dagster_tutorial_loads(tmp_path):
    page = TUTORIALS / "dagster.md"
    [definitions] = [block for _, block in blocks(page, "python") if "load_tables" in block]
    [table] = [block for _, block in blocks(page, "yaml")]
    folder = tmp_path / "src/my_project"
    (folder / "defs/patients").mkdir(parents=True)
    for package in (folder, folder / "defs"):
        (package / "__init__.py").touch()
    (folder / "definitions.py").write_text(definitions, encoding="utf-8")
    (folder / "defs/patients/defs.yaml").write_text(table, encoding="utf-8")
    show = (
        "import my_project.definitions as d; graph = d.defs().resolve_asset_graph(); "
        "print(*sorted(key.to_user_string() for key in graph.get_all_asset_keys()))"
    )
    paths = os.pathsep.join([str(tmp_path / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", show],
        env={**os.environ, "PYTHONPATH": paths, "SYNTH_AUDIT_STRICT": "1", "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stages = ("split", "synthetic", "audit", "report", "release")
    assert {f"patients/{stage}" for stage in stages} <= set(done.stdout.split())


# The pages' own commands draw a new salt. No outcome rests on it: a page goes on whatever the verdict on an
# honest table is, and copies are refused under every salt.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("first-audit.md", ["exit code 1: refused", "of the rows are copies of training records"]),
        (
            "table-to-release.md",
            ["exit code 1: refused, as it should be", "100% of the copy are real patients"],
        ),
    ],
)
def test_a_tutorial_runs_as_printed(tmp_path, page, expected):
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = ""
    for language, block in blocks(TUTORIALS / page, "sh", "python"):
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
    for text in expected:
        assert text in said
    assert "Traceback" not in said
