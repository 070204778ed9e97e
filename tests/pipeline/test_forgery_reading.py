"""Files of ``review/`` that are read twice, from a wrong place or without an end: nobody gains by it."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.errors import DataError, ReleaseRefused
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.report import write_report
from synth_audit.store import locate
from synth_audit.store.evidence import parse_evidence
from synth_audit.store.evidence_store import FiledAudit, evidence_store
from synth_audit.store.journal import open_journal
from synth_audit.store.locate import LocatedEvidence, checked_evidence, locate_evidence
from synth_audit.store.records import Newest, to_json


def told(place):
    return [c.what for c in api.verify(place) if c.holds is False]


def edited(case, path=None):
    """The evidence with another table's name and the digest that belongs to it."""
    known = parse_evidence(case.workspace.newest.evidence.read_text())
    forged = replace(known, table="another").sealed()
    (path or case.workspace.newest.evidence).write_text(forged.to_json())
    return forged


@pytest.fixture
def fail_since(case, make_gate):
    """The case after a newer audit that failed; makes that, and says what the pointer was before."""

    def audit():
        older = case.workspace.newest_pointer.read_bytes()
        case.set_gates(make_gate("copies", "exact_match.excess", -1))
        assert pipeline.produce(case.plan, case.workspace).verdict is Result.FAIL
        return older

    return audit


NEWER = "ab" * 32


def enter_fail(case, number):
    """Have the journal know of a failed audit, as its newest."""
    with open_journal(case.workspace) as journal:
        [entry] = journal.now.audits
        failed = replace(entry, number=number, digest=NEWER, verdict=Result.FAIL)
        journal.write(journal.now.with_entry(failed).with_newest("", NEWER))


def test_a_pointer_that_is_turned_back_between_two_readings(case, monkeypatch):
    older = case.workspace.newest.digest
    enter_fail(case, 0)
    pointer = case.workspace.newest_pointer
    load = FiledAudit.load.__func__

    def turned(cls, folder):
        pointer.write_text(pointer.read_text().replace(older, NEWER))
        return load(cls, folder)

    monkeypatch.setattr(FiledAudit, "load", classmethod(turned))
    with pytest.raises(ReleaseRefused, match="the newest audit is"):
        pipeline.release_synthetic(case.plan, case.workspace)
    assert not (case.folder / "out-of-the-house").exists()


def test_forged_evidence_where_earlier_versions_kept_it(case):
    beside = case.workspace.review / "evidence.json"
    shutil.copy(case.workspace.newest.evidence, beside)
    assert told(case.workspace.review) == []
    edited(case, beside)
    assert "entry in the journal" in told(beside)
    assert told(case.workspace.review) == []  # its newest audit, which is another file
    with pytest.raises(DataError, match="was altered"):
        api.render_report(beside)


def test_no_report_is_made_of_forged_evidence(case, tmp_path):
    case.workspace.newest.report.unlink()
    edited(case)
    for make in (
        lambda: api.write_report(case.workspace.root),
        lambda: api.render_report(case.workspace.root, tmp_path / "report.html"),
        lambda: api.gate(case.workspace.root, "gates.json"),
    ):
        with pytest.raises(DataError, match="was altered"):
            make()
    assert not case.workspace.newest.report.exists()
    assert not (tmp_path / "report.html").exists()


def test_no_report_is_made_of_evidence_with_another_digest(case, tmp_path):
    lone = tmp_path / "lone.json"
    plain = json.loads(case.workspace.newest.evidence.read_text())
    lone.write_text(json.dumps(plain | {"table": "another"}))
    with pytest.raises(DataError, match="was altered"):
        api.render_report(lone)


def test_evidence_is_taken_as_it_was_filed_or_not_at_all(case):
    folder = case.workspace.newest
    found = LocatedEvidence(folder.evidence, folder, case.workspace)
    assert checked_evidence(found).verdict is Result.PASS
    edited(case)
    with pytest.raises(DataError, match="was altered"):
        checked_evidence(found)


def test_a_pipe_beside_a_file_is_not_waited_for(case, tmp_path, monkeypatch):
    lone = Path(shutil.copy(case.workspace.newest.evidence, tmp_path / "lone.json"))
    os.mkfifo(tmp_path / "lone.json.hmac")
    # A reader that waits would hang here; a writer that is there already lets it come back empty instead.
    writer = os.open(tmp_path / "lone.json.hmac", os.O_RDWR | os.O_NONBLOCK)
    try:
        read: list[Path] = []
        monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or b"")
        assert told(lone) == []
        assert read == []
    finally:
        os.close(writer)


