"""Old audits go, what decides or proves anything stays, and a purge that was broken off can be finished."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

import synth_audit
from synth_audit import api
from synth_audit.cli import main
from synth_audit.dp.guarantee import Mechanism, MechanismRecord
from synth_audit.errors import DataError, PlanError
from synth_audit.pipeline import stages as pipeline
from synth_audit.store.evidence import SyntheticRecord, parse_evidence
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.journal import open_journal, read_journal
from synth_audit.store.ledger import begin_attempt
from synth_audit.store.purge import Retention, Sweep, purge, survey
from synth_audit.store.records import Released
from synth_audit.store.scratch import in_use

NOW = datetime.now(UTC)


def since_start():
    """Today, and the day on which the tests began: they may run over midnight."""
    return {f"{time:%Y-%m-%d}" for time in (NOW, datetime.now(UTC))}


def filed(case, workspace, days, warning):
    """Another audit in a workspace, of so many days ago, as if it had been run."""
    made = (NOW - timedelta(days=days)).isoformat(timespec="seconds")
    attempt, ledger, _ = begin_attempt(workspace, plan="p", candidate="c")
    evidence = replace(
        case.evidence, warnings=(warning,), created=made, attempt=attempt, ledger=ledger
    ).sealed()
    evidence_store(workspace.prepare()).put(evidence, case.workspace.newest.measurements.read_bytes())
    return evidence.digest


def copied(case, folder):
    return type(case)(Path(shutil.copytree(case.folder, folder / "case")))


@pytest.fixture(scope="module")
def aged_once(finished, tmp_path_factory):
    """A case with audits of 400, 300, 200, 100 and 0 days ago; their digests, oldest first.

    Not to be altered.
    """
    case = copied(finished, tmp_path_factory.mktemp("aged"))
    own = case.evidence
    digests = [filed(case, case.workspace, days, f"{days}") for days in (400, 300, 200, 100)]
    attempt, ledger, _ = begin_attempt(case.workspace, plan="p", candidate="c")
    last = replace(own, warnings=("last",), attempt=attempt, ledger=ledger).sealed()
    evidence_store(case.workspace).put(last, case.workspace.newest.measurements.read_bytes())
    shutil.rmtree(case.workspace.audit(own.digest).path)  # numbered first, though it is as young as the last
    with open_journal(case.workspace) as journal:
        audits = tuple(e for e in journal.now.audits if e.digest != own.digest)
        journal.write(replace(journal.now, audits=audits))
    return case, [*digests, last.digest]


@pytest.fixture
def aged(aged_once, tmp_path):
    """A copy of it."""
    case, digests = aged_once
    return copied(case, tmp_path), list(digests)


def there(case):
    return {p.name for p in case.workspace.audits.iterdir() if not p.name.startswith(".")}


def kept(record):
    return {item.name: item.reason for item in record.stays}


@pytest.mark.parametrize(
    ("rules", "gone"),
    [
        ({"keep": 1}, 4),
        ({"keep": 3}, 2),
        ({"keep": 9}, 0),
        ({"older_than": "150d"}, 3),
        ({"older_than": "36h"}, 4),
        ({"older_than": "90w"}, 0),
        ({"older_than": "150d", "keep": 4}, 1),
        ({"older_than": timedelta(days=350), "keep": 1}, 1),
    ],
)
def test_what_is_old_by_every_rule_goes(aged, rules, gone):
    case, digests = aged
    before = {p: p.read_bytes() for p in case.workspace.root.rglob("*") if p.is_file()}
    found = api.purge(case.workspace.root, **rules)
    assert [item.name for item in found.goes] == digests[:gone][::-1]
    assert not found.done
    assert before == {p: p.read_bytes() for p in case.workspace.root.rglob("*") if p.is_file()}
    assert api.purge(case.workspace.root, dry_run=False, **rules).done
    assert there(case) == set(digests[gone:])
    purged = {e.digest for e in read_journal(case.workspace).audits if e.purged}
    assert purged == set(digests[:gone])


def test_what_decides_or_proves_stays(aged):
    case, digests = aged
    restricted = case.workspace.restricted
    out = Released(digests[0], "there", "2026-01-01", 1, "0" * 64)
    with open_journal(case.workspace) as journal:
        journal.write(replace(journal.now, released=out, releasing=replace(out, digest=digests[1])))
    for digest in digests[:3]:
        case.workspace.kept_rows(digest).parent.mkdir(parents=True)
        case.workspace.kept_rows(digest).write_text("rows")
    names = ("salt", "ledger.jsonl", "train.parquet", "control.parquet", "synthetic.parquet")
    before = [(restricted / name).read_bytes() for name in names]
    found = purge(case.workspace, Retention(keep=1))
    assert there(case) == {digests[0], digests[1], digests[4]}
    assert kept(found) == {
        digests[0]: "what was released rests on it",
        digests[1]: "its release was interrupted",
        digests[4]: "the newest one",
    }
    assert {p.name for p in (restricted / "audits").iterdir()} >= set(digests[:2])
    assert not case.workspace.kept_rows(digests[2]).exists()
    assert before == [(restricted / name).read_bytes() for name in names]


def test_a_year_of_daily_audits_leaves_a_month_of_them_and_the_last_of_each_month(case):
    filled = [f"{i:064x}" for i in range(1, 366)]
    first = datetime(2025, 1, 1, tzinfo=UTC)
    with open_journal(case.workspace) as journal:
        own = replace(journal.now.audits[0], created=first.isoformat())
        journal.now = replace(journal.now, audits=(own,))
        for i, digest in enumerate(filled, 1):
            shutil.copytree(case.workspace.audit(own.digest).path, case.workspace.audit(digest).path)
            made = (first + timedelta(days=i)).isoformat(timespec="seconds")
            audits = (
                *journal.now.audits,
                replace(own, digest=digest, created=made, number=i + 1, latest=i + 1),
            )
            journal.now = replace(journal.now, audits=audits)
        out = Released(filled[0], "there", "2026-01-01", 1, "0" * 64)
        journal.write(replace(journal.now.with_newest("", filled[-1]), releases=(out,)))
    (case.workspace.audit(filled[1]).path / "approval-0123456789abcdef.json").write_text("{}")
    found = purge(case.workspace, Retention(keep=30, monthly=True))
    months = [f"{first + timedelta(days=i):%Y-%m}" for i in range(1, 366)]
    last = {filled[i] for i in range(365) if i == 364 or months[i] != months[i + 1]}
    assert there(case) == {*last, *filled[-30:], *filled[:2]}
    assert (kept(found)[filled[0]], kept(found)[filled[1]]) == ("it was released", "it was approved")
    assert {e.digest for e in read_journal(case.workspace).audits} >= set(filled)


def test_verify_says_when_it_was_purged(aged):
    case, digests = aged
    folder = case.workspace.audit(digests[0]).path
    copy = shutil.copytree(folder, case.folder / "copy")
    purge(case.workspace, Retention(keep=4))
    for path in (folder, folder / "evidence.json"):
        [check] = api.verify(path)
        assert check.holds is None
        assert any(f"purged on {day}" in check.detail for day in since_start())
        with pytest.raises(DataError, match="was purged on"):
            api.write_report(path)
    with pytest.raises(DataError, match="cannot be read"):
        api.verify(folder.with_name("0" * 64))
    shutil.copytree(copy, folder)
    checks = {c.what: c for c in api.verify(folder)}
    assert checks["entry in the journal"].holds
    assert "purged on" in checks["entry in the journal"].detail
    assert checks["files of the audit"].holds
    (folder / "measurements.parquet").write_text("forged")
    assert api.verify(folder) != tuple(checks.values())
    assert {c.what: c.holds for c in api.verify(folder)}["files of the audit"] is False


def test_the_rest_still_verifies_and_is_released(aged):
    case, _ = aged
    purge(case.workspace, Retention(keep=1))
    assert [c for c in api.verify(case.workspace.root) if c.holds is False] == []
    assert pipeline.release_synthetic(case.plan, case.workspace).table.rows == case.synthetic.num_rows


def test_an_audit_that_is_found_again_is_no_longer_purged(aged):
    case, digests = aged
    folder = case.workspace.audit(digests[3])
    text = folder.evidence.read_bytes()
    purge(case.workspace, Retention(keep=1))
    evidence = parse_evidence(text.decode())
    evidence_store(case.workspace).put(evidence, case.workspace.newest.measurements.read_bytes())
    assert read_journal(case.workspace).entry(digests[3]).purged == ""
    assert folder.path.is_dir()


def test_a_folder_that_the_journal_does_not_know_stays(aged):
    case, _ = aged
    stranger = case.workspace.audits / ("ab" * 32)
    stranger.mkdir()
    found = purge(case.workspace, Retention(keep=1))
    assert kept(found)[stranger.name] == "the journal does not know it"
    assert stranger.is_dir()


def test_a_link_is_not_followed(aged, tmp_path):
    case, digests = aged
    outside = tmp_path / "outside"
    shutil.move(case.workspace.audit(digests[0]).path, outside)
    case.workspace.audit(digests[0]).path.symlink_to(outside)
    purge(case.workspace, Retention(keep=1))
    assert not os.path.lexists(case.workspace.audit(digests[0]).path)
    assert (outside / "evidence.json").is_file()
    shutil.move(case.workspace.audits, tmp_path / "audits")
    case.workspace.audits.symlink_to(tmp_path / "audits")
    with pytest.raises(DataError, match="link"):
        purge(case.workspace, Retention(keep=1))


def test_nobody_purges_while_another_is_at_work(aged):
    case, digests = aged
    with in_use(case.workspace), pytest.raises(DataError, match="another run is at work"):
        purge(case.workspace, Retention(keep=1))
    assert there(case) == set(digests)
    assert len(survey(case.workspace, Retention(keep=1)).goes) == 4


KILLED = """
import importlib, os, signal, sys
from pathlib import Path
from synth_audit.store.purge import purge
from synth_audit.store.purge import Retention
from synth_audit.store.workspace import Workspace

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

