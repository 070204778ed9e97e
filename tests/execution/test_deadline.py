from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from synth_audit.errors import NotApplicable, OutOfTime
from synth_audit.execution import executor
from synth_audit.execution.executor import NEVER, Deadline


@pytest.fixture
def clock(monkeypatch):
    """The time that deadlines read: it stands unless it is moved."""
    clock = SimpleNamespace(now=1_000_000.0)
    monkeypatch.setattr(executor, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


def test_it_passes_once_and_not_before(clock):
    soon = Deadline.within(0.5)
    clock.now += 0.25
    soon.check()
    assert soon.left == 0.25
    clock.now += 0.25
    assert soon.passed
    assert soon.left == 0
    with pytest.raises(OutOfTime):
        soon.check()
    assert issubclass(OutOfTime, NotApplicable)


def test_never_does_not():
    NEVER.check()
    assert Deadline.within(None) == NEVER == NEVER.again()
    assert not NEVER.passed


def test_a_stage_gets_the_whole_time_again(clock):
    spent = Deadline(at=clock.now - 1, limit=60)
    assert spent.passed
    assert spent.again().left == 60


def test_it_means_the_same_moment_in_another_process(clock):
    there = pickle.loads(pickle.dumps(Deadline.within(60)))  # noqa: S301  (our own bytes)
    assert there.left == 60
