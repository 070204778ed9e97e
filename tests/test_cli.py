import json
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from synth_audit import api, cli, inputs, registry
from synth_audit.build import build_version
from synth_audit.cli.shared import CommandJob
from synth_audit.execution.executor import Executor
from synth_audit.plan.plan import load_plan
from synth_audit.samples import sample
from synth_audit.store.evidence import read_evidence
from synth_audit.store.workspace import Workspace

PLAN = {
    "source": {"parquet": {"path": "people.parquet"}},
    "columns": {"person": {"role": "identifier"}},
    "generator": "independent",
    "audits": ["exact_match"],
    "gates": "gates.json",
    "release": {"parquet": {"path": "released.parquet"}},
}


def people(n=150, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "person": [f"P{seed}-{i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 0.4, n),
            "city": rng.choice(["north", "south"], n),
        }
    )


def suite(maximum, name="exact_match.excess"):
    meta = {"id": "gate", "reason": "for the test"}
    kwargs = {"name": name, "maximum": maximum}
    one = {"type": "expect_measurement_to_be_within", "kwargs": kwargs, "meta": meta}
    return json.dumps({"name": "small", "expectations": [one]})


@pytest.fixture
def home(tmp_path, monkeypatch, with_salt):
    """The working folder, with a plan that passes."""
    for workspace in ("out", "plan-audit"):
        with_salt(Workspace(tmp_path / workspace))
    monkeypatch.chdir(tmp_path)
    pq.write_table(people(), "people.parquet")
    Path("gates.json").write_text(suite(0.2))
    Path("plan.yaml").write_text(yaml.safe_dump(PLAN))
    return tmp_path


def newest(folder):
    return read_evidence(Workspace(Path(folder)).evidence)


