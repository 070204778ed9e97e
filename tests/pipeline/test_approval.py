"""Approvals: whose signature counts, for what and until when; and a release that waits for them."""

import json
import os
import stat
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from synth_audit import api
from synth_audit.cli import main
from synth_audit.errors import ApprovalMissing, DataError, PlanError, ReleaseRefused
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.approval import approval_checks, refuse_unless_approved
from synth_audit.pipeline.stages import Audited
from synth_audit.plan.plan import Plan
from synth_audit.store.approvals import Approval, new_key, parse_approval, read_key
from synth_audit.store.journal import AuditEntry, Journal

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    public = {name: new_key(folder / f"{name}.pem") for name in ("Ann", "Bo", "Eve")}
    return folder, public


@pytest.fixture
def plan(keys):
    _, public = keys
    approvers = {name: public[name] for name in ("Ann", "Bo")}
    return Plan.model_validate(
        {"release": {"parquet": {"path": "x.parquet"}, "approvals": 2, "approvers": approvers}}
    )


@pytest.fixture
def evidence(build, plan):
    return replace(build.passing(), plan=plan.plain(), plan_sha256=plan.digest).sealed()


@pytest.fixture
def sign(keys, evidence):
    folder, _ = keys

    def signed(by="Ann", key=None, **other):
        said = {
            "digest": evidence.digest,
            "table": evidence.table,
            "by": by,
            "key": "",
            "signed": "2026-11-20T10:00:00+00:00",
            "until": "2026-12-31",
            "note": "teaching only",
        }
        return Approval(**{**said, **other}).signed_with(read_key(folder / f"{key or by}.pem"))

    return signed


def refusal(plan, evidence, *approvals, journal=None, now=NOW):
    with pytest.raises(ReleaseRefused) as caught:
        refuse_unless_approved(plan, evidence, approvals, journal, now)
    return caught.value


def test_two_different_people_whom_the_plan_names_are_enough(plan, evidence, sign):
    refuse_unless_approved(plan, evidence, (sign("Ann"), sign("Bo")), Journal(), NOW)
    assert [c.holds for c in approval_checks(evidence, (sign("Ann"),))] == [True]


def test_until_then_it_waits_and_says_who_has_to_do_what(plan, evidence, sign):
    error = refusal(plan, evidence, sign("Ann"))
    assert isinstance(error, ApprovalMissing)
    assert "1 of 2" in error.what
    assert error.fix.startswith("Bo reads the certificate and runs `synth-audit approve")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"key": "Eve"}, "does not name this person with this key"),
        ({"by": "Eve", "key": "Eve"}, "does not name this person"),
        ({"digest": "ab" * 32}, "about other evidence"),
        ({"table": "another"}, "about other evidence"),
        ({"until": "2026-11-30"}, "valid until 2026-11-30"),
        ({"signed": "2026-12-01T12:00:01+00:00"}, "dated in the future"),
        ({"signed": "2026-11-14T10:31:59+00:00"}, "before the audit"),
    ],
)
def test_what_does_not_count(plan, evidence, sign, changed, why):
    error = refusal(plan, evidence, sign("Ann"), sign(**{"by": "Bo", **changed}))
    assert why in error.what


@pytest.mark.parametrize("edited", [{"note": "for everybody"}, {"until": "2099-01-01"}, {"by": "Bo"}])
def test_what_was_edited_after_it_was_signed_does_not_count(plan, evidence, sign, edited):
    forged = replace(sign("Ann"), **edited)
    assert "signature does not hold" in refusal(plan, evidence, forged, sign("Bo")).what
    assert [c.holds for c in approval_checks(evidence, (forged,))] == [False]


def test_a_signature_with_another_key_in_its_field_does_not_count(plan, evidence, sign, keys):
    forged = replace(sign("Bo", key="Eve"), key=keys[1]["Bo"])
    assert "signature does not hold" in refusal(plan, evidence, sign("Ann"), forged).what


def test_one_person_counts_once(plan, evidence, sign):
    again = sign("Ann", note="once more")
    assert "1 of 2" in refusal(plan, evidence, sign("Ann"), again).what


def test_a_clock_set_back_makes_nothing_valid_again(plan, evidence, sign):
    later = AuditEntry(1, "ab" * 32, Result.PASS, "", "2027-02-01T00:00:00+00:00", "", {})
    error = refusal(plan, evidence, sign("Ann"), sign("Bo"), journal=Journal(audits=(later,)))
    assert "clock" in error.what


def test_after_the_validity_that_the_plan_states_nothing_leaves(evidence):
    plan = Plan.model_validate({"review": {"valid_until": "2026-11-30"}})
    assert "valid until 2026-11-30" in refusal(plan, evidence, journal=Journal()).what
    refuse_unless_approved(plan, evidence, (), Journal(), NOW - timedelta(days=1))