def rewritten(case, change):
    path = case.workspace.newest.measurements
    pq.write_table(change(pq.read_table(path)), path)


def test_letters_that_are_none_in_the_measurements(case):
    def change(data):
        at = data.schema.get_field_index("audit")
        plain = pa.array([b"\xff"] * data.num_rows, pa.binary())
        column = pa.Array.from_buffers(pa.string(), data.num_rows, plain.buffers())
        return data.set_column(at, data.schema.field(at), column)

    rewritten(case, change)
    assert "measurements, built anew" in told(case.workspace.root)


def test_measurements_with_other_rows_are_not_read(case, monkeypatch):
    rewritten(case, lambda data: pa.concat_tables([data, data]))
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_: pytest.fail("read"))
    filed = FiledAudit.load(case.workspace.newest)
    from synth_audit.pipeline.verify import Provenance

    checks = Provenance.of(filed, filed.evidence, None).checks()
    assert [c.holds for c in checks if c.what == "measurements, built anew"] == [False]


def test_a_run_is_not_repeated_against_forged_evidence(case):
    edited(case)
    with pytest.raises(DataError, match="was altered"):
        api.rerun(case.plan, case.workspace.root)


def test_a_pointer_that_is_turned_back_shows_no_older_pass(case, fail_since, tmp_path):
    case.workspace.newest_pointer.write_bytes(fail_since())
    for show in (
        lambda: api.rerun(case.plan, case.workspace.root),
        lambda: api.gate(case.workspace.root, "gates.json"),
        lambda: api.write_report(case.workspace.root),
        lambda: api.render_report(case.workspace.root, tmp_path / "report.html"),
        lambda: write_report(case.workspace),
    ):
        with pytest.raises(DataError, match="does not name the newest audit"):
            show()
    assert "pointer to the newest audit" in told(case.workspace.root)
    assert "PASS" in api.render_report(case.workspace.newest.path).upper(), "named by itself it may be shown"


def test_a_reader_waits_for_an_audit_that_is_just_being_filed(case, monkeypatch):
    with open_journal(case.workspace) as journal:
        journal.write(journal.now.with_newest("", NEWER))
    opened = locate.open_journal

    def filed(workspace):
        workspace.newest_pointer.write_text(to_json(Newest(NEWER)))
        return opened(workspace)

    monkeypatch.setattr(locate, "open_journal", filed)
    found = locate_evidence(case.workspace.root)
    assert (found.folder.digest, found.turned) == (NEWER, False)


def test_a_pointer_that_is_turned_back_while_it_is_read_shows_no_older_pass(case, fail_since, monkeypatch):
    pointer = case.workspace.newest_pointer
    older, newer = fail_since(), pointer.read_bytes()
    store = type(evidence_store(case.workspace))
    read, restored = store.newest_digest, []

    def swapped(self):
        """The older pass at every reading; what is right stands there before and after."""
        pointer.write_bytes(older if len(restored) < 2 else newer)
        restored.append(read(self))
        pointer.write_bytes(newer)
        return restored[-1]

    monkeypatch.setattr(store, "newest_digest", swapped)
    for show in (
        lambda: api.gate(case.workspace.root, "gates.json"),
        lambda: api.write_report(case.workspace.root),
        lambda: api.render_report(case.workspace.root),
    ):
        restored.clear()
        with pytest.raises(DataError, match="does not name the newest audit"):
            show()
    restored.clear()
    assert "pointer to the newest audit" in told(case.workspace.root)


def test_of_a_pointer_turned_back_for_a_moment_the_right_audit_is_shown(case, fail_since, monkeypatch):
    older = case.workspace.newest.digest
    fail_since()
    newer = case.workspace.newest.digest
    store = type(evidence_store(case.workspace))
    told_first = iter([older])
    monkeypatch.setattr(store, "newest_digest", lambda self: next(told_first, newer))
    assert api.gate(case.workspace.root, str(case.folder / "gates.json")).verdict is Result.FAIL


def test_an_older_pass_laid_into_the_review_folder_is_not_its_newest_audit(case):
    older = case.workspace.newest.evidence.read_bytes()
    enter_fail(case, 2)
    case.workspace.newest_pointer.write_text(to_json(Newest(NEWER)))
    review = case.workspace.review
    (review / "evidence.json").write_bytes(older)
    assert locate_evidence(review).folder.digest == NEWER
    with pytest.raises(DataError):
        api.gate(review, str(case.folder / "gates.json"))
    case.workspace.newest_pointer.unlink()
    with pytest.raises(DataError):
        api.render_report(review)
