"""This tool: the audits that its shipped suite's blocking gates rest on; alarmed unless all of them pass.

Releases of one training table share what planted leaks were measured at, as the candidates of a workspace do.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pyarrow as pa
from serving import Answer, Tables, serve

from synth_audit.execution.context import Cache, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.pipeline.stages import MADE_ELSEWHERE, anchored_subject, examine
from synth_audit.plan.plan import Plan
from synth_audit.registry import build
from synth_audit.verdict.suite import load_suite

PLAN = Plan()
SUITE = load_suite(PLAN.gates, PLAN.base)
ONLY = sorted({gate.limit.audit for gate in SUITE.measured if gate.blocking and gate.limit})
"""Fidelity and utility are no question of the zoo, and no blocking gate of the suite that ships."""

SALT = Salt(sha256(b"leak zoo").digest())
HELD = {"pass": 0.0, "insufficient evidence": 0.5}


def judge(tables: Tables, cache: Cache) -> Answer:
    three = (_arrow(tables[role]) for role in ("train", "control", "synthetic"))
    subject, context = anchored_subject(*three, PLAN), replace(RunContext(), cache=cache)
    audits = {name: build("audit", name, {}) for name in ONLY}
    evidence = examine(PLAN, subject, MADE_ELSEWHERE, context, SALT, draws=SALT, audits=audits).evidence
    gated = {gate.gate: gate.result for gate in evidence.gates.results if gate.blocking}
    scores = {name: HELD.get(str(result), 1.0) for name, result in gated.items()}
    return scores, any(scores.values())


def _arrow(rows: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(rows, preserve_index=False)


with tempfile.TemporaryDirectory() as kept:
    serve(lambda tables: judge(tables, Cache(Path(kept))), "synth-audit")
