"""The way back to the release before the last, and pages that another build wrote."""

import base64
import shutil
from datetime import date

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from refusals import refusal

from synth_audit import api, build, cli
from synth_audit.cli import main
from synth_audit.cli.terminal import Exit
from synth_audit.errors import ApprovalMissing, DataError, ReleaseRefused, ReleaseUncertain
from synth_audit.pipeline import stages as pipeline
from synth_audit.report import file_certificate, write_report
from synth_audit.sources.parquet import Parquet
from synth_audit.store.approvals import new_key
from synth_audit.store.journal import read_journal
from synth_audit.store.locate import locate_newest
from synth_audit.store.records import Released, read_pointer
from synth_audit.store.reports import WRITTEN_BY
from synth_audit.table.content_hash import fingerprint

PLACE = "out-of-the-house/released.parquet"


def there(case):
    return fingerprint(pq.read_table(case.folder / PLACE))


def told(case):
    return read_pointer(Released, case.workspace.released_pointer)


@pytest.fixture(scope="module")
def released_twice(finished, make_people, tmp_path_factory):
    """A table that was released twice, with the content of both releases. Not to be altered."""
    case = copied(finished, tmp_path_factory.mktemp("twice"))
    first = pipeline.release_synthetic(case.plan, case.workspace).table.sha256
    pq.write_table(make_people(250, seed=1), case.folder / "people.parquet")
    pipeline.produce(case.plan, case.workspace)
    second = pipeline.release_synthetic(case.plan, case.workspace).table.sha256
    assert there(case) == second != first
    return case, first, second


def copied(case, folder):
    return type(case)(shutil.copytree(case.folder, folder / "case"))


@pytest.fixture
def twice(released_twice, tmp_path):
    case, first, second = released_twice
    return copied(case, tmp_path), first, second


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


REPORT, CERTIFICATE = "pictures and sentences of the report", "certificate"
PAGES = {"report.html": REPORT, "certificate.html": CERTIFICATE}


@pytest.fixture
def upgrade(monkeypatch):
    """Go on as another build of the same version."""
    return lambda: monkeypatch.setattr(build, "build_id", lambda: "0" * 12)


@pytest.fixture
def written(case):
    write_report(case.workspace)
    return case


def pages(case, place=None):
    """What ``verify`` says of both pages."""
    return {c.what: c.holds for c in api.verify(place or case.workspace.root) if c.what in PAGES.values()}


def edit(case, name, old, new):
    path = case.workspace.newest.path / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def verified(place):
    return Exit(CliRunner().invoke(main, ["verify", str(place)]).exit_code)


def test_after_an_upgrade_an_untouched_workspace_still_holds(written, upgrade):
    assert verified(written.workspace.root) is Exit.PASS
    upgrade()
    checks = {c.what: c for c in api.verify(written.workspace.root)}
    assert all(check.holds for check in checks.values())
    assert {"another build wrote it" in checks[what].detail for what in PAGES.values()} == {True}
    assert verified(written.workspace.root) is Exit.PASS


@pytest.mark.parametrize("name", PAGES)
def test_after_an_upgrade_an_edited_page_is_still_one(written, upgrade, name):
    edit(written, name, "</main>", "<p>All is well.</p></main>")
    upgrade()
    assert pages(written) == dict.fromkeys(PAGES.values(), True) | {PAGES[name]: False}
    assert verified(written.workspace.root) is Exit.NOT_RELEASED


@pytest.mark.parametrize("name", PAGES)
def test_an_edited_page_does_not_pass_as_that_of_another_build(written, name):
    edit(written, name, "</main>", "<p>All is well.</p></main>")
    edit(written, name, f'{WRITTEN_BY}="{build.build_version()}"', f'{WRITTEN_BY}="0.1.0+{"0" * 12}"')
    assert pages(written)[PAGES[name]] is False
    assert verified(written.workspace.root) is Exit.NOT_RELEASED


def test_a_page_whose_hash_nobody_recorded_cannot_be_checked_here(written, upgrade, tmp_path):
    copy = shutil.copytree(written.workspace.newest.path, tmp_path / "copy")
    upgrade()
    assert pages(written, copy) == dict.fromkeys(PAGES.values())
    shutil.rmtree(written.workspace.certificate_hash(written.evidence.digest).parent)
    assert pages(written) == {REPORT: True, CERTIFICATE: None}
    assert verified(written.workspace.root) is Exit.NOT_CHECKABLE
    file_certificate(locate_newest(written.workspace))
    assert verified(written.workspace.root) is Exit.PASS


@pytest.mark.parametrize("mark", ["data-verdict", "data-evidence-digest", "data-attempt"])
def test_no_build_writes_another_verdict_on_a_certificate(written, upgrade, tmp_path, mark):
    edit(written, "certificate.html", f'{mark}="', f'{mark}="0')
    copy = shutil.copytree(written.workspace.newest.path, tmp_path / "copy")
    upgrade()
    assert pages(written, copy)[CERTIFICATE] is False


def test_approvals_are_part_of_what_was_recorded(case, upgrade, tmp_path):
    key = tmp_path / "ann.pem"
    choice = {"approvals": 1, "approvers": {"Ann": new_key(key)}}
    release = type(case.plan.release).model_validate({**case.plan.release.model_dump(), **choice})
    plan = case.plan.model_copy(update={"release": release})
    evidence = pipeline.produce(plan, case.workspace)
    write_report(case.workspace)
    recorded = case.workspace.certificate_hash(evidence.digest)
    before = recorded.read_text()
    approval = api.approve(case.workspace.root, by="Ann", key=key, until=date(2999, 1, 1))
    after = recorded.read_text()
    upgrade()
    assert pages(case)[CERTIFICATE] is True
    recorded.write_text(before)  # as where an approver cannot write there
    assert pages(case)[CERTIFICATE] is None
    recorded.write_text(after)
    approval.unlink()
    assert pages(case)[CERTIFICATE] is False
