"""The site builds without a broken link, and its reference has everything that there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

import synth_audit
from synth_audit import cli, registry
from synth_audit.plan.plan import Plan

ROOT = Path(__file__).parents[1]


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