room, name = sys.argv[2].rsplit(".", 1)
setattr(importlib.import_module(f"synth_audit.store.{room}"), name, die)
purge(Workspace(Path(sys.argv[1])), Retention(keep=1))
"""


@pytest.mark.parametrize("point", ["files.discard", "files.delete"])
def test_a_purge_that_was_killed_is_finished_by_the_next(aged, point):
    case, digests = aged
    words = [sys.executable, "-c", KILLED, str(case.workspace.root), point]
    done = subprocess.run(words, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert digests[0] in there(case)
    found = purge(case.workspace, Retention(keep=9))
    [reason] = {item.reason for item in found.goes}
    assert reason in {f"its purge began on {day}" for day in since_start()}
    assert there(case) == {digests[4]}
    assert not list(case.workspace.audits.glob(".*"))


def test_what_was_not_shown_does_not_go(aged):
    case, digests = aged
    found = purge(case.workspace, Retention(keep=1), only={digests[0]})
    assert [item.name for item in found.goes] == [digests[0]]
    assert there(case) == set(digests[1:])


@pytest.fixture
def swept(aged):
    """The same with candidates: two of the newest sweep, which chose one, and an older one."""
    case, _ = aged
    for slug, days in (("vine", 200), ("copula", 200), ("older", 300)):
        own = case.workspace.candidate(slug).prepare()
        digest = filed(case, own, days, slug)
        assert own.audit(digest).path.is_dir()
    return case, Sweep({"vine", "copula"}, chosen="vine")


@pytest.mark.parametrize(
    ("retention", "gone"),
    [
        (Retention(keep=1), {"older"}),
        (Retention(older_than=timedelta(days=150)), {"older", "copula"}),
        (Retention(older_than=timedelta(days=250)), {"older"}),
        (Retention(keep=1, older_than=timedelta(days=350)), set()),
    ],
)
def test_old_candidates_go_with_their_rows(swept, retention, gone):
    case, sweep = swept
    found = purge(case.workspace, retention, sweep)
    slugs = {"vine", "copula", "older"}
    assert {item.name for item in found.goes} & slugs == gone
    assert {p.name for p in case.workspace.candidates.iterdir()} == slugs - gone
    assert {
        e.place.split("/")[-1] for e in read_journal(case.workspace).audits if e.purged and e.place
    } == gone
    assert kept(found)["vine"] != ""


def test_only_what_spent_budget_is_said_to_have_spent_it(swept):
    case, sweep = swept
    older = case.workspace.candidate("older").synthetic_record
    made = SyntheticRecord.read(case.workspace.synthetic_record)
    noise = MechanismRecord(what="noise", mechanism=Mechanism.GAUSSIAN, noise_multiplier=1.0)
    for mechanisms, warned in (((), False), ((noise,), True)):
        privacy = replace(made.generator.privacy, mechanisms=mechanisms)
        replace(made, generator=replace(made.generator, privacy=privacy)).write(older)
        [item] = [i for i in survey(case.workspace, Retention(keep=1), sweep).goes if i.name == "older"]
        assert bool(item.reason) is warned


def test_without_a_record_of_a_sweep_age_alone_decides(swept):
    case, _ = swept
    found = survey(case.workspace, Retention(keep=1))
    assert kept(found)["older"] == "no record of a sweep tells whether it is needed"
    found = survey(case.workspace, Retention(older_than=timedelta(days=250)))
    assert "older" in {item.name for item in found.goes}


@pytest.mark.parametrize(
    "rules", [{}, {"keep": 0}, {"older_than": "90"}, {"older_than": "0d"}, {"older_than": "-3d"}]
)
def test_rules_that_say_nothing_are_refused(case, rules):
    with pytest.raises(PlanError) as caught:
        synth_audit.purge(case.workspace.root, **rules)
    assert caught.value.expected


def test_without_a_journal_nothing_goes(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="no journal"):
        synth_audit.purge(tmp_path / "out", keep=1, dry_run=False)
    assert list((tmp_path / "out").iterdir()) == []


def test_the_command_deletes_after_a_yes_alone(aged):
    case, digests = aged

    def invoke(*words):
        return CliRunner().invoke(main, ["purge", str(case.workspace.root), "--keep", "4", *words])

    for words in ([], ["--dry-run"]):
        shown = invoke(*words)
        assert shown.exit_code == 0, shown.output
        assert "would go: 1" in shown.stdout
        assert "stays: 4, and the ledger" in shown.stdout
        assert "nothing was deleted" in shown.stderr
    assert invoke("--dry-run", "--yes").exit_code == 2
    told = json.loads(invoke("--json").stdout)
    assert (told["done"], [i["name"] for i in told["goes"]]) == (False, [digests[0]])
    assert there(case) == set(digests)
    assert "deleted 1" in invoke("--yes").stdout
    assert there(case) == set(digests[1:])
    assert json.loads(invoke("--yes", "--json").stdout)["goes"] == []


def test_a_plan_names_its_workspace(aged):
    case, _ = aged
    shutil.move(case.workspace.root, case.folder / "plan-audit")
    assert len(api.purge(case.folder / "plan.yaml", keep=1).goes) == 4


@pytest.mark.parametrize("room", [0, 1])
def test_a_full_disk_leaves_all_as_it_was_or_a_purge_to_be_finished(aged, full_disk, room):
    case, digests = aged
    with full_disk(room) as disk, nullcontext() if room else pytest.raises(DataError, match="space"):
        purge(case.workspace, Retention(keep=1))
    assert disk.full is (room == 0)
    assert there(case) == set(digests[-1:] if room else digests)
    assert [c for c in api.verify(case.workspace.root) if c.holds is False] == []
    assert list(case.workspace.root.rglob("*.tmp")) == []
    purge(case.workspace, Retention(keep=1))
    assert there(case) == set(digests[-1:])
