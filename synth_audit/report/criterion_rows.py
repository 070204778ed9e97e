"""The certificate's table: each question about people, what became of it, and what remains."""

from __future__ import annotations

from dataclasses import replace

from synth_audit.core.sensitivity import WORST_SUBGROUP
from synth_audit.core.verdict import GateResult, Result
from synth_audit.judging.criteria import AnswerState
from synth_audit.report import words
from synth_audit.report.certificate_view import CriterionRow
from synth_audit.report.outcomes import Outcomes
from synth_audit.report.release_comparison import compared
from synth_audit.report.residual_risk import ResidualRisk, people, people_interval, percent, residual_risks
from synth_audit.store.evidence import Evidence

_KINDS = {AnswerState.ANSWERED: "pass", AnswerState.UNDECIDED: "open", AnswerState.NOT_ASKED: "open"}


def criterion_rows(evidence: Evidence, previous: Evidence | None) -> tuple[CriterionRow, ...]:
    """One row for each criterion, in their order.

    Args:
        previous: evidence of the last release before this one.
    """
    outcomes = Outcomes.of(evidence)
    return tuple(_row(risk, outcomes, previous) for risk in residual_risks(evidence))


def train_rows(evidence: Evidence) -> int:
    """How many records the generator learnt from."""
    return evidence.tables["train"].rows if "train" in evidence.tables else 0


def _row(risk: ResidualRisk, outcomes: Outcomes, previous: Evidence | None) -> CriterionRow:
    answer, gate, measured = risk.answer, risk.gate, risk.measured
    row = CriterionRow(
        answer.criterion.capitalize(), _KINDS[answer.state], str(answer.state), words.sentence(answer.reason)
    )
    if gate is None or measured is None:
        return row
    failed = gate.blocking and gate.result is Result.FAIL
    found = replace(
        row,
        kind="fail" if failed else row.kind,
        why=row.why or _remark(gate),
        finding=words.sentence(outcomes.sentence(gate).partition(";")[0]),
        allowed=outcomes.limit(gate),
        compared=compared(measured, previous),
    )
    return _with_people(found, risk, gate, outcomes.evidence)


def _remark(gate: GateResult) -> str:
    if not gate.blocking:
        return "Advice only: no gate on it decides."
    return "Beyond its limit." if gate.result is Result.FAIL else ""


def _with_people(row: CriterionRow, risk: ResidualRisk, gate: GateResult, evidence: Evidence) -> CriterionRow:
    """With the risk as a share and in people; a number that is neither says it in the finding alone."""
    share = risk.share
    if share is None:
        return row
    if share.id.quantity.startswith(WORST_SUBGROUP.name):  # how many people that has is not told
        return replace(row, share=percent(share), people="of those in one subgroup")
    rows, few, span = train_rows(evidence), evidence.suppression, share.interval
    most = gate.maximum if share is risk.measured else None
    return replace(
        row,
        share=percent(share) + (" of rows like copies" if risk.of_rows else ""),
        people=people_interval(span.low, span.high, rows, few) if span else people(share.value, rows, few),
        allowed_people="" if most is None else people(most, rows, few),
    )
