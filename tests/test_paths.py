from __future__ import annotations

import os
from pathlib import Path

import pytest

from synth_audit import files
from synth_audit.errors import PlanError
from synth_audit.plan.plan import parse_plan
from synth_audit.registry import build

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
