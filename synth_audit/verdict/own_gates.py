"""Gates that no suite lists: what each asks for, why, and results in these words."""

from __future__ import annotations

from typing import Any, NamedTuple

from synth_audit.findings.verdict import FITNESS, GateResult, Result

CONTRACT = "schema_contract"
"""The table is what its schema declares: under every suite."""

PRIVACY_BUDGET, REFUTED = "privacy_budget", "privacy_refuted"
"""Under a plan that declares a budget."""

ANSWERS = "answers"
"""Under a suite that demands answers; also the key under ``meta`` that demands them."""


class OwnGate(NamedTuple):
    """What a gate asks for, and why."""

    title: str
    reason: str


OWN_GATES = {
    CONTRACT: OwnGate(
        "The table holds exactly the declared columns, kinds, bounds and categories",
        "The schema is what the data owner agreed to hand out. A column more, an identifier above all, or a "
        "value outside its declared domain was never part of that agreement, and no audit has judged it.",
    ),
    PRIVACY_BUDGET: OwnGate(
        "The guarantee covers entities and stays within the declared budget",
        "The plan declares what all fits on this table may cost together. A guarantee that is missing, "
        "larger, or made to rows where people have several does not keep that declaration.",
    ),
    REFUTED: OwnGate(
        "No game refutes the guarantee",
        "A guarantee bounds how well any attacker can do. An attacker who provably does better shows that it "
        "does not hold: noise, accounting or an assumption is wrong.",
    ),
    ANSWERS: OwnGate(
        "Every question that the suite demands an answer to is answered",
        "An audit that was blind on this table, fell short or could not be decided says nothing of its risk. "
        "The suite names the questions without whose answer nothing may leave.",
    ),
    FITNESS: OwnGate(
        "The release is fit for purpose", "The suite lets nothing leave that does not serve its purpose."
    ),
}
"""By their identifiers; all of them block."""


def own_result(gate: str, result: Result, explanation: str, advice: str = "", **more: Any) -> GateResult:
    """The result of one of these gates; advice is for one that did not pass."""
    title, reason = OWN_GATES[gate]
    advice = "" if result is Result.PASS else advice
    return GateResult(gate, title, result, True, reason, explanation, advice, **more)
