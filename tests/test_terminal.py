"""What reaches the terminal: no escape sequence of others, no colour that is not wanted, no stumbling."""

import errno
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import ClassVar

import click
import pytest
from click.testing import CliRunner

from synth_audit import cli, registry
from synth_audit.cli import plugins, terminal
from synth_audit.cli.terminal import Exit
from synth_audit.execution import context
from synth_audit.findings.verdict import Result
from synth_audit.plan.plan import Plan
from synth_audit.plugins.plugin_config import plugin_doc
from synth_audit.plugins.source import SourceInfo
from synth_audit.registry import PluginRef
from synth_audit.report.gates import gate_views
from synth_audit.studies import mend

PROGRAM = f'{sys.executable} -c "from synth_audit.cli import main; main()"'


def shell(line):
    """Run a line in a shell whose exit code is that of the program, the pipe's first part."""
    script = f"set -o pipefail; {line}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Failing(io.StringIO):
    def __init__(self, code):
        super().__init__()
        self.code = code

    def write(self, text):
        raise OSError(self.code, "no")


@pytest.mark.parametrize(
    "verb", ["list", "list --json", "describe exact_match", "schema", "--help", "run --help"]
)
def test_an_output_that_takes_nothing(monkeypatch, verb):
    for code, exit_code in ((errno.ENOSPC, Exit.MAY_PASS), (errno.EPIPE, Exit.PIPE_CLOSED)):
        monkeypatch.setattr(sys, "stdout", Failing(code))
        monkeypatch.setattr(sys, "stderr", told := io.StringIO())
        with pytest.raises(SystemExit) as ended:
            cli.main(verb.split(), prog_name="synth-audit")
        monkeypatch.undo()
        assert ended.value.code == exit_code
        if code == errno.ENOSPC:
            assert told.getvalue().startswith("error: the output cannot be written (OSError: No space left")
            assert told.getvalue().count("\n") == 4
        else:
            assert told.getvalue() == ""


def test_a_full_disk_and_a_closed_pipe_in_real_processes():
    full = shell(f"{PROGRAM} list > /dev/full")
    assert full.returncode == Exit.MAY_PASS
    assert full.stderr.startswith("error: the output cannot be written")
    assert "Traceback" not in full.stderr
    assert "Exception ignored" not in full.stderr
    closed = shell(f"{PROGRAM} describe exact_match | true")
    assert (closed.returncode, closed.stderr) == (141, "")
    assert shell(f"{PROGRAM} run nowhere.yaml 2> /dev/full").returncode == 2


def test_a_terminal_that_lacks_letters_gets_question_marks(monkeypatch):
    monkeypatch.setattr(sys, "stderr", told := io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "✓.yaml"], prog_name="synth-audit")
    monkeypatch.undo()
    assert ended.value.code == 2
    told.seek(0)
    assert "where: ?.yaml" in told.read()


@pytest.mark.parametrize(
    ("name", "value", "coloured"),
    [("NO_COLOR", "1", False), ("NO_COLOR", "", True), ("TERM", "dumb", False), ("TERM", "xterm", True)],
)
def test_colour_only_where_it_is_wanted(monkeypatch, name, value, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    terminal.say("all well", fg="green", sign="✓ ")
    terminal.say("bold", bold=True)
    monkeypatch.undo()
    assert ("\x1b[" in shown.getvalue()) is coloured
    assert click.unstyle(shown.getvalue()) == "✓ all well\nbold\n"


def test_no_bar_on_a_dumb_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with terminal.progress_bar() as bar:
        bar("fit", 1, 2)
    assert shown.getvalue() == ""


def test_what_others_wrote_cannot_act(capsys):
    terminal.say("a\x1b[2Jb\nPASS: this table may be released.\r" + "k" * 40_000)
    terminal.say_whole("/a/\x1b]0;owned\x07" + "k" * 1000)
    terminal.say_json('{"a": "\u202e\x9b\x7f"}')
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    first, second, third, end = shown.split("\n")
    assert len(first) < 400
    assert second.endswith("k" * 1000)
    assert (third, end) == ('{"a": "\\u202e\\u009b\\u007f"}', "")


def test_words_of_the_command_line_are_cut():
    for words in (
        ["x" * 5000],
        ["run", "--" + "x" * 5000],
        ["run", "p", "--workers", "x" * 5000],
        ["\x1b[2J"],
    ):
        result = CliRunner().invoke(cli.main, words)
        assert result.exit_code == 2
        assert "Usage:" in result.stderr
        assert "Error: " in result.stderr
        assert len(result.stderr) < 1000
        assert "\x1b" not in result.stderr


def test_the_first_page_is_shown_when_nothing_is_asked():
    result = CliRunner().invoke(cli.main, [])
    assert "Start here" in result.output
    assert "Error" not in result.output


def test_an_interrupt_ends_in_one_line(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(registry, "catalogue", interrupted)
    result = CliRunner().invoke(cli.main, ["list"])
    assert result.exit_code == 1
    assert result.stderr.strip() == "error: interrupted"


@pytest.mark.parametrize(
    ("clock", "done", "told"),
    [
        (
            [0.0, 5.0, 25.0, 30.0, 50.0],
            [("inference", done, 9) for done in range(4)],
            ["25 s: inference, 1 of 9 done", "50 s: inference, 3 of 9 done"],
        ),
        (  # the end of work that was told of is told too
            [0.0, 25.0, 26.0, 27.0, 28.0],
            [("audits: inference", 3, 4), ("planted leaks", 9, 9), ("audits", 4, 4), ("audits", 4, 4)],
            ["25 s: audits: inference, 3 of 4 done", "27 s: audits, 4 of 4 done"],
        ),
        ([0.0, 25.0], [("report", 0, 0)], ["25 s: report"]),
    ],
)
def test_where_no_bar_can_be_drawn_a_line_comes_now_and_then(monkeypatch, clock, done, told):
    monkeypatch.setattr(context.time, "monotonic", iter(clock).__next__)
    tell = context.spoken((said := []).append)
    for piece in done:
        tell(*piece)
    assert said == told


def test_progress_is_repeated_while_a_piece_takes_long():
    again, said = Event(), []

    def tell(*piece):
        said.append(piece)
        if len(said) > 1:
            again.set()

    with context.repeated(tell, every=0.001) as progress:
        progress("recognition", 0, 1)
        assert again.wait(10)
    assert set(said) == {("recognition", 0, 1)}


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


def test_a_gate_says_what_was_found_and_what_to_do(build, capsys):
    terminal.show_evidence(build.failing(), [], as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    held = [g for g in gate_views(build.failing()) if g.sign.kind != "pass" and g.interval]
    assert held
    assert all(f"{g.found}.".replace("\u00a0", " ") in said for g in held)
    assert "Do not release this table." not in said, "the verdict says so"
