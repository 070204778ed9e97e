"""What remains for people: by criterion, in four paragraphs of an assessment, and what is not known."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from synth_audit.findings.measurement import Measurement, is_share
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.plugins.audit import Status
from synth_audit.report import words
from synth_audit.report.chapters import unmeasured
from synth_audit.report.gates import GateView, counted_share, gates_of
from synth_audit.report.known_answer import DETECTION_LIMIT, detection_limits
from synth_audit.store.evidence import Evidence
from synth_audit.text import listed, shortened
from synth_audit.verdict.comparison import change
from synth_audit.verdict.criteria import Answer, AnswerState, answers

MOST_WORDS = 60
"""Words of a paragraph: an annex of an impact assessment is read, not studied."""

_MOST_NAMED = 3
"""Attacks named for a criterion, and audits without a result; the report has them all."""

_MOST_NOTES = 2
"""Notes of an audit on its flag, one for each column; the report has them all."""

_MOST_LETTERS = 80
"""Letters of a text of the plan within a paragraph; the scope shows it whole."""


@dataclass(frozen=True)
class ResidualRisk:
    """One question about people: what became of it, and what remains.

    Attributes:
        gate: of those on it that decide (of all, where none does), and failed where any did, the one whose
            number comes nearest to its limit, of numbers that count people where there are any; None where no
            number was judged.
        share: the number as a share beyond chance; None where it is none, or decides nothing.
        copied: the share of copied rows that would give the number, where the known-answer check knows it.
        found_from: from which share of the people on its audit finds a leak, where it states that.
        compared: the number against the last release.
    """

    answer: Answer
    evidence: Evidence
    gate: GateView | None = None
    share: Measurement | None = None
    copied: Measurement | None = None
    found_from: float = math.nan
    compared: str = ""

    @property
    def why(self) -> str:
        """Why that is open, or that nothing follows from it."""
        if self.gate is not None and self.gate.unusable:
            return self.gate.cause
        return words.sentence(self.answer.remark)

    @property
    def finding(self) -> str:
        """The number in words, without its limit, and what else is known of it.

        That is as how many copied rows it counts, and unless the table is refused, from how many people on a
        leak would have been found.
        """
        if self.gate is None or self.gate.unusable:
            return ""
        told = f"{words.sentence(finding_of(self.gate))} {self.gate.columns}".strip()
        if self.as_if:
            told += f" It is as if {self.as_if} of the rows were copies of training records."
        if self.shows_leaks and not _is_limit(self.gate):
            least, _ = words.least_leak(self.found_from, self.evidence)
            told += f" {words.found(f'{least:,} people or more')}"
        return told

    @property
    def people(self) -> str:
        """How many people, or what else it counts: ``none to 1,285 of 9,758 people``."""
        return "–" if self.share is None else counted_share(self.share, self.evidence)

    @property
    def as_if(self) -> str:
        """``0 to 3 %``: of the rows, had they been copied, to give the number; cut at none and all.

        Empty where that is unknown, or no more than the number itself says, and on a refusal, whose copies
        are counted.
        """
        if self.evidence.verdict is Result.FAIL:
            return ""
        judged = self.gate.measured if self.gate else None
        told = words.cut_share(self.copied) if self.copied else ""
        same = judged is not None and is_share(judged.unit) and told == words.cut_share(judged)
        return "" if same else told

    @property
    def shows_leaks(self) -> bool:
        """Whether it is worth saying from how many people on a leak would have been found."""
        refused = self.evidence.verdict is Result.FAIL
        return not refused and math.isfinite(self.found_from) and self.found_from < 1


def residual_risks(evidence: Evidence, previous: Evidence | None = None) -> tuple[ResidualRisk, ...]:
    """One for each criterion, in their order.

    Args:
        previous: evidence of the last release before this one.
    """
    return tuple(
        _risk(answer, gates_on(evidence, answer.criterion), evidence, previous)
        for answer in answers(evidence.outcomes, evidence.gates.results)
    )


def gates_on(evidence: Evidence, criterion: str) -> list[GateView]:
    """Gates on the audits that are about a criterion, in the order of the suite."""
    about = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == criterion}
    return [g for g in gates_of(evidence) if g.result.measurement and g.result.measurement.audit in about]


def _risk(
    answer: Answer, gates: Sequence[GateView], evidence: Evidence, previous: Evidence | None
) -> ResidualRisk:
    decide = [g for g in gates if g.result.blocking] or gates
    failed = [g for g in decide if g.result.result is Result.FAIL]
    judged = nearest_first(failed or decide)
    if not judged:
        return ResidualRisk(answer, evidence)
    # A number that decides nothing is no residual risk.
    usable = [g for g in judged if not g.unusable]
    gate = next((g for g in usable if g.share is not None), (usable or judged)[0])
    measured, share = gate.measured, gate.share
    if measured is None or gate.unusable:
        return ResidualRisk(answer, evidence, gate)
    return ResidualRisk(
        answer,
        evidence,
        gate,
        share,
        _equivalent(measured, evidence.measurements),
        _found_from(evidence, measured.id.audit),
        _compared(measured, share, previous),
    )


def _compared(now: Measurement, share: Measurement | None, previous: Evidence | None) -> str:
    """``not distinguishable: was none to 43``, in people where it counts them; empty without a release."""
    before = next((m for m in previous.measurements if m.id == now.id), None) if previous else None
    if previous is None or before is None or share is not now or not before.finite:
        return words.compared(now, previous)
    return f"{change(now, before)}: was {counted_share(before, previous)}"


def _found_from(evidence: Evidence, audit: str) -> float:
    stated = (m for m in evidence.measurements if m.id.quantity == DETECTION_LIMIT and not m.id.setting)
    return next((m.value for m in stated if m.id.audit == audit and m.finite), math.nan)


def finding_of(gate: GateView) -> str:
    """What a gate found, without its limit and a full stop: an alarm level stands in the annex.

    Of a flag it is what the audit notes on it, which names columns and what to do.
    """
    about = gate.result.measurement
    if about is None or gate.unusable:
        return gate.sentence
    if about.quantity == DETECTION_LIMIT and gate.result.value is not None:
        return _only_from(gate.result.value, gate.evidence)
    notes = next((o.notes for o in gate.evidence.outcomes if o.audit == about.audit), ())
    if gate.unit == "flag" and gate.result.result is Result.FAIL and notes:
        return words.sentence("; ".join(notes[-_MOST_NOTES:]), end="").rstrip(".")
    return gate.sentence.partition("; ")[0]


def _only_from(share: float, evidence: Evidence) -> str:
    if share >= 1:
        return "No size of a leak is established from which it would have been found"
    least, _ = words.least_leak(share, evidence)
    return f"Only a leak of {least:,} people or more would surely have been found"


def nearest_first(gates: Sequence[GateView]) -> list[GateView]:
    """Gates whose number is known, the one that comes nearest to its limit first."""
    known = [
        (used(g.result, m), g) for g in gates if (m := g.measured) is not None and math.isfinite(m.value)
    ]
    return [gate for _, gate in sorted(known, key=lambda pair: -pair[0])]


def used(gate: GateResult, measured: Measurement) -> float:
    """How much of the room from reference to limit the worse end of the interval takes: 1 at the limit."""
    start = measured.reference.value if measured.reference else 0.0
    ends = [
        (limit, end if gate.bound != "value" and end is not None else gate.value)
        for limit, end in ((gate.maximum, gate.high), (gate.minimum, gate.low))
        if limit is not None
    ]
    return max((_part(start, limit, end) for limit, end in ends if end is not None), default=-math.inf)


def _part(start: float, limit: float, end: float) -> float:
    room, taken = limit - start, end - start
    if room:
        return taken / room
    return math.inf if taken else 0.0


def _equivalent(m: Measurement, others: Sequence[Measurement]) -> Measurement | None:
    alike = (x for x in others if x.id.quantity == LEAK_EQUIVALENT.name and x.id.derived_from == m.id)
    return next((x for x in alike if math.isfinite(x.value)), None)


def _is_limit(gate: GateView | None) -> bool:
    about = gate.result.measurement if gate else None
    return about is not None and about.quantity == DETECTION_LIMIT


class LeakFound(NamedTuple):
    """A class of leak, what it means, and from how many people on and which share it would be found."""

    name: str
    meaning: str
    people: int
    share: float


def found_from(evidence: Evidence) -> tuple[LeakFound, ...]:
    """By class of leak, from how many people on it would have been found; empty where that is unknown."""
    return tuple(
        LeakFound(*leak, *words.least_leak(share, evidence))
        for leak, share in detection_limits(evidence).items()
        if share < 1
    )


def not_measured(evidence: Evidence, risks: Sequence[ResidualRisk]) -> tuple[str, ...]:
    """What a signature does not rest on: open criteria, leaks that would hide, audits without a result."""
    open_ = [r.answer.warning for r in risks if r.answer.warning]
    refused = evidence.verdict is Result.FAIL  # what a leak would have to be is no question then
    unknown = [leak for leak, share in detection_limits(evidence).items() if share >= 1 and not refused]
    hidden = [f"{x.title} ({x.meaning})" if x.meaning else x.title for x in unknown]
    leaks = f"{listed(hidden)}: no detection limit, so a leak of any size may have been missed."
    silent = [
        f"{o.info.title if o.info else o.audit}: {words.sentence(o.reason)}"
        for o in evidence.outcomes
        if o.status is not Status.MEASURED
    ]
    more = f"{words.counted(len(silent) - _MOST_NAMED, 'more audit')} without a result, see the report."
    return (
        *open_,
        *(f"{name}: no audit of it gave a number." for name in unmeasured(evidence)),
        *([leaks] if hidden else ()),
        *silent[:_MOST_NAMED],
        *([more] if len(silent) > _MOST_NAMED else ()),
        *filter(None, [words.identifiers(evidence)]),
        words.UNTRIED,
    )


def assessment(evidence: Evidence, risks: Sequence[ResidualRisk]) -> tuple[tuple[str, str], ...]:
    """Four paragraphs, each of at most :data:`MOST_WORDS` words, with what each is about.

    Attack assumed, what was tried, result in people, and residual risk with measure and owner.

    Args:
        risks: of the criteria, in their order.
    """
    review: Mapping[str, Any] = evidence.plan.get("review") or {}
    paragraphs = {
        "Attack assumed": _assumed(risks, review),
        "What was tried": _tried(evidence),
        "Result in people": _result(evidence, risks),
        "Residual risk, measure, owner": _residual(evidence, risks, review),
    }
    return tuple((title, _limited(" ".join(sentences))) for title, sentences in paragraphs.items())


def _limited(text: str) -> str:
    found = text.split(" ")
    return text if len(found) <= MOST_WORDS else " ".join([*found[: MOST_WORDS - 1], "…"])


def _assumed(risks: Sequence[ResidualRisk], review: Mapping[str, Any]) -> Iterator[str]:
    yield "An adversary holds the release and knows true facts about people."
    aims = [words.AIMS[r.answer.criterion] for r in risks if r.answer.state is not AnswerState.NOT_TESTED]
    yield f"The adversary tries {listed(aims)}." if aims else "No attack on people was part of this run."
    yield f"Recipient: {_plain(review, 'recipient')}. Environment: {_plain(review, 'environment')}."


def _tried(evidence: Evidence) -> Iterator[str]:
    attacks: dict[str, list[str]] = {}
    for o in evidence.outcomes:
        if o.info is not None and o.info.risk in words.AIMS and o.status is Status.MEASURED:
            attacks.setdefault(o.info.risk, []).append(f"“{shortened(o.info.title, _MOST_LETTERS)}”")
    if not attacks:
        yield "No attack gave a result."
        return
    for criterion in words.AIMS:
        named = attacks.get(criterion, [])
        more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
        if named:
            yield f"{criterion.capitalize()}: {listed([*named[:_MOST_NAMED], *more])}."
    control = evidence.tables.get("control")
    if control is not None:
        yield f"A success that {control.rows:,} control people share does not count."


def _result(evidence: Evidence, risks: Sequence[ResidualRisk]) -> Iterator[str]:
    found = (f"{r.answer.criterion}, {r.answer.state if r.share is None else r.people}" for r in risks)
    yield words.sentence("; ".join(found))
    yield f"Ranges are confidence intervals of at least {words.percent_level(evidence.level)}."
    for r in [r for r in risks if r.shows_leaks][:1]:
        least, _ = words.least_leak(r.found_from, evidence)
        yield words.found(f"{least:,} people or more")


def _residual(evidence: Evidence, risks: Sequence[ResidualRisk], review: Mapping[str, Any]) -> Iterator[str]:
    for state in AnswerState:
        if mine := [r.answer.criterion for r in risks if r.answer.state is state]:
            yield f"{state.capitalize()}: {listed(mine)}."
    measures = _measures(evidence, review)
    unproven = evidence.generator.privacy.guarantee is None
    yield f"Measures in the plan: {listed(measures) if measures else 'none'}."
    if unproven:
        yield "No mathematical guarantee limits what the release reveals: attacks not tried may find more."
    yield f"Owner: {_plain(review, 'owner')}. Reviewer: {_plain(review, 'reviewer')}."
    on = review.get("review_on")
    yield f"Next review: {words.moment(str(on)) if on else words.NOT_STATED}."


def _measures(evidence: Evidence, review: Mapping[str, Any]) -> list[str]:
    """What the plan and the generator do about the risk, as recorded in the evidence."""
    guarantee, plan = evidence.generator.privacy.guarantee, evidence.plan
    measures = []
    if guarantee:
        measures.append(
            f"differential privacy (privacy budget {words.privacy_loss(guarantee.epsilon, guarantee.delta)})"
        )
    if coarse := (plan.get("coarsen") or {}).get("columns"):
        measures.append(f"{words.counted(len(coarse), 'column')} coarsened")
    if approvals := (plan.get("release") or {}).get("approvals"):
        measures.append(words.counted(approvals, "approval"))
    if reports := review.get("reports"):
        measures.append(f"at most {words.counted(reports, 'report')}")
    return measures


def _plain(review: Mapping[str, Any], key: str) -> str:
    return shortened(str(review.get(key) or words.NOT_STATED), _MOST_LETTERS).rstrip(".")
