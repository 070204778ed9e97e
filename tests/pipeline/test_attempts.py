"""Attempts on a table are counted before they begin, in one ledger that cannot be cut unseen."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.errors import SynthAuditError
from synth_audit.pipeline import stages as pipeline
from synth_audit.report import render_report
from synth_audit.store.files import write_parquet
from synth_audit.store.journal import LEDGER as FILE
from synth_audit.store.journal import read_journal
from synth_audit.store.ledger import Ledger, table_ledger
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import fingerprint


def ledger_of(case):
    return table_ledger(case.workspace, read_journal(case.workspace))


def file_of(case):
    return case.workspace.restricted / FILE


def told(case):
    return {c.what: c.detail for c in api.verify(case.workspace.root) if c.holds is False}


def cut(case, lines):
    path = file_of(case)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


def test_evidence_and_report_carry_the_number_of_the_attempt(case):
    evidence = case.evidence
    [attempt] = ledger_of(case).attempts()
    assert (attempt.number, attempt.verdict, attempt.evidence) == (1, evidence.verdict, evidence.digest)
    assert attempt.candidate == evidence.tables["synthetic"].hmac
    assert evidence.attempt == 1
    assert ledger_of(case).extends(evidence.ledger)
    assert "1 on this table" in render_report(evidence)
    assert told(case) == {}


def test_an_attempt_that_breaks_off_counts(case, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    plan = case.replan(seed=6)
    monkeypatch.setattr(pipeline, "examine", interrupted)
    pipeline.split_table(plan, case.workspace)
    pipeline.make_synthetic(plan, case.workspace)
    with pytest.raises(KeyboardInterrupt):
        pipeline.audit_synthetic(plan, case.workspace)
    monkeypatch.undo()
    evidence = pipeline.audit_synthetic(plan, case.workspace)
    assert evidence.attempt == 3
    first = read_journal(case.workspace).audits[0].digest
    assert [a.evidence for a in ledger_of(case).attempts()] == [first, "", evidence.digest]
    assert [e.number for e in read_journal(case.workspace).audits] == [1, 3]


def test_the_same_evidence_found_again_is_counted_and_stays_under_its_first_number(case):
    again = pipeline.audit_synthetic(case.plan, case.workspace)
    assert again.attempt == 1
    assert [a.evidence for a in ledger_of(case).attempts()] == [again.digest] * 2
    assert told(case) == {}


def test_candidates_count_on_the_table_they_were_made_from(tmp_path):
    home = Workspace(tmp_path / "out").prepare()
    assert table_ledger(home.candidate("a"), None).folder == home.restricted


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_ledger_that_was_cut_is_refused(case, lines):
    cut(case, lines)
    assert "ledger of the table" in told(case)
    with pytest.raises(SynthAuditError, match="ledger"):
        pipeline.release_synthetic(case.plan, case.workspace)
    assert not (case.folder / "out-of-the-house").exists()


def test_a_ledger_that_is_gone_beside_history_is_refused(case):
    file_of(case).unlink()
    assert told(case)["ledger of the table"] == "the ledger is missing"
    for stage in (pipeline.release_synthetic, pipeline.audit_synthetic):
        with pytest.raises(SynthAuditError, match="ledger is missing"):
            stage(case.plan, case.workspace)
    assert not file_of(case).exists(), "none takes its place"


def test_a_ledger_of_another_table_is_refused(case):
    file_of(case).unlink()
    Ledger(case.workspace.restricted).mark.unlink()
    other = Ledger(case.workspace.restricted)
    other.judged(other.attempt(plan="a", candidate="b"), verdict="pass", evidence=case.evidence.digest)
    assert told(case)["ledger of the table"] == "lines that it held are gone or changed"


def test_a_failure_that_is_found_again_governs_again(case, make_gate):
    """A pass, a failure on the same rows, a pass under other gates, and the very same failure."""
    for limit in (-0.5, 0.3, -0.5):
        case.set_gates(make_gate("copies", "exact_match.excess", limit))
        last = pipeline.audit_synthetic(case.plan, case.workspace)
    journal = read_journal(case.workspace)
    assert len({e.candidate for e in journal.audits}) == 1
    assert journal.governing(journal.audits[0].candidate).digest == last.digest
    assert [e.verdict for e in journal.audits] == ["pass", "pass", "fail"]
    assert len(ledger_of(case).attempts()) == 4
    with pytest.raises(SynthAuditError, match="the verdict is fail"):
        pipeline.release_synthetic(case.plan, case.workspace)
    for entry in journal.audits[:2]:
        older = {c.what: c.holds for c in api.verify(case.workspace.audit(entry.digest).path)}
        assert older["newest attempt on these rows"] is False


def test_the_rows_that_are_kept_are_those_that_were_audited(case, monkeypatch):
    """Another run puts another candidate in the place of the one that is being audited."""
    plan, true_examine = case.replan(seed=6), pipeline.examine
    pipeline.split_table(plan, case.workspace)
    pipeline.make_synthetic(plan, case.workspace)
    audited = fingerprint(case.synthetic)

    def raced(*args, **kwargs):
        write_parquet(case.workspace.synthetic, case.synthetic.slice(1), private=True)
        return true_examine(*args, **kwargs)

    monkeypatch.setattr(pipeline, "examine", raced)
    evidence = pipeline.audit_synthetic(plan, case.workspace)
    kept = pq.read_table(case.workspace.kept_rows(evidence.digest))
    assert fingerprint(kept) == audited == evidence.tables["synthetic"].sha256
    assert fingerprint(case.synthetic) != audited
    assert list(case.workspace.scratch.iterdir()) == []
