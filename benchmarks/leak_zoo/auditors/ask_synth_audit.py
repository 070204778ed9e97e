"""This tool: the audits that its shipped suite's blocking gates rest on; alarmed unless all of them pass."""

from __future__ import annotations

from serving import Answer, Tables, serve

from synth_audit import audit

ONLY = (
    *("closest_record", "exact_match", "identifiability", "inference", "linkability", "membership_data_only"),
    *("novel_content", "one_run", "partial_knowledge", "recoded_copies", "singling_out"),
)
"""Fidelity and utility are no question of the zoo, and no blocking gate of the suite that ships."""

HELD = {"pass": 0.0, "insufficient evidence": 0.5}


def judge(tables: Tables) -> Answer:
    evidence = audit(tables["train"], tables["control"], tables["synthetic"], only=ONLY)
    gated = {gate.gate: gate.result for gate in evidence.gates.results if gate.blocking}
    scores = {name: HELD.get(str(result), 1.0) for name, result in gated.items()}
    return scores, any(scores.values())


serve(judge, "synth-audit")
