"""Whoever makes a release cannot foresee whom an audit will look up, and so cannot spare those alone."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits._shared import drawn
from synth_audit.audits.privacy.linkability import Linkability
from synth_audit.examination.audit_runner import run_audits
from synth_audit.examination.examine import seed_of_draws
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import Salt, child_rng
from synth_audit.pipeline.stages import MADE_ELSEWHERE, examine
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Subject
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

SEED, ASKED, COLUMNS = 7, 120, [f"c{i}" for i in range(5)]
AUDIT = {"linkability": Linkability(n_attacks=ASKED, n_neighbours=1, source_pairs=0)}
SALTS = [Salt(bytes([i]) * 32) for i in (1, 2)]


def people(n, seed):
    rng = np.random.default_rng(seed)
    return pa.table({c: rng.normal(size=n) for c in COLUMNS})


def subject_of(release):
    train, control = people(600, 1), people(200, 2)
    schema = infer_schema(train, {})
    return Subject(
        read_table(train, schema, where="train"),
        read_table(control, schema, where="control"),
        read_table(release, schema, where="synthetic"),
    )


def sparing(looked_up):
    """New people, and a copy of all of train but those who are looked up."""
    others = np.setdiff1d(np.arange(600), looked_up)
    return pa.concat_tables([people(600, 1).take(pa.array(others)), people(len(looked_up), 3)])


def foreseen(*stream):
    """The rows of train that the audit draws where its draws follow from the plan's seed."""
    return drawn(np.arange(600), ASKED, child_rng(SEED, *stream))


def joined(outcome):
    return next(m for m in outcome.measurements if m.id.quantity == "risk")


@pytest.mark.parametrize("stream", [("audit", "linkability"), ("audit", "linkability", "")])
def test_sparing_those_whom_the_public_seed_draws_does_not_help(stream):
    [outcome], _ = run_audits(AUDIT, subject_of(sparing(foreseen(*stream))), RunContext(seed=SEED))
    assert joined(outcome).interval.low > 0.4


def test_sparing_those_whom_an_earlier_audit_looked_up_does_not_help():
    """The maker knows every draw but that its own release has a part in them."""
    before = subject_of(people(600, 3))
    rows = foreseen("audit", "linkability", before.synthetic.fingerprint)
    [outcome], _ = run_audits(AUDIT, subject_of(sparing(rows)), RunContext(seed=SEED))
    assert joined(outcome).interval.low > 0.4


def test_a_maker_that_knows_its_own_release_does_not_know_the_salt():
    """Even a release that was found to suit the public seed has others looked up in a workspace."""
    plan = Plan.model_validate({"name": "t", "seed": SEED, "known_answer": {"max_rows": 100}})
    subject = subject_of(sparing(foreseen("audit", "linkability")))
    found = [joined(_examined(plan, subject, salt)) for salt in (*SALTS, SALTS[0])]
    assert found[0] == found[2]
    assert found[0] != found[1]
    free = [joined(_examined(plan, subject, None)) for _ in range(2)]
    assert free[0] == free[1], "without a salt that is kept the numbers repeat as well"


def _examined(plan, subject, draws):
    """The only outcome of an examination; the tables are hashed under a salt of their own."""
    salt = Salt.fresh()
    found = examine(plan, subject, MADE_ELSEWHERE, RunContext(), salt, draws=draws, audits=AUDIT)
    [outcome] = found.evidence.outcomes
    return outcome


def test_neither_the_order_of_rows_nor_their_representation_moves_the_draws():
    one = people(50, 1)
    schema = infer_schema(one, {})
    other = one.take(pa.array(np.arange(50)[::-1]))
    tables = [
        read_table(t, schema, where="synthetic")
        for t in (one, other, one.select(COLUMNS[::-1]), pa.concat_tables([one.slice(0, 9), one.slice(9)]))
    ]
    assert len({t.fingerprint for t in tables}) == 1
    seeds = {seed_of_draws(t.fingerprint, salt) for t in tables for salt in (*SALTS, None)}
    assert len(seeds) == 3, "one for each salt, and one without"
    ordered = [t.in_content_order() for t in tables]
    assert len({t.fingerprint for t in (*tables, *ordered)}) == 1
    rows = [t.data.select(COLUMNS).to_pydict() for t in ordered]
    assert rows[0] == rows[1] == rows[2] == rows[3]
