from __future__ import annotations

import pickle
import time

import pytest

from synth_audit.core.errors import NotApplicable, OutOfTime
from synth_audit.core.execution.deadline import NEVER, Deadline


def test_it_passes_once_and_not_before():
    soon = Deadline.within(0.05)
    soon.check()
    assert 0 < soon.left <= 0.05
    time.sleep(0.06)
    assert soon.passed
    assert soon.left == 0
    with pytest.raises(OutOfTime):
        soon.check()
    assert issubclass(OutOfTime, NotApplicable)


def test_never_does_not():
    NEVER.check()
    assert Deadline.within(None) == NEVER == NEVER.again()
    assert not NEVER.passed


def test_a_stage_gets_the_whole_time_again():
    spent = Deadline(at=time.time() - 1, limit=60)
    assert spent.passed
    assert 59 < spent.again().left <= 60


def test_it_means_the_same_moment_in_another_process():
    there = pickle.loads(pickle.dumps(Deadline.within(60)))  # noqa: S301  (our own bytes)
    assert 59 < there.left <= 60
