"""Which questions about people an examination answered: an audit that ran is not yet an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from synth_audit.core import registry
from synth_audit.core.audit import AuditInfo
from synth_audit.core.errors import GateError, PlanError, PluginError
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.verdict import GateResult, Result

CRITERIA = ("singling out", "linkability", "inference", "membership")
"""The three criteria of data protection authorities for anonymity (WP29 opinion 05/2014), and membership."""

ANSWERS = "answers"
"""Identifier of the gate of suites that demand answers, and the key under ``meta`` that demands them."""

_TITLE = "Every question that the suite demands an answer to is answered"
_REASON = (
    "An audit that was blind on this table, fell short or could not be decided says nothing of its risk. "
    "The suite names the questions without whose answer nothing may leave."
)


class AnswerState(StrEnum):
    """What became of a question."""

    ANSWERED = "answered"
    UNDECIDED = "undecided"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Answer:
    """One criterion.

    Attributes:
        reason: why it is not answered, without a full stop; empty where it is.
    """

    criterion: str
    state: AnswerState
    reason: str = ""


def answers(outcomes: Sequence[AuditOutcome], results: Sequence[GateResult]) -> tuple[Answer, ...]:
    """What became of each of the :data:`CRITERIA`, from the gates on the audits that are about it.

    *Answered*: a gate on it failed, or each gate that decides was decided, whichever way; where none of its
    gates decides about the release, each of them was. *Undecided*: one of them was not, as its number was
    blind, short, absent or too uncertain, or as the audit that it judges had no part in the run. *Not asked*:
    no gate of the suite is about it, or no audit that ran.

    Args:
        results: of all gates.
    """
    ran = {o.audit: o.info.risk for o in outcomes if o.info is not None}
    judged = {g.measurement.audit for g in results if g.measurement is not None}
    about = ran | {audit: _declared_risk(audit) for audit in judged - set(ran)}
    return tuple(_answer(criterion, outcomes, results, about) for criterion in CRITERIA)


def _declared_risk(audit: str) -> str | None:
    """What an audit is about that had no part in the run; None where no plug-in here can say."""
    try:
        info: AuditInfo = registry.find("audit", audit).load().info  # type: ignore[attr-defined]
    except (PlanError, PluginError):
        return None
    return info.risk


def _answer(
    criterion: str,
    outcomes: Sequence[AuditOutcome],
    results: Sequence[GateResult],
    about: Mapping[str, str | None],
) -> Answer:
    """One criterion; ``about`` is that of each audit, and one that is unknown may be about any."""
    audits = {o.audit: o for o in outcomes if o.info is not None and o.info.risk == criterion}
    mine = [g for g in results if g.measurement and about[g.measurement.audit] in (criterion, None)]
    if not audits:
        return Answer(criterion, AnswerState.NOT_ASKED, "no audit for it was part of this run")
    if not mine:
        silent = all(o.status is not Status.MEASURED for o in audits.values())
        return Answer(
            criterion,
            AnswerState.UNDECIDED if silent else AnswerState.NOT_ASKED,
            "its audit gave no result" if silent else "it was measured, and no gate of the suite judges it",
        )
    if any(g.result is Result.FAIL for g in mine):
        return Answer(criterion, AnswerState.ANSWERED)
    deciding = [g for g in mine if g.blocking] or mine
    if left := [f"“{g.title}”" for g in deciding if g.result is Result.INSUFFICIENT]:
        return Answer(criterion, AnswerState.UNDECIDED, f"not enough evidence for {_listed(left)}")
    return Answer(criterion, AnswerState.ANSWERED)


def demanded(meta: object, where: str) -> tuple[str, ...]:
    """The criteria to which a suite demands answers, from its ``meta``.

    Raises:
        GateError: it names something else, or one twice.
    """
    asked = meta.get(ANSWERS, []) if isinstance(meta, Mapping) else []
    known = isinstance(asked, list) and all(isinstance(x, str) and x in CRITERIA for x in asked)
    if not known or len(set(asked)) < len(asked):
        raise GateError(
            f"meta.{ANSWERS} does not name criteria",
            where=where,
            expected=f"a list of some of {', '.join(CRITERIA)}, each once",
            fix="correct the suite; `sensitive` shows how it is done",
        )
    return tuple(asked)


def answers_result(
    asked: Sequence[str], outcomes: Sequence[AuditOutcome], results: Sequence[GateResult]
) -> GateResult:
    """The gate of a suite that demands answers: it never fails, since what is unknown proves nothing."""
    open_ = [a for a in answers(outcomes, results) if a.criterion in asked and a.reason]
    words = "; ".join(f"{a.criterion}: {a.state}, {a.reason}" for a in open_)
    return GateResult(
        gate=ANSWERS,
        title=_TITLE,
        result=Result.INSUFFICIENT if open_ else Result.PASS,
        blocking=True,
        reason=_REASON,
        explanation=f"{words}." if open_ else f"Answered: {_listed(asked)}.",
        advice="See what the gates on these audits lack, and add audits that the plan leaves out."
        if open_
        else "",
    )


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
