"""The second answer: fit for purpose, apart from safe to release."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import api, registry
from synth_audit.errors import GateError, ReleaseRefused
from synth_audit.examination.audit_runner import run_audits
from synth_audit.examination.examine import with_ratios
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Interval, Measurement, read_scoped
from synth_audit.findings.verdict import FITNESS, Fitness, Result, TableCheck
from synth_audit.pipeline import stages
from synth_audit.pipeline.release import refuse_unless_allowed
from synth_audit.pipeline.verify import verify
from synth_audit.plugins.audit import AuditOutcome, Status, Subject
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table
from synth_audit.verdict.judge import judge
from synth_audit.verdict.suite import load_suite, parse_suite
from synth_audit.verdict.table_checks import contract_key

COLUMNS = {"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": ["a"]}}
HELD = (TableCheck(contract_key(COLUMNS), True, "ok"),)
SAFE = AuditOutcome("copies", "privacy", Status.NOT_APPLICABLE, reason="for the test")


def gate(ident, severity="warning", **meta):
    return {
        "type": "expect_measurement_to_be_within",
        "kwargs": {"name": f"{ident}.loss", "maximum": 0.1},
        "meta": {"id": ident, "reason": "for the test", **meta},
        "severity": severity,
    }


def suite_of(*expectations, **meta):
    safe = gate("copies", "critical")
    plain = {"name": "test", "expectations": [safe, *expectations], "meta": meta}
    return parse_suite(plain, installed=False)


def lost(audit, low, high):
    middle = (low + high) / 2
    found = Measurement(read_scoped(f"{audit}.loss", ""), middle, interval=Interval(low, high, 0.95, "test"))
    return AuditOutcome(audit, "utility", Status.MEASURED, measurements=(found,))


KEPT, HALF, GONE = (0.0, 0.05), (0.05, 0.2), (0.2, 0.3)
BOTH = (gate("model", fitness="target"), gate("ties", fitness="always"), gate("global", fitness="no target"))


@pytest.mark.parametrize(
    ("model", "ties", "expected"),
    [
        (KEPT, KEPT, Fitness.YES),
        (KEPT, GONE, Fitness.NO),
        (HALF, GONE, Fitness.NO),
        (HALF, KEPT, Fitness.INSUFFICIENT),
    ],
)
def test_fitness_is_as_bad_as_the_worst_gate_that_decides_it(model, ties, expected):
    outcomes = [lost("copies", *KEPT), lost("model", *model), lost("ties", *ties)]
    report = judge(suite_of(*BOTH), outcomes, HELD, target=True)
    assert report.fitness is expected
    assert report.verdict is report.safe is Result.PASS


def test_what_decides_depends_on_whether_a_target_is_named():
    outcomes = [lost("copies", *KEPT), *(lost(a, *KEPT) for a in ("model", "ties")), lost("global", *GONE)]
    assert judge(suite_of(*BOTH), outcomes, HELD, target=True).fitness is Fitness.YES
    assert judge(suite_of(*BOTH), outcomes, HELD).fitness is Fitness.NO


def test_an_optional_gate_is_left_out_for_the_other_case_alone():
    suite = suite_of(gate("model", fitness="target", optional=True), BOTH[1])
    idle = AuditOutcome("model", "utility", Status.NOT_APPLICABLE, reason="no control rows")
    outcomes = [lost("copies", *KEPT), idle, lost("ties", *KEPT)]
    named, unnamed = (judge(suite, outcomes, HELD, target=target) for target in (True, False))
    assert named.fitness is Fitness.INSUFFICIENT
    assert unnamed.fitness is Fitness.YES
    assert "model" not in {g.gate for g in unnamed.results}


def test_without_its_gates_or_its_audits_fitness_was_not_tested():
    assert judge(suite_of(gate("ties")), [lost("ties", *GONE)], HELD).fitness is Fitness.NOT_TESTED
    assert judge(suite_of(*BOTH), [lost("copies", *KEPT)], HELD).fitness is Fitness.NOT_TESTED


def test_what_is_unsafe_may_be_fit():
    outcomes = [lost("copies", *GONE), *(lost(a, *KEPT) for a in ("model", "ties"))]
    report = judge(suite_of(*BOTH), outcomes, HELD, target=True)
    assert (report.safe, report.fitness) == (Result.FAIL, Fitness.YES)


@pytest.mark.parametrize(
    ("ties", "verdict"), [(KEPT, Result.PASS), (HALF, Result.INSUFFICIENT), (GONE, Result.FAIL)]
)
def test_a_suite_says_whether_fitness_blocks(ties, verdict):
    outcomes = [lost("copies", *KEPT), lost("ties", *ties)]
    open_, closed = (judge(suite_of(BOTH[1], fitness_blocks=b), outcomes, HELD) for b in (False, True))
    assert (open_.verdict, open_.safe) == (Result.PASS, Result.PASS)
    assert (closed.verdict, closed.safe) == (verdict, Result.PASS)
    assert open_.fitness is closed.fitness
    assert (closed.results[-1].gate, closed.results[-1].blocking) == (FITNESS, True)


def test_fitness_that_blocks_and_was_not_tested_holds_the_release():
    report = judge(suite_of(BOTH[1], fitness_blocks=True), [lost("copies", *KEPT)], HELD)
    assert (report.verdict, report.safe) == (Result.INSUFFICIENT, Result.PASS)


@pytest.mark.parametrize(
    ("gates", "meta"),
    [
        ((gate("ties", fitness="sometimes"),), {}),
        ((gate("ties", fitness=True),), {}),
        ((gate("ties", fitness=[]),), {}),
        ((gate("ties", "critical", fitness="always"),), {}),
        ((gate("ties", fitnes="always"),), {}),
        ((gate("ties", fitness="always"),), {"fitness_blocks": "yes"}),
        ((gate("ties", fitness="always"),), {"fitness_block": True}),
        ((gate("ties"),), {"fitness_blocks": True}),
    ],
)
def test_a_suite_that_cannot_be_followed_is_refused(gates, meta):
    with pytest.raises(GateError, match="fit"):
        suite_of(*gates, **meta)


@pytest.mark.parametrize("name", ["release", "sensitive", "health"])
def test_the_suites_that_ship_show_fitness_and_do_not_block(name):
    suite = load_suite(name, Path())
    when = {g.id: g.fitness for g in suite.gates if g.fitness}
    assert when == {
        "associations": "always",
        "coverage": "no target",
        "prediction": "target",
        "each_column": "no target",
    }
    assert not suite.fitness_blocks


def people(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2, n))
    return pa.table(
        {
            "age": 50 + 10 * z[0],
            "dose": 5 + z[0] + 0.5 * rng.normal(size=n),
            "region": rng.choice(["north", "south"], n),
            "weight": 70 + 8 * z[0] + 4 * z[1],
            "ill": np.where(z[0] + z[1] > 0, "yes", "no"),
        }
    )


def independent(table):
    rng = np.random.default_rng(9)
    return pa.table({n: table[n].take(rng.permutation(len(table))) for n in table.column_names})


def flipped(table):
    other = ["no" if x == "yes" else "yes" for x in table["ill"].to_pylist()]
    return table.set_column(table.column_names.index("ill"), "ill", pa.array(other))


CASES = {"fresh": lambda t: t, "independent": independent, "flipped": flipped}


@pytest.mark.parametrize(
    ("kind", "fit", "target"),
    [
        ("fresh", "yes", True),
        ("flipped", "no", True),
        ("independent", "no", False),
        pytest.param("independent", "no", True, marks=pytest.mark.slow),
        pytest.param("flipped", "no", False, marks=pytest.mark.slow),
        pytest.param("fresh", "yes", False, marks=pytest.mark.slow),
    ],
)
def test_independent_columns_and_a_flipped_target_are_not_fit(kind, fit, target):
    train, control, other = people(500, 1), people(400, 2), CASES[kind](people(500, 3))
    schema = infer_schema(train, {"ill": ColumnSpec(role="target")} if target else {})
    subject = Subject(*(read_table(t, schema, where="test") for t in (train, control, other)))
    names = ["associations", "coverage", "prediction" if target else "each_column"]
    quick = {"prediction": {"repeats": 1, "n_bootstrap": 100}}
    audits = {name: registry.build("audit", name, quick.get(name, {})) for name in names}
    outcomes = [with_ratios(o) for o in run_audits(audits, subject, RunContext(seed=0))[0]]
    assert judge(load_suite("release", Path()), outcomes, (), target=target).fitness == fit


@pytest.fixture(scope="module")
def unfit(tmp_path_factory, make_case, make_gate):
    """A release that is safe and, by a limit that nothing keeps, not fit. Not to be altered."""
    case = make_case(tmp_path_factory.mktemp("unfit") / "case", audits=["exact_match", "marginals"])
    useful = make_gate("marginals", "marginals.total_variation", -1, "warning")
    useful["meta"]["fitness"] = "always"
    case.set_gates(make_gate("copies", "exact_match.excess", 0.2), useful)
    stages.produce(case.plan, case.workspace)
    return case


def test_evidence_says_both(unfit):
    evidence = unfit.evidence
    assert (evidence.verdict, evidence.fitness) == (Result.PASS, Fitness.NO)
    assert "fit for purpose: no" in repr(evidence)
    assert all(c.holds is not False for c in verify(evidence))
    loose = api.gate(evidence, str(unfit.folder / "gates.json"))
    assert (loose.fitness, loose.intact) == (Fitness.NO, True)


def forged(evidence):
    """Fitness claimed by itself, and with gates to match."""
    yield replace(evidence, fitness=Fitness.YES).sealed()
    held = tuple(replace(g, result=Result.PASS) for g in evidence.gates.results)
    yield replace(evidence, fitness=Fitness.YES, gates=replace(evidence.gates, results=held)).sealed()
    none = tuple(replace(g, fitness=False) for g in evidence.gates.results)
    gates = replace(evidence.gates, results=none)
    yield replace(evidence, fitness=Fitness.NOT_TESTED, gates=gates).sealed()


def test_forged_fitness_is_refused(unfit):
    for evidence in forged(unfit.evidence):
        assert evidence.intact
        assert {c.what for c in verify(evidence) if c.holds is False} == {"verdict, judged anew"}
        with pytest.raises(ReleaseRefused, match="fitness"):
            refuse_unless_allowed(unfit.plan, evidence, unfit.synthetic, None)


def test_a_plan_that_names_no_audits_gets_those_that_decide_fitness(unfit):
    def audits(**meta):
        suite = suite_of(BOTH[1], gate("each_column", fitness="no target"), **meta)
        named = json.loads(json.dumps(suite.plain).replace("ties.", "associations."))
        named["expectations"][0]["kwargs"]["name"] = "exact_match.excess"
        named["expectations"][1]["kwargs"]["name"] = "associations.lost"
        return stages.audits_of(plan, parse_suite(named, installed=False))

    plan = unfit.plan.model_copy(update={"columns": {}})
    assert set(audits()) == {"exact_match", "marginals"}
    assert set(audits(fitness_blocks=True)) == {"exact_match", "marginals", "associations", "each_column"}
    plan = plan.model_copy(update={"audits": ()})
    assert "each_column" in audits()
    plan = unfit.plan.model_copy(update={"audits": ()})
    assert "each_column" not in audits()
