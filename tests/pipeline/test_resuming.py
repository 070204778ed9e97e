"""An audit takes over outcomes that an earlier one journaled of the same tables, and trusts no others."""

import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from synth_audit import api, registry
from synth_audit.errors import DataError
from synth_audit.examination import audit_runner
from synth_audit.execution.context import EVIDENCE_KEY
from synth_audit.pipeline import stages
from synth_audit.pipeline.rerun import rerun
from synth_audit.plugins.audit import Need
from synth_audit.store.purge import Retention, purge

KILLED = """
import os, signal, sys
from pathlib import Path
from synth_audit.examination import audit_runner
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import in_processes
from synth_audit.plan.plan import load_plan
from synth_audit.pipeline import stages
from synth_audit.store.workspace import Workspace

folder, left, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
journal = audit_runner._journal

def dying(*args):
    global left
    journal(*args)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

audit_runner._journal = dying
context = RunContext(executor=in_processes(workers))
stages.audit_synthetic(load_plan(folder / "plan.yaml"), Workspace(folder / "out"), context)
"""

TASKS = 5
"""Two audits of the candidate, and one of them on three planted shares."""


def kill(case, after, workers=1):
    """Audit the case in a process that dies once so many audits have ended."""
    words = [sys.executable, "-c", KILLED, str(case.folder), str(after), str(workers)]
    done = subprocess.run(words, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture(scope="module")
def broken_off(finished, tmp_path_factory):
    """The finished case, whose next audit was killed before its last task. Not to be altered."""
    folder = tmp_path_factory.mktemp("broken-off") / "case"
    case = type(finished)(Path(shutil.copytree(finished.folder, folder)))
    kill(case, after=TASKS - 1)
    return case


@pytest.fixture
def case(broken_off, tmp_path):
    return type(broken_off)(Path(shutil.copytree(broken_off.folder, tmp_path / "case")))


def entries(case):
    return sorted(p for p in case.workspace.outcomes.iterdir() if not p.name.startswith("."))


@pytest.fixture
def measured(monkeypatch):
    """Streams of the tasks that are measured."""
    found, run = [], audit_runner._run_one

    def counted(context, task):
        found.append(task.stream)
        return run(context, task)

    monkeypatch.setattr(audit_runner, "_run_one", counted)
    return found


def test_a_killed_audit_measures_only_what_is_left_and_ends_in_the_same_evidence(case, measured):
    assert len(entries(case)) == TASKS - 1
    assert {stat.S_IMODE(p.stat().st_mode) for p in entries(case)} == {0o600}
    evidence = stages.audit_synthetic(case.plan, case.workspace)
    assert len(measured) == 1
    assert evidence.digest == case.evidence.digest
    assert len(entries(case)) == TASKS


def altered(case):
    """A better number than the audit found."""
    for path in entries(case):
        content = path.read_bytes()
        assert b'"value":' in content
        path.write_bytes(content.replace(b'"value":', b'"value":0.00'))


def cut(case):
    for path in entries(case):
        path.write_bytes(path.read_bytes()[:40])


def exchanged(case):
    first, *others = entries(case)
    for path in others:
        path.write_bytes(first.read_bytes())
    first.unlink()


def linked(case):
    for path in entries(case):
        path.symlink_to(path.rename(case.folder / path.name))


@pytest.mark.parametrize("spoil", [altered, cut, exchanged, linked])
def test_an_entry_that_was_spoilt_is_measured_again(case, measured, spoil):
    spoil(case)
    assert stages.audit_synthetic(case.plan, case.workspace).digest == case.evidence.digest
    assert len(measured) == TASKS


def test_an_entry_sealed_without_the_evidence_key_is_measured_again(case, measured, monkeypatch):
    monkeypatch.setenv(EVIDENCE_KEY, "ab" * 32)
    stages.audit_synthetic(case.plan, case.workspace)
    assert len(measured) == TASKS


def interrupted(*_, **__):
    raise KeyboardInterrupt


def stopped_before_filing(case, patch):
    patch.setattr(stages.Audited, "filed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stages.audit_synthetic(case.plan, case.workspace)


@pytest.mark.slow
def test_a_killed_audit_goes_on_whatever_number_of_processes_it_had(case, measured):
    shutil.rmtree(case.workspace.outcomes)
    kill(case, after=TASKS - 2, workers=2)
    assert stages.audit_synthetic(case.plan, case.workspace).digest == case.evidence.digest
    assert len(measured) == 2


def test_a_rerun_measures_all_again(case, measured):
    assert all(check.holds for check in rerun(case.plan, case.workspace))
    assert len(measured) == TASKS


def test_a_purge_leaves_the_outcomes(case):
    purge(case.workspace, Retention(keep=1))
    assert len(entries(case)) == TASKS - 1


def numbers(evidence):
    """All that a digest covers of what was measured."""
    return evidence.outcomes, evidence.gates, evidence.planting, evidence.records


PLAN = {"name": "daily", "audits": ["exact_match", "marginals"], "gates": "gates.json"}


@pytest.fixture
def days(make_people, write_suite, tmp_path, monkeypatch):
    """Audits a table that was made elsewhere, in one workspace or in another with the same salt."""
    monkeypatch.chdir(tmp_path)
    write_suite()
    train, control, synthetic = (make_people(300, seed=seed) for seed in range(3))

    def audit(control=control, synthetic=synthetic, out="out"):
        return api.audit(train, control, synthetic, PLAN, out=tmp_path / out)

    return audit


def test_a_table_that_did_not_change_is_not_measured_again(days, measured):
    first = days()
    assert len(measured) == TASKS
    again = days()
    assert len(measured) == TASKS
    assert again.digest == first.digest


def test_a_changed_control_measures_everything_again(days, measured, make_people):
    days()
    changed = days(control=make_people(299, seed=1))
    assert len(measured) == 2 * TASKS
    assert numbers(changed) == numbers(days(control=make_people(299, seed=1), out="fresh"))


def test_a_changed_release_leaves_the_planted_leaks_as_they_were(days, measured, make_people):
    days()
    del measured[:]
    changed = days(synthetic=make_people(300, seed=3))
    assert [stream[0] for stream in measured] == ["audit", "audit"]
    assert numbers(changed) == numbers(days(synthetic=make_people(300, seed=3), out="fresh"))


def test_outcomes_that_a_run_does_not_use_are_deleted(days, make_people, tmp_path):
    days()
    days(control=make_people(299, seed=1))
    assert len([*(tmp_path / "out/restricted/outcomes").iterdir()]) == TASKS


def test_an_outcome_that_may_change_is_not_journaled(case, measured, monkeypatch):
    audit = registry.find("audit", "marginals").load()

    def fail(self, subject, context):
        raise ValueError("4711")

    shutil.rmtree(case.workspace.outcomes)
    with monkeypatch.context() as patch:
        patch.setattr(audit, "run", fail)
        stopped_before_filing(case, patch)
    assert len(entries(case)) == TASKS - 1
    assert stages.audit_synthetic(case.plan, case.workspace).digest == case.evidence.digest
    assert len(measured) == TASKS + 1


def of_a_plug_in(case, patch):
    own, audits_of = type("Own", (registry.find("audit", "marginals").load(),), {}), stages.audits_of
    patch.setattr(stages, "audits_of", lambda *args: audits_of(*args) | {"marginals": own()})


def with_new_noise_in_every_fit(case, patch):
    audit = registry.find("audit", "marginals").load()
    patch.setattr(audit, "info", replace(audit.info, needs=(Need.GENERATOR,)))
    patch.setattr(type(case.plan.build_generator()), "repeats", False, raising=False)


@pytest.mark.parametrize("make", [of_a_plug_in, with_new_noise_in_every_fit])
def test_an_outcome_that_the_build_does_not_settle_is_not_journaled(case, monkeypatch, make):
    shutil.rmtree(case.workspace.outcomes)
    make(case, monkeypatch)
    stopped_before_filing(case, monkeypatch)
    assert len(entries(case)) == TASKS - 1


def test_nothing_is_journaled_beside_a_column_kind_or_view_of_a_plug_in(case, monkeypatch):
    """A plug-in's code may change, and its name and settings stay."""
    real, view = registry.catalogue, next(iter(registry.catalogue("view").values()))
    kinds = [ref.load() for ref in real("kind").values()]
    for name in ("kind", "view"):
        shutil.rmtree(case.workspace.outcomes)
        with monkeypatch.context() as patch:
            if name == "view":
                others = {"own": replace(view, module="elsewhere.view")}
                patch.setattr(
                    registry,
                    "catalogue",
                    lambda room, others=others: real(room) | (others if room == "view" else {}),
                )
            else:
                for kind in kinds:
                    patch.setattr(kind, "__module__", "elsewhere.kinds")
            stopped_before_filing(case, patch)
        assert not entries(case)


def test_a_run_whose_journal_another_run_deletes_can_be_gone_on_from(case, monkeypatch):
    journal = audit_runner._journal

    def ended_beside(*args):
        shutil.rmtree(case.workspace.outcomes, ignore_errors=True)  # as the other does when it ends well
        journal(*args)

    with monkeypatch.context() as patch:
        patch.setattr(audit_runner, "_journal", ended_beside)
        stopped_before_filing(case, patch)
    assert stages.audit_synthetic(case.plan, case.workspace).digest == case.evidence.digest


def test_a_journal_that_others_can_read_is_refused(case):
    case.workspace.outcomes.chmod(0o755)
    with pytest.raises(DataError, match="open to other users"):
        stages.audit_synthetic(case.plan, case.workspace)
