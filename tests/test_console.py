from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest

from synth_audit import registry
from synth_audit.cli import plugins, terminal
from synth_audit.findings.verdict import Result
from synth_audit.plan.plan import Plan
from synth_audit.plugins.plugin_config import plugin_doc
from synth_audit.plugins.source import SourceInfo
from synth_audit.registry import PluginRef
from synth_audit.report.gates import gate_views
from synth_audit.studies import mend


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A source with every way to give a default."""

    path: str
    delimiter: str = ","
    names: dict[str, str] = field(default_factory=lambda: {"a": "b"})
    info: ClassVar[SourceInfo] = SourceInfo(title="Sample", summary="For the test.")


def test_only_settings_without_a_default_are_required(capsys):
    plugins.show_plugin(PluginRef("source", "sample", "sources", __name__, "Sample"), as_json=False)
    said = capsys.readouterr().out
    settings = said.partition("settings\n")[2].partition("how it works")[0].split("\n")
    assert [line.strip() for line in settings if line.strip()] == [
        "path: text; required",
        "delimiter: text; default ','",
        "names: mapping; default {a: b}",
    ]
    assert "source: {sample: {path: …, delimiter: ','" in said


def test_gates_are_a_table_in_one_unit_failures_first_and_passes_in_one_line(build, capsys, monkeypatch):
    evidence = build.failing()
    terminal.show_gates(evidence)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["gate", "value", "interval", "allowed"]
    signs = [line.strip()[0] for line in lines[1:] if line.startswith("  ") and line[2] in "✓✗?!"]
    assert signs[0] == "✗"
    assert signs.count("✓") == 1
    passed = [g.role for g in gate_views(evidence) if g.sign.kind == "pass"]
    assert passed.count("advisory") == 1
    assert lines[-1] == f"  ✓ {len(passed)} gates passed: {passed.count('deciding')} deciding, 1 advisory"
    failed = next(i for i, line in enumerate(lines) if line.startswith("  ✗"))
    assert "%" in lines[failed]
    assert any(line.strip().startswith("→") for line in lines[failed:])
    monkeypatch.setattr(terminal, "width", lambda: 30)
    terminal.show_gates(build.failing())
    assert "allowed" not in capsys.readouterr().out.splitlines()[0]


def test_gates_of_audits_that_were_not_run_are_one_line(build, capsys):
    evidence = build.failing()
    ran, *others = sorted({m.partition(".")[0] for m in measured(evidence)})
    terminal.show_gates(replace(evidence, outcomes=tuple(o for o in evidence.outcomes if o.audit == ran)))
    lines = capsys.readouterr().out.splitlines()
    [told] = [line for line in lines if "not part of this run" in line]
    assert told.endswith(f": {', '.join(others)}")
    assert not any(line.strip().startswith("No audit reported") for line in lines)


def measured(evidence):
    return [g.result.measurement.name for g in gate_views(evidence) if g.result.measurement]


def test_the_catalogue_describes_every_plugin(capsys):
    plugins.list_plugins.callback(as_json=False)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert lines
    assert all(len(line.partition(": ")[2].split()) >= 3 for line in lines)


@pytest.mark.parametrize("room", ["source", "generator", "audit"])
def test_descriptions_are_plain_text(room):
    for ref in registry.catalogue(room).values():
        doc = plugin_doc(ref)
        for text in (doc.text, *(s.meaning for s in doc.settings)):
            assert "``" not in text
            assert not re.search(r":[a-z]+:`", text), ref.name


def test_advice_that_was_not_met_is_no_failure(build, capsys):
    advice = build.gate("Columns are alike", "alike", Result.FAIL, blocking=False)
    terminal.show_gates(build.evidence((), build.report_of((*build.gates(), advice))))
    [advised] = [row for row in capsys.readouterr().out.splitlines() if "(advice)" in row]
    assert advised.startswith("  ! ")


def test_a_gate_says_what_was_found_and_what_to_do(build, capsys):
    terminal.show_evidence(build.failing(), [], as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    held = [g for g in gate_views(build.failing()) if g.sign.kind != "pass" and g.interval]
    assert held
    assert all(f"{g.found}.".replace("\u00a0", " ") in said for g in held)
    assert "Do not release this table." not in said, "the verdict says so"


def test_the_next_step_of_a_refusal_is_a_mend_only_where_one_may_help(build, monkeypatch):
    evidence, out, plan = build.failing(), Path("out"), Path("plan.yaml")
    monkeypatch.setattr("synth_audit.inputs.as_plan", lambda plan: Plan())
    assert terminal.next_step(evidence, out, plan) == "synth-audit report out --open"
    assert terminal.next_step(evidence, None).startswith("synth-audit describe ")
    held = [g for g in evidence.gates.held if g.measurement]
    refused = replace(evidence.gates, results=tuple(held), blockers=())
    alone = replace(evidence, outcomes=(), gates=refused)
    monkeypatch.setattr(mend, "MENDABLE", [g.measurement.audit for g in held])
    assert terminal.next_step(alone, out, plan) == "synth-audit mend plan.yaml --out out"
    assert terminal.next_step(alone, out) == "synth-audit report out --open"


def test_both_answers_are_printed_and_what_is_not_fit_is_not_green(build, capsys, monkeypatch):
    said = []
    monkeypatch.setattr(terminal, "say", lambda text="", **style: said.append((text, style.get("fg"))))
    terminal.show_evidence(build.unfit(), [], as_json=False)
    told = dict(said)
    assert told["Safe to release: yes"] == "green"
    assert told["Fit for purpose: no"] == "red"
    unfit = "PASS: This synthetic table may be released, but it is not fit for purpose."
    assert said[-1] == (unfit, "yellow")
    terminal.show_evidence(build.unfit(Result.PASS), [], as_json=False)
    passed = ("PASS: This synthetic table may be released.", "green")
    assert said[-2:] == [("Fit for purpose: yes", "green"), passed]
    capsys.readouterr()
    terminal.show_evidence(build.unfit(), [], as_json=True)
    plain = json.loads(capsys.readouterr().out)
    assert (plain["verdict"], plain["safe_to_release"], plain["fit_for_purpose"]) == ("pass", "yes", "no")
