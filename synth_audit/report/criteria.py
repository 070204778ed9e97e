"""The certificate's tables: questions about people, what remains, guidelines, and detection limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from synth_audit.build import resource_folder
from synth_audit.files import load_yaml
from synth_audit.findings.measurement import Measurement
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.report import words
from synth_audit.report.audits import has_numbers
from synth_audit.report.gates import Outcomes
from synth_audit.report.sensitivity import MeasurementSensitivity, sensitivities, sensitivity_line, sharpest
from synth_audit.report.view import GateView, SensitivityLine
from synth_audit.report.words import compared
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.criteria import CRITERIA, Answer, AnswerState, answers

DETECTION_LIMIT = "detection_limit"
"""The quantity by which an audit states from which share of the people on it finds a class of leak."""
FILE = "demands.yaml"
_KINDS = {AnswerState.ANSWERED: "pass", AnswerState.UNDECIDED: "open", AnswerState.NOT_ASKED: "open"}


@dataclass(frozen=True)
class CriterionRow:
    """One question about people.

    Attributes:
        state: answered, undecided or not asked; ``kind`` as of a sign. why: where it is not answered.
        finding: the number that comes nearest to its limit, in words.
        share, people: what is left, with interval. allowed, allowed_people: its limit.
        compared: against the last release.
    """

    criterion: str
    kind: str
    state: str
    why: str
    finding: str = ""
    share: str = "–"
    people: str = "–"
    allowed: str = "–"
    allowed_people: str = ""
    compared: str = ""


@dataclass(frozen=True)
class DemandRow:
    """One demand of a guideline: measured or not, and where or why not."""

    framework: str
    demand: str
    measured: bool
    where: str


@dataclass(frozen=True)
class SignatureRow:
    """One approval; ``doubt`` says why it would not count, and is empty where nothing is known against it."""

    by: str
    signed: str
    until: str
    note: str
    key: str
    doubt: str = ""


@dataclass(frozen=True)
class ResidualRisk:
    """One criterion.

    Attributes:
        gate: of those on it that decide (of all, where none does) the one whose number comes nearest to its
            limit; None where no number was judged.
        share: the number as a share of people, with its interval; a number that is none is restated as the
            share of copied rows that would give it. None where that is not known either.
        of_rows: the share counts copied rows, not people.
    """

    answer: Answer
    gate: GateResult | None = None
    measured: Measurement | None = None
    share: Measurement | None = None

    @property
    def of_rows(self) -> bool:
        """See the class."""
        return self.share is not None and self.share.id.quantity == LEAK_EQUIVALENT.name


def residual_risks(evidence: Evidence) -> tuple[ResidualRisk, ...]:
    """One for each criterion, in their order."""
    results = evidence.gates.results
    return tuple(_residual(a, evidence) for a in answers(evidence.outcomes, results))


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


def people(share: float, rows: int, suppression: int) -> str:
    """A share of people as their number: none below nothing, and none that is small is told apart."""
    count = share * rows
    if count <= 0:
        return "none"
    if count < suppression:
        return f"fewer than {suppression}"
    return f"{min(round(count), rows):,}"


def people_interval(low: float, high: float, rows: int, suppression: int) -> str:
    """``none to 1,285``."""
    ends = people(low, rows, suppression), people(high, rows, suppression)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def percent(m: Measurement) -> str:
    """``1.5 % (0 to 3.3 %)``: a share beyond chance, cut at none and all for reading."""
    value = _cut(m.value)
    if m.interval is None:
        return words.number(value, m.unit)
    low, high = _cut(m.interval.low), _cut(m.interval.high)
    places = max(1, words.decimals(m.unit, value, low=low, high=high))
    return f"{words.number(value, m.unit, places)} ({words.interval(low, high, m.unit, places)})"


def _cut(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _residual(answer: Answer, evidence: Evidence) -> ResidualRisk:
    audits = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == answer.criterion}
    measured = {m.id: m for m in evidence.measurements if math.isfinite(m.value)}
    mine = [g for g in evidence.gates.results if g.measurement and g.measurement.audit in audits]
    deciding = [g for g in mine if g.blocking] or mine
    judged = [(g, measured[g.measurement]) for g in deciding if g.measurement in measured]
    if not judged:
        return ResidualRisk(answer)
    gate, number = max(judged, key=lambda pair: used(*pair))
    return ResidualRisk(answer, gate, number, _as_share(number, tuple(measured.values())))


def _as_share(m: Measurement, others: Sequence[Measurement]) -> Measurement | None:
    """The number itself where it is a share beyond chance, else what it comes to in copied rows."""
    if m.unit == "share" and m.reference is not None and m.reference.value == 0:
        return m
    return next(
        (x for x in others if x.id.quantity == LEAK_EQUIVALENT.name and x.id.derived_from == m.id), None
    )


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


def frameworks() -> tuple[Mapping[str, Any], ...]:
    """The guidelines with their demands, as they stand in the file."""
    text = (resource_folder("reports_templates") / FILE).read_text(encoding="utf-8")
    return tuple(load_yaml(text))


def demand_rows(evidence: Evidence, said: Mapping[str, str]) -> tuple[DemandRow, ...]:
    """Each demand: measured or not, and where.

    Args:
        said: by section, where it stands; a section that says nothing is left out.
    """
    return tuple(
        DemandRow(framework["name"] if i == 0 else "", d["demand"], *_measured(d, evidence, said))
        for framework in frameworks()
        for i, d in enumerate(framework["demands"])
    )


def _measured(demand: Mapping[str, Any], evidence: Evidence, said: Mapping[str, str]) -> tuple[bool, str]:
    """Whether it is measured or stated, and where; else why not."""
    if where := said.get(demand.get("section", "")):
        return True, where
    asked = _audits(demand, evidence)
    measured = [o.info.title for o in evidence.outcomes if o.audit in asked and o.info and has_numbers(o)]
    if measured:
        return True, f"Annex: {', '.join(measured)}"
    return False, demand.get("open", "no audit of this run measures it")


def _audits(demand: Mapping[str, Any], evidence: Evidence) -> set[str]:
    criterion = demand.get("criterion")
    assert criterion is None or criterion in CRITERIA
    about = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == criterion}
    return about if criterion else set(demand.get("audits", ()))


def sharpness(evidence: Evidence, gates: Sequence[GateView]) -> tuple[str, ...]:
    """What a leak would have had to be to stay unseen, in two or three sentences."""
    if limits := detection_limits(evidence):
        return limits
    found = sensitivities(evidence, gates)
    line = sensitivity_line(evidence, found)
    relied = [w for w in found if w.decides]
    best, widest = sharpest(relied), _widest(relied)
    told = [" ".join(filter(None, (line.text, line.warning)))]
    if best is not None and best.least is not None and best.least > 0 and "synthetic" in evidence.tables:
        rows = evidence.tables["synthetic"].rows
        told.append(f"That is {people(best.least, rows, evidence.suppression)} of {rows:,} rows.")
    if best is not None and widest is not None and best is not widest:
        told.append(_bridge(best, widest))
    return tuple(told)


def detection_limits(evidence: Evidence) -> tuple[str, ...]:
    """From which share of the people on each class of leak is found; empty where nobody measured it."""
    limits = {
        m.id.setting.replace("_", " "): m.value
        for m in evidence.measurements
        if m.id.quantity == DETECTION_LIMIT and m.id.setting and m.finite
    }
    known = {name: share for name, share in limits.items() if share < 1}
    told = []
    if known:
        shares = ", ".join(f"{name} {words.number(share, 'share')}" for name, share in known.items())
        told.append(
            "A leak would have been found, with 95 % probability, from these shares of the training people "
            f"on: {shares}. A smaller one may be there unseen."
        )
    if left := [name for name in limits if name not in known]:
        told.append(f"No such share is established for: {', '.join(left)}.")
    return tuple(told)


def first_line(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> SensitivityLine:
    """What would have been found, in one line: the detection limit, or else what known answers say."""
    limit = next(
        (m.value for m in evidence.measurements if m.id.quantity == DETECTION_LIMIT and not m.id.setting),
        None,
    )
    if limit is None:
        return sensitivity_line(evidence, found)
    if limit >= 1:
        return SensitivityLine("open", detection_limits(evidence)[-1])
    share = words.number(limit, "share")
    text = f"Had {share} of the people left a trace in a row each, this audit would have found it with 95 % "
    return SensitivityLine("pass", f"{text}probability.")


def _widest(relied: Sequence[MeasurementSensitivity]) -> MeasurementSensitivity | None:
    """The one whose number, taken alone, is compatible with the most copied rows."""
    known = [
        (w.restated.interval.high, i) for i, w in enumerate(relied) if w.restated and w.restated.interval
    ]
    known = [pair for pair in known if math.isfinite(pair[0])]
    return relied[max(known)[1]] if known else None


def _bridge(best: MeasurementSensitivity, widest: MeasurementSensitivity) -> str:
    restated = widest.restated
    assert restated is not None
    assert restated.interval is not None
    most = words.behaves_like(restated.value, restated.interval.low, restated.interval.high)
    return (
        f"These two numbers go together: {best.audit_title} ({best.name}) is the sharpest instrument and "
        f"sets the smallest leak that shows. {widest.audit_title} ({widest.name}) is the bluntest: by itself "
        f"it says no more than that {most}, which is how little it can tell and not how much was found. A "
        "leak of that size would have to be of a kind that the sharper ones do not see."
    )
