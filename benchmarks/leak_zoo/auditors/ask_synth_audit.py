"""This tool: the audits that its shipped suite's blocking gates rest on; alarmed unless all of them pass."""

from __future__ import annotations

from serving import Answer, Tables, serve

from synth_audit import audit
from synth_audit.core.plan import Plan
from synth_audit.judging.judge import load_suite

SUITE = load_suite(Plan().gates, Plan().base)
ONLY = sorted({gate.limit.audit for gate in SUITE.measured if gate.blocking and gate.limit})
"""Fidelity and utility are no question of the zoo, and no blocking gate of the suite that ships."""

HELD = {"pass": 0.0, "insufficient evidence": 0.5}


def judge(tables: Tables) -> Answer:
    evidence = audit(tables["train"], tables["control"], tables["synthetic"], only=ONLY)
    gated = {gate.gate: gate.result for gate in evidence.gates.results if gate.blocking}
    scores = {name: HELD.get(str(result), 1.0) for name, result in gated.items()}
    return scores, any(scores.values())


serve(judge, "synth-audit")
