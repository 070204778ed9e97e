"""What is left of each risk to people: its number nearest to a limit, in percent and in people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.core.measurement import Measurement
from synth_audit.core.sensitivity import LEAK_EQUIVALENT
from synth_audit.core.verdict import GateResult
from synth_audit.judging.criteria import Answer, answers
from synth_audit.report import words
from synth_audit.store.evidence import Evidence


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