def test_an_old_approval_stays_signed(evidence, sign):
    [check] = approval_checks(evidence, (sign("Ann", until="2026-11-21"),))
    assert check.holds
    assert "which is over" in check.detail


def test_a_key_is_its_owners_alone(keys, tmp_path):
    folder, _ = keys
    assert stat.S_IMODE(os.stat(folder / "Ann.pem").st_mode) == 0o600
    with pytest.raises(DataError):
        new_key(folder / "Ann.pem")
    open_key = tmp_path / "open.pem"
    open_key.write_bytes((folder / "Ann.pem").read_bytes())
    open_key.chmod(0o640)
    with pytest.raises(DataError, match="others than its owner"):
        read_key(open_key)


def test_a_key_may_have_a_passphrase(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNTH_AUDIT_KEY_PASSPHRASE", "correct horse")
    new_key(tmp_path / "key.pem")
    read_key(tmp_path / "key.pem")
    monkeypatch.delenv("SYNTH_AUDIT_KEY_PASSPHRASE")
    with pytest.raises(DataError, match="no key that can be opened"):
        read_key(tmp_path / "key.pem")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"digest": 1}'])
def test_what_is_no_approval_is_none(content):
    with pytest.raises(ValueError):  # noqa: PT011  (any of them will do)
        parse_approval(content)


@pytest.mark.parametrize("by", ["Ann\n  ✓ verdict", "Ann\u202e", "Ann\x1b[2K"])
def test_no_approval_writes_between_the_lines(sign, by):
    with pytest.raises(ValueError, match="mislead"):
        parse_approval(sign(by, key="Ann").to_bytes())


def refiled(case, plan):
    """The case audited under another plan, as its newest audit."""
    evidence = replace(case.evidence, plan=plan.plain(), plan_sha256=plan.digest).sealed()
    rows = pq.read_table(case.workspace.exposed)
    return Audited(evidence, rows).filed(case.workspace, case.workspace.synthetic)


def test_a_release_waits_for_approvals_which_change_nothing_of_the_evidence(case, keys):
    folder, public = keys
    choice = {"approvals": 2, "approvers": {n: public[n] for n in ("Ann", "Bo")}}
    release = type(case.plan.release).model_validate({**case.plan.release.model_dump(), **choice})
    plan = case.plan.model_copy(update={"release": release})
    evidence = refiled(case, plan)
    root, until = case.workspace.root, date(2999, 1, 1)
    before = case.workspace.newest.evidence.read_bytes()
    with pytest.raises(ApprovalMissing):
        pipeline.release_synthetic(plan, case.workspace)
    with pytest.raises(PlanError, match="another key"):
        api.approve(root, by="Ann", key=folder / "Eve.pem", until=until)
    with pytest.raises(PlanError, match="over already"):
        api.approve(root, by="Ann", key=folder / "Ann.pem", until=date(2020, 1, 1))
    for name in ("Ann", "Bo"):
        api.approve(root, by=name, key=folder / f"{name}.pem", until=until, note="teaching")
    api.write_report(root)
    assert case.workspace.newest.evidence.read_bytes() == before
    certificate = case.workspace.newest.certificate.read_text()
    assert "2 of 2 approvals by different people" in certificate
    assert not [c for c in api.verify(root) if c.holds is False]
    [first, _] = sorted(case.workspace.newest.path.glob("approval-*.json"))
    record = pipeline.release_synthetic(plan, case.workspace)
    assert record.table == evidence.tables["synthetic"]
    said = json.loads(first.read_text())
    first.write_text(json.dumps({**said, "note": "for everybody"}))
    assert [c.what for c in api.verify(root) if c.holds is False][-1] == "certificate"
    with pytest.raises(ApprovalMissing, match="1 of 2"):
        pipeline.release_synthetic(plan, case.workspace)


def test_a_certificate_that_was_written_after_its_last_day_still_verifies(case):
    plan = Plan.model_validate({**case.plan.plain(), "review": {"valid_until": "2026-01-01"}})
    refiled(case, plan)
    api.write_report(case.workspace.root)
    page = case.workspace.newest.certificate
    assert "Expired certificate" in page.read_text()
    assert not [c for c in api.verify(case.workspace.root) if c.holds is False]
    page.write_text(page.read_text().replace("1 January 2026 (expired)", "1 January 2026"))
    assert [c.what for c in api.verify(case.workspace.root) if c.holds is False] == ["certificate"]


def test_the_command_makes_a_key_and_asks_for_what_it_lacks(tmp_path):
    made = CliRunner().invoke(main, ["approve", "--new-key", str(tmp_path / "ann.pem"), "--by", "Ann"])
    assert made.exit_code == 0
    assert "Ann: ed25519:" in made.output
    assert CliRunner().invoke(main, ["approve", str(tmp_path)]).exit_code == 2
