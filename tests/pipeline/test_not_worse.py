"""``release: {not_worse: true}``: no release that is worse than the last one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from synth_audit.errors import ReleaseRefused
from synth_audit.pipeline import release
from synth_audit.pipeline.release import refuse_if_worse
from synth_audit.plan.plan import Plan
from synth_audit.store.records import Released
from synth_audit.store.workspace import Workspace

PLAN = Plan.model_validate({"release": {"parquet": {"path": "x.parquet"}, "not_worse": True}})
HERE = Workspace(Path("nowhere"))


@pytest.fixture
def now(build):
    return build.passing()


@pytest.fixture
def last(monkeypatch):
    """Say which releases there were, and which evidence of them is left."""

    def known(*audits, kept=True):
        out = tuple(Released(e.digest, "x", "2026-11-15T00:00:00+00:00", 1, "55" * 32) for e in audits)
        monkeypatch.setattr(release, "releases_of", lambda _: out)
        left = {e.digest: e for e in audits if kept}
        monkeypatch.setattr(release, "released_evidence", lambda _, digest: left.get(digest))

    return known


def safer(evidence):
    """The same audit with less singled out."""

    def moved(m):
        if str(m.id) != "singling_out.risk":
            return m
        return replace(m, value=0.001, interval=replace(m.interval, low=0.0005, high=0.0015))

    outcomes = tuple(replace(o, measurements=tuple(map(moved, o.measurements))) for o in evidence.outcomes)
    return replace(evidence, outcomes=outcomes).sealed()


def test_what_is_worse_beyond_both_intervals_is_refused_and_named(now, last):
    last(safer(now))
    with pytest.raises(ReleaseRefused, match=r"worse than the last release.*risk\.max"):
        refuse_if_worse(PLAN, now, HERE)


def test_the_last_release_counts_and_not_the_one_before(now, last):
    last(safer(now), replace(now, seed=8).sealed())
    refuse_if_worse(PLAN, now, HERE)


@pytest.mark.parametrize("audits", [0, 1])
def test_a_first_release_and_the_same_again_are_no_worse(now, last, audits):
    last(*[now] * audits)
    refuse_if_worse(PLAN, now, HERE)


def test_better_is_not_worse_and_without_the_key_nothing_is_asked(now, last):
    last(now)
    refuse_if_worse(PLAN, safer(now), HERE)
    last(safer(now))
    refuse_if_worse(Plan.model_validate({"release": {"parquet": {"path": "x.parquet"}}}), now, HERE)


def test_what_cannot_be_compared_is_refused(now, last):
    last(safer(now), kept=False)
    with pytest.raises(ReleaseRefused, match="not here"):
        refuse_if_worse(PLAN, now, HERE)
