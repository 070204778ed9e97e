"""What the pages print for readers holds: commands, plans, Python, gates, links, files."""

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
from mkdocs.commands.build import build
from mkdocs.config import load_config

import synth_audit
from synth_audit import cli, registry
from synth_audit.dagster.component import TableSettings
from synth_audit.plan.plan import Plan

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
        ("first-audit.md", ["exit code 1: refused", "of the rows copy a training record"]),
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


FOLDER = ROOT / "docs" / "deployment"


def test_no_secret_is_written_into_the_files_and_telemetry_is_off() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    for service in compose["services"].values():
        secrets = {k: v for k, v in service["environment"].items() if re.search("PASSWORD|KEY|WEBHOOK", k)}
        assert secrets
        assert all(value.startswith("${") for value in secrets.values())
    settings = yaml.safe_load((FOLDER / "dagster.yaml").read_text())
    assert settings["telemetry"] == {"enabled": False}
    assert settings["run_retries"] == {
        "enabled": True,
        "max_retries": 2,
        "retry_on_asset_or_op_failure": False,
    }
    assert settings["python_logs"] == {"python_log_level": "INFO"}
    assert "DAGSTER_DISABLE_TELEMETRY=1" in (FOLDER / "Dockerfile").read_text()


def test_the_pages_are_served_on_loopback_and_nothing_runs_as_root() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert compose["services"]["web"]["ports"] == ["127.0.0.1:3000:3000"]
    assert re.search("^USER (?!root)", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)


def test_what_the_page_links_to_is_there() -> None:
    page = ROOT / "docs" / "deployment.md"
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert links
    assert all((page.parent / link).exists() for link in links)


def gates_of_suites() -> set[str]:
    suites = (json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "expectations").glob("*.json"))
    return {gate["meta"]["id"] for suite in suites for gate in suite["expectations"]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_site_is_whole_and_fetches_nothing(tmp_path):
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    for room in ("source", "generator", "audit"):
        for name in registry.catalogue(room):
            page = (tmp_path / f"plugins/{room}-{name}.html").read_text(encoding="utf-8")
            assert f'<h1 id="{name}">{name}</h1>' in page
    for gate in gates_of_suites():
        assert f'<h1 id="{gate}">' in (tmp_path / f"reference/gates/{gate}.html").read_text(encoding="utf-8")
    shell = (tmp_path / "reference/cli.html").read_text(encoding="utf-8")
    assert all(f">synth-audit {verb}</h2>" in shell for verb in cli.main.commands)
    plan = (tmp_path / "reference/plan.html").read_text(encoding="utf-8")
    assert all(f"<code>{key}</code>" in plan for key in Plan.model_json_schema(by_alias=True)["properties"])
    python = (tmp_path / "reference/python.html").read_text(encoding="utf-8")
    assert all(f"synth_audit.{name}" in python for name in synth_audit.__all__ if name != "__version__")
    variables = (tmp_path / "reference/environment.html").read_text(encoding="utf-8")
    assert {"SYNTH_AUDIT_HOME", "SYNTH_AUDIT_EVIDENCE_KEY"} <= set(re.findall(r"SYNTH_AUDIT_\w+", variables))
    assert "formal claim" in (tmp_path / "reference/metadata.html").read_text(encoding="utf-8")
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", page.read_text(encoding="utf-8")
        )
        assert fetched == [], page
    assert not list(tmp_path.rglob("*.py"))
