"""Real records spelt into a release are held by the verdict, whatever every distance says of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import ReleaseRefused
from synth_audit.pipeline import stages as pipeline
from synth_audit.verdict.suite import load_suite


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
