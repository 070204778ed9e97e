"""Audits and games on a Dask cluster of two workers give the numbers that they give here, to the last bit."""

import os
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pytest
from dask import config

from synth_audit import build
from synth_audit.errors import OutOfTime, PlanError, PluginError, Unavailable
from synth_audit.examination.audit_runner import AuditTask, _run_one, run_audits
from synth_audit.examination.examine import run_examination
from synth_audit.execution import dask_cluster
from synth_audit.execution.context import Cache, RunContext
from synth_audit.execution.executor import Deadline, Ending, opened
from synth_audit.generators.independent import Independent
from synth_audit.plan.sections import KnownAnswerSpec
from synth_audit.plugins.audit import Status

pytestmark = pytest.mark.xdist_group("dask")
SUITE = ("exact_match", "closest_record", "linkability", "marginals", "prediction")


@pytest.fixture(scope="module")
def dask():
    """A context whose work is done by two processes of a cluster that this one starts.

    Workers take seconds to start, so a call may kill fewer of them than by default, and a cluster that gave
    up those which are slow to come back would show here.
    """
    hasty = {"distributed.scheduler.allowed-failures": 1, "distributed.deploy.lost-worker-timeout": "100 ms"}
    with config.set(hasty), opened("dask", 2) as executor:
        yield RunContext(executor=executor)


@pytest.fixture(scope="module")
def subject(as_subject, population):
    tables = population(150, 1), population(100, 2), population(150, 3)
    return replace(as_subject(*tables), generator=Independent())


def test_an_audit_suite_says_the_same(dask, built, subject):
    audits = {name: built(name) for name in SUITE}
    here, there = (run_examination(audits, subject, KnownAnswerSpec(), c) for c in (RunContext(), dask))
    assert all(o.status is Status.MEASURED for o in here.outcomes)
    assert there.outcomes == here.outcomes
    assert there.view == here.view
    assert there.exposed.equals(here.exposed)


def test_audits_travel_and_are_not_done_here_instead(dask, built, subject):
    tasks = [AuditTask(name, built(name), subject, name, ("audit", name)) for name in SUITE]
    with dask.executor.pieces(partial(_run_one, RunContext()), tasks) as pieces:
        assert [piece.ending for _, piece in pieces] == [Ending.DONE] * len(tasks)


@pytest.mark.parametrize("name", [pytest.param("membership_game", marks=pytest.mark.slow), "attribute_game"])
def test_a_game_says_the_same(name, dask, built, subject, tmp_path):
    game = {name: replace(built(name), iterations=2)}
    kept = replace(dask, cache=Cache(tmp_path))
    here, *there = (run_audits(game, subject, c)[0] for c in (RunContext(), dask, kept))
    assert here[0].status is Status.MEASURED
    assert there == [here, here]


# The workers know what is installed, not these tests, so the work here is of the standard library.


def test_work_is_done_by_the_workers_and_comes_in_order(dask):
    pids = dask.map("piece", os.readlink, ["/proc/self"] * 4)
    assert str(os.getpid()) not in pids
    assert 1 <= len(set(pids)) <= 2
    assert dask.map("piece", abs, range(-9, 0)) == [9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_the_first_failure_is_raised_as_it_was(dask):
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        dask.map("piece", os.readlink, ["/proc/self", "/nothing-here", "/nor-here"])


def test_the_deadline_stops_the_workers_and_keeps_what_is_done(dask):
    before = set(dask.map("piece", os.readlink, ["/proc/self"] * 8))
    start = time.monotonic()
    with dask.executor.pieces(time.sleep, [0.0, 600.0, 600.0], deadline=Deadline.within(5)) as pieces:
        endings = {position: piece.ending for position, piece in pieces}
    assert endings == {0: Ending.DONE, 1: Ending.LATE, 2: Ending.LATE}
    assert time.monotonic() - start < 60
    assert not any(os.path.exists(f"/proc/{pid}") for pid in before)
    with pytest.raises(OutOfTime):
        replace(dask, deadline=Deadline.within(1e-9)).map("piece", abs, [1, 2])
    patient = replace(dask, deadline=Deadline.within(100))
    assert patient.map("piece", abs, [-1, -2]) == [1, 2], "others take their place"


def test_on_a_cluster_of_others_work_is_given_up_and_nobody_is_killed(dask):
    workers = dask.executor.pool.client
    workers.wait_for_workers(2, timeout=60)  # those of the test before may be on their way still
    before = set(workers.run(os.getpid).values())
    theirs = replace(dask.executor, pool=replace(dask.executor.pool, own=None))
    with theirs.pieces(time.sleep, [3.0] * 4, deadline=Deadline.within(0.5)) as pieces:
        assert {piece.ending for _, piece in pieces} == {Ending.LATE}
    assert set(workers.run(os.getpid).values()) == before


def test_a_call_that_kills_every_worker_it_meets_is_told_of(dask):
    with pytest.raises(PluginError, match="ended before it answered"):
        replace(dask, deadline=Deadline.within(100)).map("piece", os._exit, [1])
    assert dask.map("piece", abs, [-1, -2]) == [1, 2]


def test_where_there_is_no_scheduler_the_error_says_so(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_PATIENCE", 1)
    with pytest.raises(Unavailable, match="no Dask scheduler") as caught, ExitStack() as stack:
        stack.enter_context(opened("dask", scheduler="tcp://127.0.0.1:9"))
    assert "execution.scheduler" in caught.value.where


def test_workers_of_other_versions_and_builds_are_refused(dask, monkeypatch):
    client, here = dask.executor.pool.client, dask_cluster._versions()
    client.wait_for_workers(2, timeout=100)  # the test before may have ended them
    dask_cluster._compare(client, here)
    with pytest.raises(PlanError, match="another version of numpy"):
        dask_cluster._compare(client, here | {"numpy": "0"})
    with monkeypatch.context() as other:
        other.setattr(build, "build_id", lambda: "0" * 12)
        elsewhere = dask_cluster._versions.__wrapped__()
    with pytest.raises(PlanError, match="another version of synth-audit"):
        dask_cluster._compare(client, elsewhere)
    with monkeypatch.context() as other:
        other.setattr(dask_cluster, "_versions", lambda: elsewhere)
        with pytest.raises(PlanError, match="came later has other versions"):
            RunContext(executor=dask.executor).map("piece", abs, [-1, -2])
