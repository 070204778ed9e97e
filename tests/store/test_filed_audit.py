"""Audits in folders of their own: whole or not there, never replaced, and known to the journal first."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from synth_audit.errors import DataError, SynthAuditError
from synth_audit.findings.verdict import Result
from synth_audit.pipeline.stages import measurement_bytes
from synth_audit.pipeline.verify import Provenance
from synth_audit.store.evidence import TableRecord
from synth_audit.store.evidence_store import FiledAudit, evidence_store
from synth_audit.store.journal import read_journal
from synth_audit.store.workspace import Workspace


def fresh(root):
    made = Workspace(root).prepare()
    made.synthetic.write_bytes(b"the candidate")
    return made


@pytest.fixture
def workspace(tmp_path):
    return fresh(tmp_path / "out")


@pytest.fixture
def evidence(build):
    return build.passing()


def file(workspace, evidence, rows=True):
    return evidence_store(workspace).put(
        evidence, measurement_bytes(evidence), workspace.synthetic if rows else None
    )


def add_report(workspace, folder, content):
    return evidence_store(workspace).put_report(folder.digest, content)


def other(evidence, **changes):
    return replace(evidence, **{"seed": evidence.seed + 1, **changes}).sealed()


def about(evidence, rows):
    """Other evidence, on other rows."""
    return other(evidence, tables={**evidence.tables, "synthetic": TableRecord(9, rows * 64)})


def faults(workspace, digest=None):
    folder = workspace.audit(digest) if digest else workspace.newest
    filed = FiledAudit.load(folder)
    checks = Provenance.of(filed, filed.evidence, workspace).checks()
    return {c.what: c.detail for c in checks if c.holds is False}


def test_an_audit_is_filed_under_its_digest_and_named_as_the_newest(workspace, evidence):
    assert file(workspace, evidence) == evidence
    folder = workspace.newest
    assert folder.digest == evidence.digest
    assert {p.name for p in folder.path.iterdir()} == {"evidence.json", "measurements.parquet"}
    [entry] = read_journal(workspace).audits
    assert (entry.number, entry.digest, entry.verdict) == (1, evidence.digest, Result.PASS)
    assert workspace.kept_rows(evidence.digest).read_bytes() == b"the candidate"
    assert faults(workspace) == {}


def test_attempts_are_numbered_and_the_same_one_is_none(workspace, evidence):
    again = other(evidence)
    for each in (evidence, again, evidence, again, about(evidence, "b")):
        file(workspace, each)
    assert [(e.number, e.last) for e in read_journal(workspace).audits] == [(1, 1), (2, 2), (5, 5)]
    file(workspace, evidence)
    assert workspace.newest.digest == evidence.digest, "the newest is the one that was found last"


@pytest.mark.parametrize(
    ("order", "governs"),
    [("FPF", "F"), ("PFF", "F"), ("FFP", "P"), ("FPGF", "F"), ("FPFG", "G"), ("PFP", "F"), ("FPG", "G")],
)
def test_the_newest_attempt_on_the_same_rows_governs(workspace, evidence, order, governs):
    """F and G failed, P passed. A failure that is found again counts anew, a pass hides none since."""
    found = {
        "P": evidence,
        "F": other(evidence, verdict=Result.FAIL),
        "G": other(evidence, verdict=Result.FAIL, seed=99),
    }
    for name in order:
        file(workspace, found[name])
    journal = read_journal(workspace)
    [rows] = {e.candidate for e in journal.audits}
    assert journal.governing(rows).digest == found[governs].digest
    assert workspace.newest.digest == found[order[-1]].digest
    passed = workspace.audit(evidence.digest)
    told = {c.what: c.holds for c in Provenance.of(FiledAudit.load(passed), evidence, workspace).checks()}
    assert told["newest attempt on these rows"] is (governs == "P")


def test_the_same_audit_again_leaves_its_folder_as_it_was(workspace, evidence):
    file(workspace, evidence)
    path = workspace.newest.evidence
    before = (path.stat().st_mtime_ns, path.read_bytes())
    later = replace(evidence, created="2031-01-01T00:00:00+00:00", timings={})
    assert file(workspace, later) == evidence, "what is filed is what counts"
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_rows_are_kept_for_the_newest_audit_alone(workspace, evidence):
    first, second = evidence, about(evidence, "b")
    file(workspace, first)
    workspace.synthetic.unlink()
    workspace.synthetic.write_bytes(b"another candidate")
    file(workspace, second)
    assert not workspace.kept_rows(first.digest).parent.exists()
    assert workspace.kept_rows(second.digest).read_bytes() == b"another candidate"
    file(workspace, about(evidence, "c"), rows=False)
    assert list((workspace.restricted / "audits").iterdir()) == [], (
        "of a table made elsewhere nothing is kept"
    )


def test_a_report_is_added_once(workspace, evidence):
    file(workspace, evidence)
    path = add_report(workspace, workspace.newest, b"the page")
    assert add_report(workspace, workspace.newest, b"the page in other words") == path
    assert path.read_bytes() == b"the page", "it may have been signed"
    path.write_bytes(b"another page")
    with pytest.raises(DataError, match="does not hold the report that was filed"):
        add_report(workspace, workspace.newest, b"the page")
    path.unlink()
    add_report(workspace, workspace.newest, b"the page in other words")
    assert path.read_bytes() == b"the page in other words"


def test_an_audit_that_was_never_filed_gets_no_report(workspace, evidence):
    folder = workspace.audit(evidence.digest)
    with pytest.raises(DataError, match="was never filed"):
        add_report(workspace, folder, b"the page")


@pytest.mark.parametrize("name", ["evidence.json", "measurements.parquet", "more.txt"])
@pytest.mark.parametrize("content", [b"", None])
def test_a_folder_that_was_altered_is_not_taken_for_the_audit(workspace, evidence, name, content):
    file(workspace, evidence)
    path = workspace.newest.path / name
    if content is None and name != "more.txt":
        path.unlink()
    else:
        path.write_bytes(b"x")
    with pytest.raises(DataError, match="the folder of an audit"):
        file(workspace, evidence)


def test_a_folder_that_was_there_before_the_audit_is_not_taken_for_it(workspace, evidence):
    folder = workspace.audit(evidence.digest)
    folder.path.mkdir(parents=True)
    folder.evidence.write_text(evidence.to_json())
    with pytest.raises(DataError, match="was never filed"):
        file(workspace, evidence)
    assert not workspace.newest_pointer.exists()


@pytest.mark.parametrize("part", ["audits", "folder", "evidence"])
def test_links_are_not_followed(workspace, evidence, part):
    file(workspace, evidence)
    path = {
        "audits": workspace.audits,
        "folder": workspace.newest.path,
        "evidence": workspace.newest.evidence,
    }[part]
    path.rename(workspace.root / "elsewhere")
    path.symlink_to(workspace.root / "elsewhere")
    with pytest.raises(DataError, match="the folder of an audit cannot be read"):
        FiledAudit.load(workspace.newest)
    with pytest.raises(DataError):
        file(workspace, other(evidence) if part == "audits" else evidence)


def test_a_pipe_in_the_folder_does_not_hang(workspace, evidence):
    file(workspace, evidence)
    workspace.newest.evidence.unlink()
    os.mkfifo(workspace.newest.evidence)
    with pytest.raises(DataError, match="cannot be read"):
        FiledAudit.load(workspace.newest)


def test_files_that_would_fill_the_memory_are_not_read(workspace, evidence):
    file(workspace, evidence)
    for name in ("one", "two"):
        with (workspace.newest.path / name).open("wb") as sparse:
            sparse.truncate(300 << 20)
    with pytest.raises(DataError, match="cannot be read"):
        FiledAudit.load(workspace.newest)


class Killed(BaseException):
    pass


def killed_at(step, work):
    """Do ``work`` in a process that is gone, without another word, before its ``step``-th move into place.

    Returns:
        False if it came to its end before that.
    """
    child = os.fork()
    if child == 0:
        moves = 0

        def move(real):
            def moving(self, to):
                nonlocal moves
                moves += 1
                if moves == step:
                    os._exit(1)
                return real(self, to)

            return moving

        Path.replace, Path.rename = move(Path.replace), move(Path.rename)
        code = 2
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 1)
    return code == 1


@pytest.mark.parametrize("step", range(1, 9))
def test_a_kill_at_any_moment_leaves_the_last_audit(workspace, evidence, step):
    file(workspace, evidence)
    new = about(evidence, "b")
    assert killed_at(step, lambda: file(workspace, new))
    assert faults(workspace, evidence.digest).keys() <= {"pointer to the newest audit"}
    assert workspace.newest.digest == evidence.digest
    shown = {p.name for p in workspace.audits.iterdir() if not p.name.startswith(".")}
    assert evidence.digest in shown
    assert shown <= {evidence.digest, new.digest}
    for digest in shown:
        assert FiledAudit.load(workspace.audit(digest)).evidence.intact
    file(workspace, new)
    assert workspace.newest.digest == new.digest
    assert faults(workspace) == {}
    first, second = (e.number for e in read_journal(workspace).audits)
    assert first < second


def test_every_move_of_the_filing_was_tried(workspace, evidence):
    file(workspace, evidence)
    assert not killed_at(9, lambda: file(workspace, about(evidence, "b")))


@pytest.mark.parametrize("step", range(1, 7))
def test_a_full_disk_leaves_the_last_audit(workspace, evidence, step, monkeypatch):
    file(workspace, evidence)
    files = {p: p.read_bytes() for p in workspace.review.rglob("*") if p.is_file()}
    writes = 0

    def full(real):
        def writing(self, *args, **kwargs):
            nonlocal writes
            writes += 1
            if writes == step:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(self, *args, **kwargs)

        return writing

    with monkeypatch.context() as patch:
        for name in ("write_text", "write_bytes"):
            patch.setattr(Path, name, full(getattr(Path, name)))
        with pytest.raises(SynthAuditError, match="cannot be written") as caught:
            file(workspace, about(evidence, "b"))
    assert caught.value.fix
    assert {p: p.read_bytes() for p in files} == files
    assert not list(workspace.root.rglob("*.tmp"))
    file(workspace, about(evidence, "b"))
    assert faults(workspace) == {}