def invoke(*words, code=0):
    """Run a command in this process; an unexpected exception is a failure of the test."""
    result = CliRunner().invoke(cli.main, [str(w) for w in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


COMMANDS = sorted(cli.main.commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(name):
    shown = invoke(name, "--help").stdout
    assert "Example" in shown
    assert f"synth-audit {name}" in shown
    assert shown.startswith(f"Usage: main {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_name_options_that_exist(name):
    command = cli.main.commands[name]
    options = [p for p in command.params if isinstance(p, click.Option)]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    examples = [line for line in (command.help or "").splitlines() if f"synth-audit {name}" in line]
    used = {word for line in examples for word in line.split() if word.startswith("--")}
    assert used <= known


def test_the_first_page_says_where_to_start():
    shown = invoke("--help").stdout
    for word in ("synth-audit demo", "Exit codes", *COMMANDS):
        assert word in shown
    assert invoke("--version").stdout == f"synth-audit, version {build_version()}\n"
    assert invoke("-h").stdout == shown
    headings = [f"{job}:" for job in CommandJob]
    assert [line for line in shown.splitlines() if line in (*headings, "Commands:")] == headings


def test_the_demo_without_dagster_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    told = invoke("demo", code=2).stderr
    assert "not installed" in told
    assert "synth-audit[dagster]" in told


def test_a_pass_is_released(home):
    result = invoke("run", "plan.yaml", "--out", "out")
    assert "PASS: This synthetic table may be released." in result.stdout
    assert "  ✓ 2 gates passed: 2 deciding\n" in result.stdout
    assert result.stdout.endswith("next: synth-audit report out --open\n")
    assert "  within limit: singling out\n" in result.stdout
    assert "  not tested: linkability (no audit for it was part of this run)" in result.stdout
    assert "report.html" in result.stdout
    assert "to released" not in result.stderr
    assert f"to {home / 'released.parquet'}" in result.stdout
    rows = pq.read_metadata("released.parquet").num_rows
    assert rows == newest("out").tables["synthetic"].rows
    assert f"released {rows:,} rows" in result.stdout


def test_formulas_in_a_csv_release_are_told_and_stay(home):
    cities = ["=1+1" if i % 2 else "south" for i in range(150)]
    pq.write_table(people().set_column(3, "city", pa.array(cities)), "people.parquet")
    Path("plan.yaml").write_text(yaml.safe_dump(PLAN | {"release": "released.csv"}))
    told = "warning: column 'city' of the CSV release: there is text that begins with ="
    assert told in invoke("run", "plan.yaml", "--no-release", "--out", "out").stdout
    assert told in invoke("release", "plan.yaml", "--out", "out").stdout
    assert "of the CSV release" in Workspace(Path("out")).report.read_text()
    assert "=1+1" in Path("released.csv").read_text()


def test_json_is_json_alone_and_a_release_is_told_aside(home):
    result = invoke("run", "plan.yaml", "--json")
    plain = json.loads(result.stdout)
    assert plain["verdict"] == "pass"
    assert [g["gate"] for g in plain["gates"]] == ["schema_contract", "gate"]
    assert plain["criteria"]["singling out"] == {"state": "within limit", "reason": ""}
    assert plain["criteria"]["linkability"]["state"] == "not tested"
    assert plain["digest"] == newest("plan-audit").digest
    assert all(Path(f).exists() for f in plain["files"])
    assert result.stderr.startswith("released ")


def test_no_release_when_told_so(home):
    invoke("run", "plan.yaml", "--no-release", "--out", "out")
    assert not Path("released.parquet").exists()
    assert "released" in invoke("release", "plan.yaml", "--out", "out").stdout
    assert Path("released.parquet").exists()


@pytest.mark.parametrize(("maximum", "word"), [(-0.5, "FAIL"), (1e-9, "INSUFFICIENT EVIDENCE")])
def test_what_does_not_pass_is_not_released(home, maximum, word):
    Path("gates.json").write_text(suite(maximum))
    result = invoke("run", "plan.yaml", "--out", "out", code=1)
    assert f"{word}: This synthetic table must not be released" in result.stdout
    assert "→" in result.stdout, "it says what to do"
    refused = invoke("release", "plan.yaml", "--out", "out", code=1)
    assert refused.stderr.startswith("error: release refused: ")
    assert "fix:" in refused.stderr
    assert not Path("released.parquet").exists()


def test_an_errored_audit_ends_in_3_and_is_not_released(home, monkeypatch):
    def broken(self, subject, context):
        raise ValueError(subject.train.labels("city")[0])

    monkeypatch.setattr(registry.find("audit", "exact_match").load(), "run", broken)
    result = invoke("run", "plan.yaml", "--out", "out", "--json", code=3)
    assert json.loads(result.stdout)["errors"]
    assert "ValueError at test_cli.py" in json.loads(result.stdout)["errors"][0]
    assert not Path("released.parquet").exists()
    invoke("release", "plan.yaml", "--out", "out", code=1)


def test_an_unexpected_error_shows_its_place_and_no_value(home, monkeypatch):
    def broken(*args):
        raise ValueError("cannot fit value 4711-canary")

    monkeypatch.setattr(registry.find("generator", "independent").load(), "fit", broken)
    result = invoke("run", "plan.yaml", "--out", "out", code=3)
    assert "ValueError at" in result.stderr
    assert "canary" not in result.output


def test_an_audit_that_would_exit_cannot_pass(home, monkeypatch):
    def leave(self, subject, context):
        sys.exit(0)

    monkeypatch.setattr(registry.find("audit", "exact_match").load(), "run", leave)
    invoke("run", "plan.yaml", code=3)


def test_exit_codes_of_evidence(home):
    invoke("run", "plan.yaml", "--out", "out")
    path = Workspace(Path("out")).evidence
    assert json.loads(invoke("gate", path, "--suite", "gates.json", "--json").stdout)["verdict"] == "pass"
    Path("strict.json").write_text(suite(-0.5))
    trial = invoke("gate", path, "--suite", "strict.json", code=1).stdout
    assert "Under the suite 'small': fail." in trial
    assert "may be released" not in trial
    assert invoke("gate", "out", "--suite", "gates.json").stdout.startswith("plan (independent; rows: ")
    for _ in range(2):  # the second time in place of the first
        assert invoke("report", "out", "--to", "r.html").stdout == "r.html\n"
    before = Path("gates.json").read_bytes()
    Path("link.html").symlink_to("r.html")
    for name in ("gates.json", "link.html", "."):
        assert "no report" in invoke("report", "out", "--to", name, code=2).stderr
    assert Path("gates.json").read_bytes() == before
    Path("notes.html").write_text("<p data-gate='x'>mine")
    assert "--force" in invoke("report", "out", "--to", "notes.html", code=2).stderr
    invoke("report", "out", "--to", "notes.html", "--force")
    assert Path("notes.html").read_bytes() == Path("r.html").read_bytes()
    assert invoke("report", path.parent).stdout == f"{path.with_name('report.html').absolute()}\n"
    assert Path("r.html").stat().st_size > 1000
    checks = json.loads(invoke("verify", path, "--json").stdout)
    assert all(c["holds"] for c in checks)
    assert {"content of train", "content of synthetic"} <= {c["what"] for c in checks}
    shown = invoke("verify", "out", "--source", "people.parquet", "--synthetic", "released.parquet").stdout
    assert "✓ content of source" in shown
    assert "✗ content of train" in invoke("verify", path, "--train", "people.parquet", code=1).stdout
    Path("alone.json").write_bytes(path.read_bytes())
    shown = invoke("verify", "alone.json", code=4).stdout
    assert "· entry in the journal: not checkable here: the file lies by itself" in shown
    path.write_text(path.read_text().replace('"verdict": "pass"', '"verdict": "fail"'))
    assert "✗ digest" in invoke("verify", path, code=1).stdout
    invoke("gate", path, "--suite", "gates.json", code=2)


def test_a_report_opens_in_the_browser(home, monkeypatch):
    invoke("run", "plan.yaml", "--out", "out")
    opened = []
    monkeypatch.setattr(click, "launch", opened.append)
    shown = invoke("report", "out", "--open").stdout.strip()
    assert opened == [Path(shown).as_uri()]
    invoke("report", "out", "--certificate")
    assert len(opened) == 1


def test_sample_files_are_written_once_and_replace_nothing(home):
    said = invoke("sample").stdout.splitlines()
    assert said[-1].startswith("next: synth-audit audit sample/train.csv sample/control.csv sample/")
    before = {path.name: path.read_bytes() for path in Path("sample").iterdir()}
    assert sorted(before) == ["bad.csv", "control.csv", "good.csv", "train.csv"]
    invoke("sample")
    assert {path.name: path.read_bytes() for path in Path("sample").iterdir()} == before
    rows = {name: set(text.splitlines()[1:]) for name, text in before.items()}
    assert rows["bad.csv"] <= rows["train.csv"]
    assert len(rows["good.csv"] & rows["train.csv"]) < 30
    Path("sample/good.csv").write_text("mine")
    Path("sample/bad.csv").unlink()
    assert "sample/good.csv" in invoke("sample", code=2).stderr
    assert Path("sample/good.csv").read_text() == "mine"
    assert not Path("sample/bad.csv").exists()


def test_auditing_files(home):
    for seed, name in enumerate(("train", "control", "synthetic")):
        pq.write_table(people(seed=seed).drop_columns(["person"]), f"{name}.parquet")
    Path("audit.yaml").write_text(
        yaml.safe_dump({"audits": ["exact_match", "marginals"], "gates": "gates.json"})
    )
    files = ("train.parquet", "control.parquet", "synthetic.parquet", "--plan", "audit.yaml")
    result = invoke("audit", *files, "--out", "out")
    assert str(Workspace(Path("out")).report) in result.stdout
    assert result.stdout.splitlines()[-1].endswith("synthetic.parquet, not synthetic.parquet")
    assert "temporary files" not in result.stderr
    alone = invoke("audit", *files, "--only", "marginals", "--json", code=1)
    assert f"were in {tempfile.gettempdir()}, in folders of mode 0700" in alone.stderr
    plain = json.loads(alone.stdout)
    assert plain["verdict"] == "insufficient evidence"
    assert plain["files"] == []
    assert "the same file" in invoke("audit", *files[:2], *files[1:2], code=2).stderr
    Path("copy.parquet").write_bytes(Path("train.parquet").read_bytes())
    copied = ("train.parquet", "control.parquet", "copy.parquet", "--plan", "audit.yaml")
    assert "FAIL" in invoke("audit", *copied, code=1).stdout


@pytest.mark.parametrize("where", ["people.yaml", "plans/deep/people.yaml"])
def test_init_writes_a_plan_that_loads_and_runs(home, where):
    said = invoke("init", "people.parquet", "--plan", where).stdout
    assert where in said
    text = Path(where).read_text()
    assert text.startswith("# A plan decides")
    plan = load_plan(where)
    assert plan.columns["person"].roles == ("identifier",)
    assert {name: spec.kind for name, spec in plan.columns.items()} == {
        "person": "categorical",
        "age": "integer",
        "income": "continuous",
        "city": "categorical",
    }
    quick = {"generator": "independent", "audits": ["exact_match"], "gates": str(home / "gates.json")}
    Path(where).write_text(yaml.safe_dump(yaml.safe_load(text) | quick))
    invoke("run", where, "--out", "out")


def test_init_never_overwrites_and_names_the_plan_after_the_table(home):
    invoke("init", "people.parquet")
    before = Path("people.yaml").read_text()
    refused = invoke("init", "people.parquet", code=2)
    assert "exists already" in refused.stderr
    assert Path("people.yaml").read_text() == before


def test_init_without_a_source_writes_an_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    invoke("init")
    plan = load_plan("plan.yaml")
    assert plan.source is not None
    assert plan.source.name == "duckdb"


def test_init_copes_with_many_identifiers(home):
    table = pa.table({"id": [f"P{i}" for i in range(20_000)], "x": np.arange(20_000) % 7})
    pq.write_table(table, "big.parquet")
    invoke("init", "big.parquet")
    assert load_plan("big.yaml").columns["id"].roles == ("identifier",)


def test_the_catalogue(home):
    plain = json.loads(invoke("list", "--json").stdout)
    assert {"parquet", "duckdb"} <= set(plain["source"])
    assert {"vine", "independent"} <= set(plain["generator"])
    assert {"exact_match", "marginals"} <= set(plain["audit"])
    shown = invoke("list").stdout
    for plugins in plain.values():
        assert all(name in shown and title in shown for name, title in plugins.items())
        for name in plugins:
            assert name in invoke("describe", name).stdout
            assert json.loads(invoke("describe", name, "--json").stdout)["name"] == name


def test_describe_shows_settings_and_measurements():
    shown = invoke("describe", "exact_match").stdout
    assert "exact_match.excess" in shown
    assert "threat model" in shown
    assert "cells" in invoke("describe", "marginals").stdout
    assert "embedding_settings.width: whole number; default 256" in invoke("describe", "coverage").stdout
    assert "generator: {vine: {root: auto" in invoke("describe", "vine").stdout
    assert "needs:" in invoke("describe", "vine").stdout
    assert "10 rows" in invoke("describe", "vine").stdout
    unknown = invoke("describe", "nonsense", code=2)
    assert "expected: one of" in unknown.stderr


def test_schemas_are_json():
    import jsonschema

    for what in ("plan", "evidence"):
        schema = json.loads(invoke("schema", what).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(json.loads(invoke("schema").stdout)).validate(PLAN)
    invoke("schema", "nonsense", code=2)


@pytest.mark.parametrize(("ended", "code"), [(0, 0), (1, 1), (2, 2), (-9, 3), (127, 3)])
def test_the_demo_passes_its_exit_code_on(monkeypatch, ended, code):
    ran = []

    def stand_in(command, check):
        ran.append(command)
        return subprocess.CompletedProcess(command, ended)

    monkeypatch.setattr(subprocess, "run", stand_in)
    invoke("demo", "there", code=code)
    assert ran == [[sys.executable, "-m", "synth_audit.dagster.demo", "there"]]


@pytest.mark.parametrize(
    "words", [("nonsense",), ("run",), ("run", "plan.yaml", "--nonsense"), ("audit", "a")]
)
def test_wrong_usage_ends_in_2(words):
    result = invoke(*words, code=2)
    assert "Usage:" in result.output


def test_a_real_process_is_quiet_without_a_terminal(home):
    program = [sys.executable, "-c", "from synth_audit.cli import main; main(prog_name='synth-audit')"]
    done = subprocess.run([*program, "run", "plan.yaml"], check=False, capture_output=True, text=True)
    assert done.returncode == 0
    spoken = re.compile(r"\d+ s: \w+.*")  # where the machine is slow
    assert all(map(spoken.fullmatch, done.stderr.splitlines()))
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert "PASS" in done.stdout
    done = subprocess.run([*program, "run", "nowhere.yaml"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the plan cannot be read")
    assert "Traceback" not in done.stderr


def test_the_progress_bar_is_for_terminals(monkeypatch):
    from synth_audit.cli import terminal

    class Terminal:
        def isatty(self):
            return True

        def __getattr__(self, name):
            return getattr(sys.__stderr__, name)

    with terminal.progress_bar() as quiet:
        assert quiet("fit", 0, 2) is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with terminal.progress_bar() as bar:
        bar("fit", 1, 2)
        assert "lambda" in repr(bar)


def test_the_verbs_are_the_functions():
    for name in ("audit", "run", "gate", "verify", "release", "purge"):
        assert callable(getattr(api, name))
        assert name in cli.main.commands


def test_where_the_work_is_done_comes_from_the_command_line_else_the_plan(home, monkeypatch):
    seen = []

    @contextmanager
    def opened(name, workers, scheduler):
        seen.append((name, workers, scheduler))
        yield Executor()

    monkeypatch.setattr(inputs, "opened", opened)
    where = {"executor": "dask", "scheduler": "tcp://10.0.0.5:8786"}
    Path("plan.yaml").write_text(yaml.safe_dump(PLAN | {"execution": where}))
    invoke("run", "plan.yaml", "--out", "out")
    invoke("run", "plan.yaml", "--out", "out", "--workers", 3)
    invoke("run", "plan.yaml", "--out", "out", "--scheduler", "tcp://other:1")
    late = invoke("run", "plan.yaml", "--out", "late", "--executor", "serial", "--deadline", 1e-9, code=1)
    assert seen == [
        ("dask", 2, "tcp://10.0.0.5:8786"),
        ("processes", 3, None),
        ("dask", 2, "tcp://other:1"),
        ("serial", 1, None),
    ]
    assert "PASS" not in late.stdout


@pytest.mark.parametrize("name", ["run", "audit", "calibrate", "frontier"])
def test_every_verb_that_audits_takes_the_same_options(name):
    shown = invoke(name, "--help").stdout
    for option in ("workers", "executor", "scheduler", "deadline", "device"):
        assert f"--{option}" in shown
    assert "serial|processes|dask" in shown


def test_what_does_not_go_together_is_bad_input(home):
    shown = invoke("run", "plan.yaml", "--executor", "serial", "--workers", 2, code=2).stderr
    assert "one worker" in shown


def test_comparing_two_audits(home):
    invoke("run", "plan.yaml", "--no-release")
    invoke("run", "plan.yaml", "--out", "out", "--no-release")
    said = invoke("compare", "plan-audit", "out").stdout
    assert "without a change beyond their intervals; --all" in said
    assert said.rstrip().endswith("pass → pass")
    every = json.loads(invoke("compare", "plan-audit", "out", "--json").stdout)
    assert {"gate", "change", "value_before", "value_after"} <= set(every[0])
    assert "schema_contract  pass → pass: unchanged" in invoke("compare", "plan-audit", "out", "--all").stdout
    invoke("compare", "plan-audit", "nowhere", code=2)


def test_a_shell_completes_plugins_and_suites():
    def completed(command, option, start):
        (param,) = [p for p in cli.main.commands[command].params if p.name == option]
        return [item.value for item in param.shell_complete(click.Context(cli.main.commands[command]), start)]

    assert completed("describe", "name", "closest") == ["closest_record"]
    assert "vine" in completed("describe", "name", "")
    assert completed("audit", "only", "vi") == []
    assert completed("gate", "suite", "rel") == ["release"]


def test_init_replaces_a_plan_when_told_to_and_writes_a_schema(home):
    Path("mine.yaml").write_text("mine")
    invoke("init", "people.parquet", "--plan", "mine.yaml", code=2)
    assert Path("mine.yaml").read_text() == "mine"
    invoke("init", "people.parquet", "--plan", "mine.yaml", "--force", "--schema")
    assert load_plan("mine.yaml").columns["person"].roles == ("identifier",)
    assert Path("mine.yaml").read_text().startswith("# yaml-language-server: $schema=plan.schema.json")
    assert "properties" in json.loads(Path("plan.schema.json").read_text())
    Path("folder.yaml").mkdir()
    invoke("init", "people.parquet", "--plan", "folder.yaml", "--force", code=2)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "verdict"), [("good", "pass"), ("bad", "fail")])
def test_the_samples_end_as_they_say(tmp_path, version, verdict):
    files = sample(tmp_path)
    evidence = api.audit(files["train"], files["control"], files[version], out=tmp_path / "out")
    assert evidence.verdict == verdict
    assert evidence.passed == (verdict == "pass")
