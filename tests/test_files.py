"""Files are replaced whole, and nothing but files is; YAML and JSON are read strictly."""

import json
import os
import stat
from pathlib import Path

import pytest

from synth_audit import files
from synth_audit.errors import PlanError
from synth_audit.files import MOST_LEVELS, Malformed, load_json, load_yaml, replacing
from synth_audit.plan.plan import parse_plan
from synth_audit.registry import build


def write(path, text):
    with replacing(path) as temporary:
        temporary.write_text(text)


def interrupted(path):
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_file_is_replaced_and_a_failure_leaves_it(tmp_path):
    path = tmp_path / "new" / "x.txt"
    write(path, "one")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_text() == "one"
    write(path, "two")
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["x.txt"]


def test_what_is_no_file_is_never_replaced(tmp_path):
    """Whoever may do anything and says `--to /dev/null` would break that for the whole machine."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    for path in (pipe, link):
        with pytest.raises(FileExistsError):
            write(path, "text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(link.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 2000))


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("\na: " + "[" * 5000 + "]" * 5000, "levels deep", 2),
        ("a: " + "[" * 5000, "levels deep", 1),
        ("".join(" " * i + "a:\n" for i in range(900)), "levels deep", MOST_LEVELS),
        (LAUGHS, "stands for more than", 7),
        (CHAIN, "levels deep", MOST_LEVELS),
        ("a: &a [*a]", "an alias stands for what it is a part of", 1),
        ("a: &a {b: {c: *a}}", "an alias stands for what it is a part of", 1),
        ("a: 1\nb: 2\na: 3", "a key occurs twice", 3),
        ("x: 1\n? [a]\n: 1", "a list or mapping stands for a key", 2),
        ("x: 1\n? !!timestamp x\n: 1", "not what its form or tag says", 2),
        *(
            (f"x: 1\na: {value}", "not what its form or tag says", 2)
            for value in (
                "!!timestamp x", "!!bool x", "!!bool ''", "!!int ''", "!!int _", "!!int x", "!!int 0b",
                "!!float .", "2020-99-99", "9" * 5000,
            )
        ),
        ("a: !!set x", "not what its form or tag says", 1),
        ("a: !!map x", "not what its form or tag says", 1),
    ],
)  # fmt: skip
def test_yaml_that_is_refused(text, says, line):
    with pytest.raises(Malformed, match=says) as caught:
        load_yaml(text)
    assert caught.value.reason.count(says) == 1
    assert caught.value.line == line or (line == MOST_LEVELS and 0 < caught.value.line <= MOST_LEVELS + 2)


@pytest.mark.parametrize(
    "value",
    ["!!python/object/apply:os.system [x]", "!foo x", "!!omap x", "!!pairs x", "!!binary x", "*x", "[1"],
)
def test_yaml_that_is_none_names_its_line(value):
    with pytest.raises(Malformed) as caught:
        load_yaml(f"a: 1\nb: {value}")
    assert caught.value.line == 2
    assert caught.value.reason == ""


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("[" * 200_000 + "]" * 200_000, "levels deep", 0),
        ("[" * 900 + "]" * 900, "levels deep", 0),
        ('{"a": ' * 65 + "1" + "}" * 65, "levels deep", 0),
        ('{"a": 1, "a": 2}', "a key occurs twice", 0),
        ("9" * 5000, "not what its form", 0),
        ("{\n1}", "malformed", 2),
    ],
)
def test_json_that_is_refused(text, says, line):
    with pytest.raises(Malformed, match=says) as caught:
        load_json(text)
    assert caught.value.line == line


def test_what_people_write_is_read():
    deep = "[" * (MOST_LEVELS - 1) + "]" * (MOST_LEVELS - 1)
    assert load_json(deep) == json.loads(deep)
    assert load_yaml(deep) == json.loads(deep)
    anchored = load_yaml("a: &kind {kind: integer}\nb: *kind\nc: [1, 2.5, true, null, 2024-02-29, x]")
    assert anchored["b"] == {"kind": "integer"}
    assert anchored["c"][:4] == [1, 2.5, True, None]


URLS = (
    "s3://b/x.parquet",
    "s3:/b/x.csv",
    "md:db",
    "MotherDuck:db",
    "http://h/x.csv",
    "gs://x/y.pq",
    "foo+bar://x",
)


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_refused_and_named(url):
    scheme = url.split(":")[0]
    assert files.problem_of(url).startswith(f"{scheme}: is no path of this machine, and there is no source")
    for plugin, more in (("parquet", {}), ("csv", {}), ("duckdb", {"table": "t"})):
        with pytest.raises(PlanError, match="there is no source for it yet"):
            build("source", plugin, {"path": url, **more})
    for key in ("source", "release"):
        with pytest.raises(PlanError, match="there is no source for it yet") as caught:
            parse_plan({key: url})
        assert caught.value.where == key
    with pytest.raises(PlanError, match="there is no source for it yet"):
        build("generator", "external", {"source": url})


@pytest.mark.parametrize("path", ["", " ", "a\0b.csv", os.fsdecode(b"a\xff.csv")])
def test_what_is_no_path_is_refused(path):
    assert files.problem_of(path)
    with pytest.raises(PlanError):
        build("source", "csv", {"path": path})


@pytest.mark.parametrize(
    "path", ["data:2024.csv", "C:\\x.csv", "12:30.parquet", "/mnt/s3:/x", "./md:x", "ä b.csv", "~"]
)
def test_a_path_is_a_path(path):
    assert files.problem_of(path) == ""


def test_text_with_and_without_a_byte_order_mark(tmp_path):
    for content in (b"a: 1", b"\xef\xbb\xbfa: 1"):
        (tmp_path / "x").write_bytes(content)
        assert files.read_text(tmp_path / "x") == "a: 1"


def test_an_endless_file_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        files.read_text(Path("/dev/zero"))
