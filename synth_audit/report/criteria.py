"""The certificate's tables: questions about people, what remains, guidelines, and detection limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synth_audit.build import resource_folder
from synth_audit.files import load_yaml
from synth_audit.findings.measurement import Measurement
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP
from synth_audit.findings.verdict import GateResult
from synth_audit.report import words
from synth_audit.report.audits import has_numbers
from synth_audit.report.gates import GateView, gates_of
from synth_audit.report.known_answer import MeasurementSensitivity, sensitivities, sensitivity_line, sharpest
from synth_audit.report.view import SensitivityLine
from synth_audit.report.words import compared
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.criteria import CRITERIA, Answer, AnswerState, answers

DETECTION_LIMIT = "detection_limit"
"""The quantity by which an audit states from which share of the people on it finds a class of leak."""
FILE = "demands.yaml"


@dataclass(frozen=True)
class DemandRow:
    """One demand of a guideline: measured or not, where or why not, and what became of its criterion."""

    framework: str
    demand: str
    measured: bool
    where: str
    answer: Answer | None


@dataclass(frozen=True)
class ResidualRisk:
    """One question about people: what became of it, and what remains.

    Attributes:
        gate: of those on it that decide (of all, where none does) the one whose number comes nearest to its
            limit; None where no number was judged.
        share: the number as a share of people, with its interval; a number that is none is restated as the
            share of copied rows that would give it. None where that is not known either, or where it decides
            nothing.
        compared: the number against the last release.
    """

    answer: Answer
    evidence: Evidence
    gate: GateView | None = None
    share: Measurement | None = None
    compared: str = ""

    @property
    def kind(self) -> str:
        """Its state, as of a sign."""
        return {AnswerState.WITHIN: "pass", AnswerState.BEYOND: "fail"}.get(self.answer.state, "open")

    @property
    def why(self) -> str:
        """Why that is open, or that nothing follows from it."""
        advice = self.gate is not None and not self.gate.result.blocking
        return words.sentence(self.answer.reason or ("Advice only: no gate on it decides" if advice else ""))

    @property
    def finding(self) -> str:
        """The number in words."""
        return words.sentence(self.gate.sentence.partition(";")[0]) if self.gate else ""

    @property
    def percent(self) -> str:
        """``1.5 % (0 to 3.3 %)``: a share beyond chance, cut at none and all for reading."""
        m = self.share
        if m is None:
            return "–"
        copied = " of rows like copies" if m.id.quantity == LEAK_EQUIVALENT.name else ""
        value = _cut(m.value)
        if m.interval is None:
            return words.number(value, m.unit) + copied
        low, high = _cut(m.interval.low), _cut(m.interval.high)
        places = max(1, words.decimals(m.unit, value, low=low, high=high))
        span = words.interval(low, high, m.unit, places)
        return f"{words.number(value, m.unit, places)} ({span}){copied}"

    @property
    def people(self) -> str:
        """The share in people: ``none to 1,285``."""
        if self.share is None:
            return "–"
        if self._of_subgroup:  # how many people that has is not told
            return "of those in one subgroup"
        rows, few, span = train_rows(self.evidence), self.evidence.suppression, self.share.interval
        if span is None:
            return people(self.share.value, rows, few)
        return people_interval(span.low, span.high, rows, few)

    @property
    def allowed_people(self) -> str:
        """Its limit in people, where the number that was judged counts them."""
        gate = self.gate
        if gate is None or self.share is None or self.share is not gate.measured or self._of_subgroup:
            return ""
        most, rows = gate.result.maximum, train_rows(self.evidence)
        return "" if most is None else people(most, rows, self.evidence.suppression)

    @property
    def _of_subgroup(self) -> bool:
        return self.share is not None and self.share.id.quantity.startswith(WORST_SUBGROUP.name)


def residual_risks(evidence: Evidence, previous: Evidence | None = None) -> tuple[ResidualRisk, ...]:
    """One for each criterion, in their order.

    Args:
        previous: evidence of the last release before this one.
    """
    gates = [g for g in gates_of(evidence) if g.result.measurement is not None]
    found = []
    for answer in answers(evidence.outcomes, evidence.gates.results):
        about = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == answer.criterion}
        mine = [g for g in gates if g.result.measurement.audit in about]
        judged = nearest_first([g for g in mine if g.result.blocking] or mine)
        if not judged:
            found.append(ResidualRisk(answer, evidence))
            continue
        measured = judged[0].measured
        assert measured is not None
        if judged[0].unusable:  # a number that decides nothing is no residual risk
            found.append(ResidualRisk(answer, evidence, judged[0]))
            continue
        share = _as_share(measured, evidence.measurements)
        found.append(ResidualRisk(answer, evidence, judged[0], share, compared(measured, previous)))
    return tuple(found)


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


def _cut(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _as_share(m: Measurement, others: Sequence[Measurement]) -> Measurement | None:
    """The number itself where it is a share beyond chance, else what it comes to in copied rows."""
    if m.unit == "share" and m.reference is not None and m.reference.value == 0:
        return m
    alike = (x for x in others if x.id.quantity == LEAK_EQUIVALENT.name and x.id.derived_from == m.id)
    return next((x for x in alike if math.isfinite(x.value)), None)


def train_rows(evidence: Evidence) -> int:
    """How many records the generator learnt from."""
    return evidence.tables["train"].rows if "train" in evidence.tables else 0


def frameworks() -> tuple[Mapping[str, Any], ...]:
    """The guidelines with their demands, as they stand in the file."""
    text = (resource_folder("reports_templates") / FILE).read_text(encoding="utf-8")
    return tuple(load_yaml(text))


def demand_rows(evidence: Evidence, said: Mapping[str, str]) -> tuple[DemandRow, ...]:
    """Each demand: measured or not, and where.

    Args:
        said: by section, where it stands; a section that says nothing is left out.
    """
    asked = {a.criterion: a for a in answers(evidence.outcomes, evidence.gates.results)}
    return tuple(
        DemandRow(
            framework["name"] if i == 0 else "",
            d["demand"],
            *_measured(d, evidence, said),
            asked.get(d.get("criterion")),
        )
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


def sharpness(evidence: Evidence) -> tuple[str, ...]:
    """What a leak would have had to be to stay unseen, in a sentence or two."""
    if limits := detection_limits(evidence):
        return limits
    found = sensitivities(evidence)
    line, best = sensitivity_line(evidence, found), sharpest([w for w in found if w.decides])
    told = [" ".join(filter(None, (line.text, line.warning)))]
    if best is not None and best.least is not None and best.least > 0 and "synthetic" in evidence.tables:
        rows = evidence.tables["synthetic"].rows
        told.append(f"That is {people(best.least, rows, evidence.suppression)} of {rows:,} rows.")
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
