"""A workspace that version 0.1.0 wrote (``data/make_workspace.py``) is read, verified and reported today."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from synth_audit import api
from synth_audit.store.locate import table_history

DATA = Path(__file__).parent / "data"


@pytest.fixture
def workspace(tmp_path):
    with tarfile.open(DATA / "workspace-0.1.0.tar.gz") as archive:
        archive.extractall(tmp_path / "old", filter="tar")  # which keeps the modes
    return tmp_path / "old/audit"


def test_it_is_read(workspace):
    evidence = api.load_evidence(workspace)
    assert (str(evidence.verdict), evidence.schema_version) == ("pass", "1.0")
    assert evidence.digest == workspace_digest(workspace)
    [audit] = table_history(workspace).audits
    assert (audit.sound, audit.out) == (True, True)


def test_it_is_verified_with_its_tables(workspace):
    checks = api.verify(workspace, {"synthetic": workspace.parent / "released.parquet"})
    assert [(c.what, c.detail) for c in checks if c.holds is False] == []
    held = {c.what for c in checks if c.holds}
    assert {f"content of {name}" for name in ("train", "control", "synthetic")} <= held
    assert "verdict, judged anew" in held


def test_it_is_reported_again(workspace, tmp_path):
    assert "<html" in api.render_report(workspace, tmp_path / "report.html")
    assert api.write_certificate(workspace).exists()
    assert not api.compare(workspace, workspace).changed


def workspace_digest(workspace):
    [folder] = (workspace / "review/audits").iterdir()
    return folder.name
