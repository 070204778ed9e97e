"""A workspace's salt: made once, kept secret, and never replaced where something rests on it."""

import multiprocessing
import os
import secrets
import stat

import pytest

from synth_audit import files
from synth_audit.errors import DataError
from synth_audit.execution import seeds
from synth_audit.store.salts import known_salt, read_salt, workspace_salt
from synth_audit.store.workspace import Workspace

TEXT = bytes(range(32)).hex() + "\n"


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "out")


def placed(workspace, text=TEXT, mode=0o600):
    workspace.prepare().salt.write_text(text)
    workspace.salt.chmod(mode)
    return workspace


def complete(error):
    return all(getattr(error.value, part) for part in ("what", "where", "expected", "fix"))


def test_the_first_to_ask_makes_it_and_all_others_get_it(workspace):
    seeds = workspace_salt(workspace)
    assert workspace_salt(workspace) == known_salt(workspace) == read_salt(workspace.salt) == seeds
    assert stat.S_IMODE(workspace.salt.stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.restricted.stat().st_mode) == 0o700
    assert workspace.salt.read_text() == seeds.text()
    assert {p.name for p in workspace.restricted.rglob("[!.]*")} == {"salt", "scratch"}


def test_each_workspace_has_its_own(tmp_path):
    assert len({workspace_salt(Workspace(tmp_path / str(i))).commitment for i in range(20)}) == 20


def test_candidates_of_a_sweep_have_the_salt_of_their_table(workspace):
    candidate = workspace.candidate("vine")
    seeds = workspace_salt(candidate)
    assert seeds == workspace_salt(workspace) == known_salt(workspace.candidate("other"))
    candidate.prepare().split_record.touch()
    assert workspace_salt(workspace) == seeds
    assert [p.name for p in workspace.root.rglob("salt")] == ["salt"]
    workspace.salt.unlink()
    with pytest.raises(DataError, match="missing, but"):
        workspace_salt(workspace)


def test_one_that_is_there_is_used(workspace):
    assert workspace_salt(placed(workspace)).text() == TEXT
    assert workspace.salt.read_text() == TEXT


def _ask(root, gate, told):
    seeds.secrets = secrets  # of the system: forks of the tests' seeded stream would all draw one salt
    gate.wait()
    told.put(workspace_salt(Workspace(root)).commitment)


@pytest.mark.parametrize("links", [True, False])
def test_processes_that_start_at_once_get_one_salt(workspace, links, monkeypatch):
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    fork = multiprocessing.get_context("fork")
    for _ in range(5):
        gate, told = fork.Event(), fork.Queue()
        asking = [fork.Process(target=_ask, args=(workspace.root, gate, told)) for _ in range(4)]
        for process in asking:
            process.start()
        gate.set()
        found = {told.get(timeout=20) for _ in asking}
        for process in asking:
            process.join()
        assert found == {read_salt(workspace.salt).commitment}
        workspace.salt.unlink()


def _no_links(source, to):
    raise PermissionError(1, "no links here")


def test_who_comes_second_leaves_the_first_ones(tmp_path, monkeypatch):
    for link in (os.link, _no_links):
        monkeypatch.setattr(os, "link", link)
        path = tmp_path / link.__name__
        assert files.create_once(path, b"first")
        assert not files.create_once(path, b"second")
        assert path.read_bytes() == b"first"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


HISTORY = [
    "restricted/split.json",
    "restricted/train.parquet",
    "restricted/exposed_records.parquet",
    "restricted/ledger.json",
    "review/evidence.json",
    "review/audits/0123abcd/evidence.json",
    "review/frontier.json",
    "candidates/vine/restricted/synthetic.json",
]


@pytest.mark.parametrize("file", HISTORY)
def test_a_missing_salt_is_never_replaced(workspace, file):
    workspace.prepare()
    path = workspace.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    for ask in (workspace_salt, known_salt):
        with pytest.raises(DataError, match=f"missing, but .*{path.name}") as caught:
            ask(workspace)
        assert complete(caught)
        assert "backup" in caught.value.fix
    assert not workspace.salt.exists()


@pytest.mark.parametrize("file", ["review/calibration.json", "restricted/.sweep.lock", "candidates/.x.tmp/a"])
def test_what_rests_on_no_salt_is_no_history(workspace, file):
    path = workspace.prepare().root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert workspace_salt(workspace) == read_salt(workspace.salt)


def test_a_workspace_that_was_never_worked_in_has_none(workspace):
    with pytest.raises(DataError, match="the salt is missing") as caught:
        known_salt(workspace)
    assert complete(caught)
    assert not workspace.root.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_one_that_others_can_read_is_refused(workspace, mode):
    with pytest.raises(DataError, match="can be read by others") as caught:
        workspace_salt(placed(workspace, mode=mode))
    assert complete(caught)
    assert TEXT.strip() not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\0" * 65, TEXT[1:], TEXT + TEXT, TEXT.upper(), "ü" * 32, "no salt"])
def test_a_damaged_one_is_refused_and_stays(workspace, text):
    with pytest.raises(DataError, match="damaged") as caught:
        workspace_salt(placed(workspace, text))
    assert complete(caught)
    assert workspace.salt.read_text() == text
    assert not text.strip("\0\n") or text.strip() not in str(caught.value)


def test_what_is_no_file_is_refused(workspace):
    workspace.prepare().salt.mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        workspace_salt(workspace)
    workspace.salt.rmdir()
    os.mkfifo(workspace.salt, 0o600)
    with pytest.raises(DataError, match="cannot be read"):
        workspace_salt(workspace)
    workspace.salt.unlink()
    workspace.salt.symlink_to(workspace.root / "nowhere")
    with pytest.raises(DataError, match="cannot be read"):
        workspace_salt(workspace)


def test_a_full_disk_is_told_of(workspace, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DataError, match="the salt cannot be written") as caught:
        workspace_salt(workspace)
    assert complete(caught)
    assert {p.name for p in workspace.restricted.rglob("[!.]*")} == {"scratch"}
    assert not list(workspace.restricted.glob("*.tmp"))


def test_no_plan_and_no_environment_sets_it(workspace, monkeypatch):
    from synth_audit.plan.plan import Plan

    assert "salt" not in Plan.model_fields
    for name in ("SALT", "SYNTH_AUDIT_SALT", "PYTHONHASHSEED"):
        monkeypatch.setenv(name, TEXT.strip())
    assert workspace_salt(workspace).text() != TEXT
