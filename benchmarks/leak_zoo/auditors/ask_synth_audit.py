"""This tool: its default audits, and the verdict of the gate suite that ships; alarmed unless it passes."""

from __future__ import annotations

from serving import Answer, Tables, serve

from synth_audit import audit

PRIVACY = ("closest_record", "inference", "linkability", "membership_data_only", "partial_knowledge")


def judge(tables: Tables) -> Answer:
    evidence = audit(tables["train"], tables["control"], tables["synthetic"])
    gated = {gate.gate: gate.result for gate in evidence.gates.results if gate.blocking}
    worst = {str(m.id): float(m.value) for m in evidence.measurements if m.id.audit in PRIVACY}
    held = {f"held by {name}": 1.0 for name, result in gated.items() if result != "pass"}
    return worst | held, evidence.verdict != "pass"


serve(judge)
