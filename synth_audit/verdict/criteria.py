"""Gates that no suite lists; which questions about people were answered, and whether a release is fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from synth_audit import registry
from synth_audit.errors import PlanError, PluginError
from synth_audit.findings.verdict import FITNESS, GateResult, Result
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Status
from synth_audit.text import listed
from synth_audit.verdict import insufficient_evidence as lacking

CRITERIA = ("singling out", "linkability", "inference", "membership")
"""The three criteria of data protection authorities for anonymity (WP29 opinion 05/2014), and membership."""

FITNESS_BLOCKS = "fitness_blocks"
"""The key under a suite's ``meta`` that says whether a release that is not fit stays in."""

When = Literal["", "always", "target", "no target"]
"""When a gate decides fitness: never, always, where the plan names a target, or where it names none."""

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


class AnswerState(StrEnum):
    """What became of a question: it has one of these, never two. They are listed in this order."""

    BEYOND = "beyond limit"
    INSUFFICIENT = "insufficient evidence"
    NOT_TESTED = "not tested"
    WITHIN = "within limit"


@dataclass(frozen=True)
class Answer:
    """One criterion.

    Attributes:
        reason: why it is neither within nor beyond its limit, without a full stop; empty where it is.
        measured: its numbers are known, and only too uncertain to decide it.
        advisory: no gate on it decides, so that its limit stops no release.
    """

    criterion: str
    state: AnswerState
    reason: str = ""
    measured: bool = False
    advisory: bool = False

    @property
    def kind(self) -> str:
        """``pass``, ``fail`` or ``open``, as of a sign; a limit that only warns is no failure."""
        if self.state is AnswerState.BEYOND and not self.advisory:
            return "fail"
        return "pass" if self.state is AnswerState.WITHIN else "open"

    @property
    def remark(self) -> str:
        """The reason, or that nothing follows from the state; without a full stop."""
        return self.reason or ("this limit only warns and stops no release" if self.advisory else "")

    @property
    def warning(self) -> str:
        """What a reader of the verdict must know first; empty where the state is within or beyond."""
        name = self.criterion.capitalize()
        if self.state is AnswerState.INSUFFICIENT:
            told = lacking.QUESTION_OPEN if self.measured else lacking.QUESTION_UNMEASURED
            return told.format(criterion=name)
        return f"{name} was not tested." if self.state is AnswerState.NOT_TESTED else ""


def answers(outcomes: Sequence[AuditOutcome], results: Sequence[GateResult]) -> tuple[Answer, ...]:
    """What became of each of the :data:`CRITERIA`, from the gates on the audits that are about it.

    It follows from the gates on it that decide, or from all where none does. *Beyond limit*: one failed.
    *Insufficient evidence*: one was not decided, as its number was blind, short, absent or too uncertain, or
    as the audit that it judges had no part in the run; or an audit about it ended in an error. *Within
    limit*: all passed. *Not tested*: no gate of the suite is about it, or no audit that ran.

    Args:
        results: of all gates.
    """
    ran = {o.audit: o.info.risk for o in outcomes if o.info is not None}
    judged = {g.measurement.audit for g in results if g.measurement is not None}
    about = ran | {audit: declared_risk(audit) for audit in judged - set(ran)}
    return tuple(_answer(criterion, outcomes, results, about) for criterion in CRITERIA)


def declared_risk(audit: str) -> str | None:
    """What an audit is about that had no part in the run; None where no plug-in here can say."""
    info = declared(audit)
    return None if info is None else info.risk


def declared(audit: str) -> AuditInfo | None:
    """What an audit says of itself; None where it is not installed here, or does not load."""
    try:
        info: AuditInfo = registry.find("audit", audit).info
    except (PlanError, PluginError):
        return None
    return info


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
        return Answer(criterion, AnswerState.NOT_TESTED, "no audit for it was part of this run")
    if not mine:
        silent = all(o.status is not Status.MEASURED for o in audits.values())
        return Answer(
            criterion,
            AnswerState.INSUFFICIENT if silent else AnswerState.NOT_TESTED,
            lacking.NO_RESULT if silent else "it was measured, and no gate of the suite judges it",
        )
    deciding = [g for g in mine if g.blocking] or mine
    advisory = not any(g.blocking for g in mine)
    if any(g.result is Result.FAIL for g in deciding):
        return Answer(criterion, AnswerState.BEYOND, advisory=advisory)
    if left := [g for g in deciding if g.result is Result.INSUFFICIENT]:
        reason = lacking.OPEN_GATES.format(gates=listed([f"“{g.title}”" for g in left]))
        measured = not any(g.unusable for g in left)
        return Answer(criterion, AnswerState.INSUFFICIENT, reason, measured, advisory)
    if broken := [audit for audit, o in audits.items() if o.status is Status.ERROR]:
        return Answer(criterion, AnswerState.INSUFFICIENT, lacking.BROKEN_OFF.format(audits=listed(broken)))
    return Answer(criterion, AnswerState.WITHIN, advisory=advisory)


def answers_result(
    asked: Sequence[str], outcomes: Sequence[AuditOutcome], results: Sequence[GateResult]
) -> GateResult:
    """The gate of a suite that demands answers: it never fails, since what is unknown proves nothing."""
    open_ = [a for a in answers(outcomes, results) if a.criterion in asked and a.reason]
    words = "; ".join(f"{a.criterion}: {a.state}, {a.reason}" for a in open_)
    return own_result(
        ANSWERS,
        Result.INSUFFICIENT if open_ else Result.PASS,
        f"{words}." if open_ else f"Answered: {listed(asked)}.",
        lacking.OPEN_QUESTIONS_ADVICE,
    )


def decides(when: When, *, target: bool) -> bool:
    """Whether a gate decides fitness, given that the plan names a target or none."""
    return when == "always" or when == ("target" if target else "no target")


def fitness_result(results: Sequence[GateResult]) -> GateResult:
    """The blocking gate of a suite whose fitness blocks: as bad as the worst of the gates that decide it."""
    asked = [g for g in results if g.fitness]
    left = [g for g in asked if g.result is not Result.PASS]
    failed = any(g.result is Result.FAIL for g in left)
    words = "; ".join(f"“{g.title}”: {g.result}" for g in left) or f"{len(asked)} gates on usefulness passed"
    return own_result(
        FITNESS,
        Result.FAIL if failed else Result.INSUFFICIENT if left or not asked else Result.PASS,
        f"{words}." if asked else "No audit that decides fitness was part of this run.",
        "See what these gates found, and choose a generator that keeps more." if left else "",
        fitness=True,
    )
