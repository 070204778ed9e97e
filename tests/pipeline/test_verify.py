from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import registry
from synth_audit.errors import PlanError
from synth_audit.execution.seeds import Salt
from synth_audit.findings.verdict import Result
from synth_audit.pipeline.verify import verify
from synth_audit.store.evidence import parse_evidence
from synth_audit.table.content_hash import fingerprint

DIGEST, PLAN, SUITE, VERDICT = (
    "digest of the evidence",
    "hash of the plan",
    "hash of the gate suite",
    "verdict, judged anew",
)


SALT = Salt(bytes(range(32)))


def broken(evidence, tables=None):
    hashes = {name: fingerprint(table) for name, table in (tables or {}).items()}
    return {c.what for c in verify(evidence, hashes, SALT) if not c.holds}


def test_untouched_evidence_holds(finished):
    checks = verify(finished.evidence, salt=SALT)
    assert [c.what for c in checks] == [DIGEST, PLAN, SUITE, VERDICT, "commitment to the salt"]
    assert all(c.holds for c in checks)
    assert checks[3].detail == "pass; fit for purpose: not tested"


def _gates(evidence, **changes):
    return replace(evidence, gates=replace(evidence.gates, **changes))


def _looser_suite(evidence):
    suite = json.loads(json.dumps(evidence.gates.suite))
    suite["expectations"][0]["kwargs"]["maximum"] = 0.9
    return suite


def _all_failed(evidence):
    return tuple(replace(r, result=Result.FAIL) for r in evidence.gates.results)


def _worse(evidence):
    found = [o for o in evidence.outcomes if o.audit == "exact_match"]
    others = [o for o in evidence.outcomes if o.audit != "exact_match"]
    worse = tuple(replace(m, value=1.0, interval=None) for m in found[0].measurements)
    return (replace(found[0], measurements=worse), *others)


ALTER = {
    "seed": lambda e: replace(e, seed=e.seed + 1),
    "plan": lambda e: replace(e, plan={**e.plan, "seed": 77}),
    "plan hash": lambda e: replace(e, plan_sha256="0" * 64),
    "suite": lambda e: _gates(e, suite=_looser_suite(e)),
    "suite emptied": lambda e: _gates(e, suite={}),
    "suite hash": lambda e: _gates(e, suite_sha256="0" * 64),
    "gate": lambda e: _gates(e, results=_all_failed(e)),
    "verdict": lambda e: replace(e, verdict=Result.FAIL),
    "value": lambda e: replace(e, outcomes=_worse(e)),
    "outcomes": lambda e: replace(e, outcomes=()),
}


@pytest.mark.parametrize(
    ("part", "fails"),
    [
        ("seed", set()),
        ("plan", {PLAN}),
        ("plan hash", {PLAN}),
        ("suite", {SUITE, VERDICT}),
        ("suite hash", {SUITE}),
        ("verdict", {VERDICT}),
        ("gate", {VERDICT}),
        ("outcomes", {VERDICT}),
        ("value", {VERDICT}),
        ("suite emptied", {SUITE, VERDICT}),
    ],
)
def test_each_check_fails_when_its_part_is_altered(finished, part, fails):
    forged = ALTER[part](finished.evidence)
    assert broken(forged) == fails | {DIGEST}
    assert broken(forged.sealed()) == fails


def test_the_tables_are_compared_with_their_hashes(finished):
    tables = {
        name: pq.read_table(getattr(finished.workspace, name)) for name in ("train", "control", "synthetic")
    }
    tables["source"] = pq.read_table(finished.folder / "people.parquet")
    assert broken(finished.evidence, tables) == set()
    for name, table in tables.items():
        changed = tables | {name: table.slice(1)}
        assert broken(finished.evidence, changed) == {f"content of {name}"}
    swapped = {"train": tables["control"], "control": tables["train"]}
    assert broken(finished.evidence, swapped) == {"content of train", "content of control"}


def test_a_table_that_was_never_audited_does_not_hold(finished):
    evidence = replace(finished.evidence, tables={}).sealed()
    assert broken(evidence, {"train": pa.table({"a": [1]})}) == {"content of train"}


def test_it_works_when_the_plug_ins_are_gone(finished, monkeypatch):
    text = finished.workspace.evidence.read_text()
    for package in registry._PACKAGES:
        monkeypatch.setitem(registry._PACKAGES, package, ())
    registry._built_in.cache_clear()
    try:
        with pytest.raises(PlanError):
            registry.find("audit", "exact_match")
        assert all(c.holds for c in verify(parse_evidence(text), salt=SALT))
    finally:
        registry._built_in.cache_clear()
