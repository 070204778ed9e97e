"""What a fuzzer tries: each ends in one clear error with where, expected and fix, and with exit code 2."""

import errno
import json
import os
import tempfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from synth_audit import api, cli, registry
from synth_audit.errors import DataError, SynthAuditError, Unavailable

BASE = {"source": "people.csv", "generator": "independent", "audits": ["exact_match"], "gates": "gates.json"}

ROWS = "{train}{synthetic}{rows}"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, write_suite):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(
        "age,city\n" + "\n".join(f"{20 + i % 50},{'ab'[i % 2]}" for i in range(100))
    )
    write_suite()
    return tmp_path


def refused(*words, says=""):
    result = CliRunner().invoke(cli.main, [str(w) for w in words])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert says in result.stderr
    for part in ("where", "expected", "fix"):
        assert f"\n  {part}: " in result.stderr, result.stderr
    assert len(result.stderr) < 3500
    assert not [c for c in result.stderr if c != "\n" and not c.isprintable()]
    return result.stderr


def refused_plan(says="", **changes):
    Path("plan.yaml").write_text(yaml.safe_dump(BASE | changes))
    return refused("run", "plan.yaml", says=says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: " + "[" * 5000 + "]" * 5000, "the plan is not valid YAML: it nests more than"),
        ("seed: !!timestamp x", "the plan is not valid YAML: a value is not what its form or tag says"),
        ("x: &a [*a]", "an alias stands for what it is a part of"),
        ("? " + "k" * 40_000 + "\n: 1", "unknown key 'kkk"),
        ("columns:\n  ? " + "k" * 40_000 + "\n  : {knd: 1}", "unknown key"),
        ("\ufeff", "the plan is not a mapping"),
        ("\x1b[31m: 1", "not valid YAML"),
        ('"\\e[31m\\nPASS": 1', "unknown key"),
        ("".join(f"k{i}: 1\n" for i in range(500)), "and 490 more"),
    ],
)
def test_a_plan_that_is_none(text, says):
    Path("plan.yaml").write_text(text)
    refused("run", "plan.yaml", says=says)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"gates": "g" * 300}, "there is no gate suite"),
        ({"gates": "g/" * 5000}, "there is no gate suite"),
        ({"gates": "g\0x"}, "there is no gate suite"),
        ({"gates": "."}, "there is no gate suite"),
        ({"source": {"csv": {"path": "a\0b"}}}, "null character"),
        ({"source": {"csv": {"path": "a" * 300}}}, "the CSV file cannot be reached"),
        ({"source": {"csv": {"path": "a/" * 5000}}}, "the CSV file cannot be reached"),
        ({"source": {"parquet": {"path": "/dev/zero"}}}, "the Parquet file is no ordinary file"),
        ({"source": "~nobody-of-this-name/people.csv"}, "the CSV file does not exist"),
        ({"source": "r" * 40_000 + ".txt"}, "no source reads the file"),
        ({"source": {"csv": {"path": "people.csv", "text": ["x" * 40_000]}}}, "has no column"),
        ({"release": {"csv": {"path": "a\0b"}}}, "null character"),
        ({"release": "s3://bucket/x.parquet"}, "s3: is no path of this machine"),
        ({"release": {"duckdb": {"path": "md:db", "table": "t"}}}, "md: is no path of this machine"),
        ({"generator": "g" * 40_000}, "unknown generator"),
        ({"generator": {"vine": {"g" * 40_000: 1}}}, "unknown field"),
        ({"rules": ["r" * 40_000]}, "rule"),
        ({"rules": ["age in " + "[" * 5000 + "]" * 5000]}, "rule"),
        ({"rules": [""]}, "cannot be read"),
        ({"rows": 10**30}, "rows"),
        ({"name": "n" * 100_000}, "name: String should have at most 200 characters"),
        ({"columns": {"age": {"bounds": [float("-inf"), 90]}}}, "bounds must be finite"),
        ({"columns": {"age": {"bounds": [float("nan"), 90]}}}, "[lowest, highest]"),
        ({"generator": {"external": {"command": ["x", ROWS], "timeout": 1e300}}}, "at most"),
        ({"generator": {"external": {"command": ["x\0", ROWS]}}}, "cannot be started"),
    ],
    ids=lambda x: ascii(x)[:40] if isinstance(x, dict) else "",
)  # fmt: skip
def test_a_plan_with_what_cannot_be(changes, says):
    refused_plan(says, **changes)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_suite_that_breaks_a_loader(suffix):
    suite = json.loads(Path("gates.json").read_text())
    deep = json.dumps(suite | {"notes": 0}).replace('"notes": 0', '"notes": ' + "[" * 5000 + "]" * 5000)
    Path(f"g.{suffix}").write_text(deep)
    refused_plan("the gate suite is damaged: it nests more than", gates=f"g.{suffix}")
    long = suite | {"k" * 40_000: 1}
    Path(f"g.{suffix}").write_text(json.dumps(long) if suffix == "json" else yaml.safe_dump(long))
    refused_plan("unknown key", gates=f"g.{suffix}")
    Path("g.yaml").write_text("name: !!bool x")
    refused_plan("the gate suite is damaged: a value is not", gates="g.yaml")


def test_evidence_that_breaks_a_loader():
    for content in (
        "[" * 5000 + "]" * 5000,
        "",
        "null",
        '{"table": "\ud800"}'.encode("utf-8", "surrogatepass"),
    ):
        Path("e.json").write_bytes(content if isinstance(content, bytes) else content.encode())
        for words in (
            ("report", "e.json"),
            ("verify", "e.json"),
            ("gate", "e.json", "--suite", "gates.json"),
        ):
            refused(*words, says="the file is not evidence")


