"""What holds a release: one worse than the last, and real records spelt into it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import ReleaseRefused
from synth_audit.pipeline import release
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.release import refuse_if_worse
from synth_audit.plan.plan import Plan
from synth_audit.store.records import Released
from synth_audit.store.workspace import Workspace
from synth_audit.verdict.suite import load_suite

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


@pytest.fixture
def judged(case, make_gate):
    """The gates that do not pass, and the run's evidence, of a file that somebody made."""
    novel = next(g for g in load_suite("release", case.folder).gates if g.id == "novel_content")
    case.set_gates(make_gate("copies", "exact_match.excess", 0.2), dict(novel.plain))
    plan = case.replan(generator={"external": {"source": "made.parquet"}}, audits=["exact_match"])

    def run(made):
        pq.write_table(made, case.folder / "made.parquet")
        evidence = pipeline.produce(plan, case.workspace)
        return {g.gate for g in evidence.gates.results if g.result != "pass"}, evidence, plan

    return run


def test_records_in_the_digits_of_an_otherwise_honest_release_do_not_leave(case, judged, make_people):
    fresh = make_people(160, seed=9).drop_columns(["person"])
    assert judged(fresh)[0] == set()
    real = pq.read_table(case.workspace.train)
    spelt = np.round(fresh["income"].to_numpy(), 2) + real["age"].to_numpy()[:160] * 1e-5
    hidden, evidence, plan = judged(fresh.set_column(1, "income", pa.array(spelt)))
    assert hidden == {"novel_content"}
    [audit] = [o for o in evidence.outcomes if o.audit == "novel_content"]
    assert [n for n in audit.notes if "'income' holds finer digits" in n]
    with pytest.raises(ReleaseRefused, match="verdict is fail"):
        pipeline.release_synthetic(plan, case.workspace)
