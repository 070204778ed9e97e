"""Pages that another build wrote: its words cannot be rendered anew, and hide no edit."""

from __future__ import annotations

import shutil
from datetime import date

import pytest
from click.testing import CliRunner

from synth_audit import api, build
from synth_audit.cli import main
from synth_audit.cli.terminal import Exit
from synth_audit.pipeline import stages as pipeline
from synth_audit.report import file_certificate, write_report
from synth_audit.store.approvals import new_key
from synth_audit.store.locate import locate_newest
from synth_audit.store.reports import WRITTEN_BY

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
