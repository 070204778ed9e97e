"""The way back to the release before the last: the very rows that were audited, or none."""

from __future__ import annotations

import base64
import shutil

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from refusals import refusal

from synth_audit import api, cli
from synth_audit.errors import ApprovalMissing, DataError, ReleaseRefused, ReleaseUncertain
from synth_audit.pipeline import stages as pipeline
from synth_audit.sources.parquet import Parquet
from synth_audit.store.journal import read_journal
from synth_audit.store.records import Released, read_pointer
from synth_audit.table.content_hash import fingerprint

PLACE = "out-of-the-house/released.parquet"


def there(case):
    return fingerprint(pq.read_table(case.folder / PLACE))


def told(case):
    return read_pointer(Released, case.workspace.released_pointer)


@pytest.fixture
def twice(case, make_people):
    """A table that was released twice, with the content of both releases."""
    first = pipeline.release_synthetic(case.plan, case.workspace).table.sha256
    pq.write_table(make_people(250, seed=1), case.folder / "people.parquet")
    pipeline.produce(case.plan, case.workspace)
    second = pipeline.release_synthetic(case.plan, case.workspace).table.sha256
    assert there(case) == second != first
    return case, first, second


def rollback(case):
    return api.rollback(case.folder / "plan.yaml", case.workspace.root)


def refused(case, kind=ReleaseRefused):
    before = there(case)
    said = refusal(rollback, case, kind=kind).what
    assert there(case) == before
    return said


def test_the_release_before_comes_back_with_its_evidence(twice):
    case, first, second = twice
    words = ["rollback", str(case.folder / "plan.yaml"), "--out", str(case.workspace.root)]
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 0, result.output
    assert there(case) == first == told(case).sha256
    assert "again" in result.output
    assert all(check.holds is not False for check in api.verify(case.workspace.root))
    assert "no release before" in refused(case, DataError), (
        "one step, and no way to a release undone by mistake"
    )
    assert pipeline.release_synthetic(case.plan, case.workspace).table.sha256 == second == there(case)
    rollback(case)
    assert there(case) == first


def test_evidence_that_is_none_any_more_leads_nowhere(twice):
    case, _, _ = twice
    before = read_journal(case.workspace).previous
    case.workspace.audit(before.digest).evidence.write_text("{}")
    assert "not evidence" in refused(case, DataError)


def test_the_same_release_once_more_forgets_nothing(twice):
    case, first, _ = twice
    pipeline.release_synthetic(case.plan, case.workspace)
    rollback(case)
    assert there(case) == first


def test_without_a_second_release_there_is_no_way_back(case):
    pipeline.release_synthetic(case.plan, case.workspace)
    assert "no release before" in refused(case, DataError)


def test_a_purge_keeps_what_a_rollback_leads_to(twice, make_people):
    case, first, _ = twice
    pq.write_table(make_people(250, seed=2), case.folder / "people.parquet")
    pipeline.produce(case.plan, case.workspace)
    record = api.purge(case.workspace.root, keep=1, dry_run=False)
    assert {"a rollback would lead to it", "what was released rests on it"} <= {
        i.reason for i in record.stays
    }
    rollback(case)
    assert there(case) == first


def test_other_rows_than_were_audited_do_not_come_back(twice):
    case, _, second = twice
    rows = case.workspace.kept_rows(read_journal(case.workspace).previous.digest)
    shutil.copy(case.workspace.synthetic, rows)
    assert "not those that were audited" in refused(case)
    assert told(case).sha256 == second


def test_altered_evidence_does_not_come_back(twice):
    case, *_ = twice
    digest = read_journal(case.workspace).previous.digest
    file = case.workspace.audits / digest / "evidence.json"
    file.chmod(0o600)
    file.write_text(file.read_text().replace('"suppression": 10', '"suppression": 11'))
    refused(case)


def test_who_must_approve_today_must_approve_a_way_back_too(twice):
    case, *_ = twice
    release = case.plan.plain()["release"]
    who = {"A": "ed25519:" + base64.b64encode(bytes(range(32))).decode()}
    case.replan(release={release["name"]: release["config"], "approvals": 1, "approvers": who})
    refused(case, ApprovalMissing)


def test_another_target_than_then_is_refused(twice):
    case, *_ = twice
    case.replan(release={"parquet": {"path": "elsewhere.parquet"}})
    assert "another place" in refused(case)
    assert not (case.folder / "elsewhere.parquet").exists()


def test_evidence_that_says_how_its_target_was_reached_went_to_no_other_place(case, make_people, monkeypatch):
    plan = case.replan(release={"duckdb": {"path": "released.duckdb", "table": "people", "wait": 3}})
    with monkeypatch.context() as older:
        older.setattr("synth_audit.plan.plan.without_transport", dict)
        assert pipeline.produce(plan, case.workspace).plan["release"]["config"]["wait"] == 3
        first = pipeline.release_synthetic(plan, case.workspace).table.sha256
    pq.write_table(make_people(250, seed=1), case.folder / "people.parquet")
    pipeline.produce(plan, case.workspace)
    assert pipeline.release_synthetic(plan, case.workspace).table.sha256 != first
    assert rollback(case).table.sha256 == first


@pytest.mark.parametrize("kind", [DataError, ReleaseUncertain])
def test_a_target_that_fails_leaves_what_is_known(twice, monkeypatch, kind):
    case, first, second = twice

    def lost(self, data, base):
        raise kind("lost", where="there", expected="a word", fix="again")

    with monkeypatch.context() as patch:
        patch.setattr(Parquet, "write", lost)
        with pytest.raises(kind):
            rollback(case)
    journal = read_journal(case.workspace)
    assert journal.released.sha256 == second
    assert (journal.releasing is not None) == (kind is ReleaseUncertain), "what nobody knows stays noted"
    rollback(case)
    assert there(case) == first
    assert read_journal(case.workspace).releasing is None
