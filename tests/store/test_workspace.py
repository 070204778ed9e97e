"""Folders that others could read or swap hold no real row."""

import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import DataError
from synth_audit.store import files
from synth_audit.store.files import hash_parquet, read_parquet, write_text
from synth_audit.store.workspace import Workspace
from synth_audit.table import arrow
from synth_audit.table.content_hash import fingerprint


def refused(workspace, folder, *says):
    with pytest.raises(DataError) as caught:
        workspace.prepare()
    for words in says:
        assert words in str(caught.value)
    assert caught.value.where == str(folder)
    assert caught.value.expected
    assert caught.value.fix


def test_new_folders_are_its_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        workspace = Workspace(tmp_path / "deep" / "audit").prepare()
    finally:
        os.umask(before)
    assert stat.S_IMODE(workspace.restricted.stat().st_mode) == 0o700
    assert workspace.prepare() == workspace, "a second run takes the same folder"
    assert (workspace.restricted / ".gitignore").read_text() == "*\n", "real rows go into no repository"


@pytest.mark.parametrize("name", [".", "review", "restricted"])
def test_a_link_is_refused(tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    root = tmp_path / "audit"
    link = root / name
    link.parent.mkdir(exist_ok=True) if name != "." else None
    (root if name == "." else link).symlink_to(elsewhere)
    refused(Workspace(root), root if name == "." else link, "is a link")
    assert not list(elsewhere.iterdir())


def test_a_link_that_leads_nowhere_is_refused(tmp_path):
    (tmp_path / "audit").symlink_to(tmp_path / "nowhere")
    refused(Workspace(tmp_path / "audit"), tmp_path / "audit", "is a link")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["audit", "audit/review", "audit/restricted"])
def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch, name):
    Workspace(tmp_path / "audit").prepare()
    real = os.lstat

    class Strange:
        def __init__(self, found):
            self.st_mode, self.st_uid = found.st_mode, found.st_uid + 1

    monkeypatch.setattr(
        os, "lstat", lambda path: Strange(real(path)) if Path(path) == tmp_path / name else real(path)
    )
    refused(Workspace(tmp_path / "audit"), tmp_path / name, "belongs to another user")


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_restricted_folder_open_to_others_is_refused(tmp_path, mode):
    workspace = Workspace(tmp_path / "my audit").prepare()
    workspace.restricted.chmod(mode)
    refused(workspace, workspace.restricted, f"mode {mode:04o}", f"chmod 700 '{workspace.restricted}'")


def test_a_file_in_the_place_of_the_workspace_is_refused(tmp_path):
    (tmp_path / "audit").write_text("x")
    refused(Workspace(tmp_path / "audit"), tmp_path / "audit", "is a file")


@pytest.mark.parametrize(
    "path", ["s3://bucket/audit", "s3:/bucket/audit", "md:audit", "HTTPS://host/a", "a\0b"]
)
def test_nothing_is_written_to_what_is_no_path(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for write in (Workspace(Path(path)).prepare, lambda: write_text(Path(path), "x")):
        with pytest.raises(DataError, match="nothing can be written there"):
            write()
    assert not list(tmp_path.iterdir())


def spoilt(path, content):
    """Three rows in a file whose bytes a function changes."""
    pq.write_table(pa.table({"n": [1, 2, 3], "word": ["swordfish", None, "x"]}), path, compression="none")
    path.write_bytes(content(path.read_bytes()))
    return path


def declaring(n_rows, held=3):
    """A file of so many rows whose footer declares another number of them."""

    def change(content):
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        before, mark, after = content[footer:].partition(bytes([0x16, 2 * held]))
        return content[:footer] + before + mark[:1] + bytes([2 * n_rows]) + after

    return change


@pytest.mark.parametrize("most", [0, 2**30])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (declaring(30), "declares 30 rows and holds 3"),
        (declaring(0), "declares 0 rows and holds 3"),
        (lambda content: content[:-20], "cannot be read"),
        (lambda content: content[:4] + bytes(60) + content[64:], "cannot be read"),
    ],
)
def test_a_damaged_table_is_told_with_what_to_do(tmp_path, monkeypatch, most, mapped, content, says):
    monkeypatch.setattr(arrow, "MOST_HELD", most)
    path = spoilt(tmp_path / "train.parquet", content)
    with pytest.raises(DataError, match=f"a workspace file {says}") as caught:
        read_parquet(path, made_by="split", folder=tmp_path if mapped else None)
    assert caught.value.where == str(path)
    assert caught.value.fix == "run the split stage again"
    assert "swordfish" not in str(caught.value)
    with pytest.raises(DataError, match=f"a workspace file {says}"):
        hash_parquet(path, made_by="split")


def test_a_table_without_rows_of_which_some_are_declared_is_damaged(tmp_path):
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), path)
    path.write_bytes(declaring(30, held=0)(path.read_bytes()))
    for folder in (None, tmp_path):
        with pytest.raises(DataError, match="declares 30 rows and holds 0"):
            read_parquet(path, made_by="split", folder=folder)
    with pytest.raises(DataError, match="declares 30 rows and holds 0"):
        hash_parquet(path, made_by="split")


def test_a_file_is_hashed_by_batches_as_the_table_that_it_holds(tmp_path, monkeypatch):
    data = pa.table({"n": range(10), "word": [None, *"abcdefghi"]})
    pq.write_table(data, tmp_path / "rows.parquet")
    monkeypatch.setattr(files, "BATCH", 3)
    assert hash_parquet(tmp_path / "rows.parquet", made_by="split") == fingerprint(data)
    pq.write_table(data.slice(0, 0), tmp_path / "none.parquet")
    assert hash_parquet(tmp_path / "none.parquet", made_by="split") == fingerprint(data.slice(0, 0))