@pytest.mark.parametrize("verb", ["run", "frontier", "release"])
def test_paths_of_the_command_line(verb):
    for path in ("p" * 300, "p/" * 3000, ".", "/dev/null"):
        refused(verb, path)


@pytest.mark.parametrize("name", ["w" * 300, "w/" * 3000])
def test_workspaces_and_evidence_whose_name_is_too_long(name):
    for words in (
        ["verify", name],
        ["report", name],
        ["gate", name, "--suite", "release"],
        ["purge", name, "--keep", "1"],
        ["rerun", "plan.yaml", "--out", name],
    ):
        refused(*words)


@pytest.mark.parametrize("path", [".", "/"])
def test_what_is_no_name_of_a_file(path):
    from synth_audit.store.files import write_text

    with pytest.raises(SynthAuditError, match="cannot be written"):
        write_text(Path(path), "page")


def test_a_null_character_in_a_path_of_a_function():
    for call in (api.run, api.render_report, api.verify, lambda path: api.gate(path, "release")):
        with pytest.raises(SynthAuditError) as caught:
            call("a\0b")
        assert "\0" not in str(caught.value)
    with pytest.raises(SynthAuditError, match="null character"):
        api.audit("a\0b.csv", "people.csv", "people.csv")


def test_tables_and_folders_of_the_command_line():
    tables = ("people.csv", "control.csv", "synthetic.csv")
    refused("audit", "s3://b/x.csv", *tables[1:], says="s3: is no path of this machine")
    refused("audit", "t" * 300 + ".csv", *tables[1:], says="cannot be reached")
    refused("init", "s3://b/x.parquet", says="s3: is no path of this machine")
    refused("init", "people.csv", "--plan", "s3://b/x.yaml", says="s3: is no path of this machine")
    refused("init", "people.csv", "--plan", "x" * 300 + ".yaml", says="cannot be written")
    Path("plan.yaml").write_text(yaml.safe_dump(BASE))
    refused("run", "plan.yaml", "--out", "s3://b/x", says="s3: is no path of this machine")
    refused("run", "plan.yaml", "--out", "o" * 300, says="workspace cannot be made")
    assert sorted(p.name for p in Path.cwd().iterdir()) == ["gates.json", "people.csv", "plan.yaml"]


def test_names_that_are_no_text():
    """Parquet takes none, and no record could tell where a release went."""
    odd = os.fsdecode(b"w\xff")
    Path("plan.yaml").write_text(yaml.safe_dump(BASE))
    for words in (
        ["run", "plan.yaml", "--out", odd],
        ["audit", "people.csv", "control.csv", "synthetic.csv", "--out", odd],
        ["release", "plan.yaml", "--out", odd],
        ["report", odd],
        ["verify", odd],
        ["purge", odd, "--keep", "1"],
        ["init", odd + ".csv"],
    ):
        refused(*words)
    assert not Path(odd).exists()
    with pytest.raises(SynthAuditError, match="not written in UTF-8"):
        api.run(BASE | {"release": {"parquet": {"path": odd + ".parquet"}}}, "out")


def test_a_working_folder_whose_name_is_no_text(tmp_path):
    odd = Path(os.fsdecode(b"w\xff"))
    odd.mkdir()
    for name in ("people.csv", "gates.json"):
        (odd / name).write_bytes(Path(name).read_bytes())
    (odd / "plan.yaml").write_text(yaml.safe_dump(BASE))
    os.chdir(odd)
    for words in (
        ["run", "plan.yaml"],
        ["release", "plan.yaml"],
        ["audit", "people.csv", "control.csv", "synthetic.csv"],
    ):
        refused(*words)
    refused("run", "plan.yaml", "--out", tmp_path / "elsewhere", says="not written in UTF-8")


def test_a_working_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        refused("run", "plan.yaml", says="the working folder cannot be found")
    finally:
        os.chdir(tmp_path)


def test_too_little_memory_is_told(monkeypatch):
    def starved(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(registry, "catalogue", starved)
    result = CliRunner().invoke(cli.main, ["list"])
    assert result.exit_code == 3
    assert result.stderr.startswith("error: there is not enough memory\n")


@pytest.mark.parametrize("temporary", [False, True])
def test_a_full_disk_is_no_fault_of_the_program(monkeypatch, temporary):

    def full(*args, **kwargs):
        if temporary:
            tempfile.mkdtemp()
        raise OSError(errno.ENOSPC, "No space left on device", "a name that may hold a cell")

    if temporary:
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere at all"])
    monkeypatch.setattr(registry, "catalogue", full)
    result = CliRunner().invoke(cli.main, ["list"])
    assert result.exit_code == 75
    assert result.stderr.startswith("error: the disk is full")
    assert "cell" not in result.stderr


@pytest.mark.parametrize(("raised", "code"), [("away", 75), ("full", 75), ("wrong", 2)])
def test_what_may_be_tried_again_has_an_exit_code_of_its_own(monkeypatch, raised, code):

    def fails(*_, **__):
        if raised == "away":
            raise Unavailable("the database does not answer")
        try:
            raise OSError(errno.ENOSPC if raised == "full" else errno.EACCES, "no")
        except OSError:
            raise DataError("the file cannot be written") from None

    monkeypatch.setattr(registry, "catalogue", fails)
    assert CliRunner().invoke(cli.main, ["list"]).exit_code == code


@pytest.mark.parametrize("workers", ["0", "257", "9" * 30])
def test_workers_that_no_machine_has(workers):
    result = CliRunner().invoke(cli.main, ["run", "plan.yaml", "--workers", workers])
    assert result.exit_code == 2
    assert "1<=x<=256" in result.stderr
