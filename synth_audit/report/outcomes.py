"""What a gate found, as one sentence: the finding and what is allowed, never the wish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Measurement
from synth_audit.core.verdict import GateResult, Result
from synth_audit.judging.criteria import ANSWERS
from synth_audit.judging.limit import in_brackets
from synth_audit.judging.schema_contract import contract_part
from synth_audit.judging.table_checks import CONTRACT
from synth_audit.report import words
from synth_audit.report.measurement_sensitivity import quantity_texts
from synth_audit.report.result_marks import RESULT_WORDS
from synth_audit.report.suite_overview import units_of
from synth_audit.store.evidence import Evidence

_FROM_MANY = (ANSWERS,)
"""Gates that follow from several numbers, whose explanation says it best."""


@dataclass(frozen=True)
class Outcomes:
    """Sentences about the gates of one piece of evidence.

    Attributes:
        findings: by gate, what the suite says of a finding, with ``{value}`` (in its unit), ``{percent}`` and
            ``{column}`` (the worst one) in their places.
    """

    evidence: Evidence
    findings: Mapping[str, str]
    units: Mapping[MeasurementId, str]
    measured: Mapping[MeasurementId, Measurement]

    @classmethod
    def of(cls, evidence: Evidence) -> Outcomes:
        """Those of this evidence, in the words of the suite that judged it."""
        metas = [x.get("meta", {}) for x in evidence.gates.suite.get("expectations", ())]
        found = {m["id"]: m["finding"] for m in metas if isinstance(m.get("finding"), str)}
        return cls(evidence, found, units_of(evidence), {m.id: m for m in evidence.measurements})

    def sentence(self, gate: GateResult) -> str:
        """``2.1 % of the rows are copies of real records; 2 % allowed``, without a full stop."""
        if gate.gate == CONTRACT:
            return self._contract(gate)
        explained = self._named(gate)
        unusable = gate.result is Result.INSUFFICIENT and explained != gate.explanation
        if gate.measurement is None or gate.value is None or gate.gate in _FROM_MANY or unusable:
            return words.sentence(explained, end="").rstrip(".")
        told = "; ".join(filter(None, (self._finding(gate, gate.measurement), self.allowed(gate))))
        return f"{told}, and the interval reaches beyond it" if _reaches_beyond(gate) else told

    def told(self, gate: GateResult) -> str:
        """The same behind its result."""
        return f"{RESULT_WORDS[gate.result]}: {self.sentence(gate)}"

    def unit(self, about: MeasurementId) -> str:
        """Unit of a measurement."""
        return self.units.get(about.whole, "")

    def allowed(self, gate: GateResult) -> str:
        """The limit in the words of permission."""
        if gate.maximum is None:
            return f"{self.limit(gate)} needed" if gate.minimum is not None else ""
        most = words.number(gate.maximum, self._shown_unit(gate))
        return f"{most if gate.minimum is None else self.limit(gate)} allowed"

    def limit(self, gate: GateResult) -> str:
        """``at most 2 %``."""
        return words.limits(gate.minimum, gate.maximum, self._shown_unit(gate))

    def _named(self, gate: GateResult) -> str:
        """The explanation with its measurement called by its titles; it is named where it cannot be used."""
        about, text = gate.measurement, gate.explanation
        for x in () if about is None else filter(None, (about, about.derived_from)):
            if outcome := next((o for o in self.evidence.outcomes if o.audit == x.audit), None):
                label = f" ({x.label})" if x.label else ""
                audit = f" of “{outcome.info.title}”" if outcome.info else ""
                plain = f"“{quantity_texts(outcome, x)[0]}{label}”{audit}"
                for technical in (str(x), f"{x.name}{in_brackets(x)}"):
                    text = text.replace(technical, plain)
        return text

    def _shown_unit(self, gate: GateResult) -> str:
        if "{percent}" in self.findings.get(gate.gate, ""):
            return "share"
        return self.unit(gate.measurement) if gate.measurement else ""

    def _finding(self, gate: GateResult, about: MeasurementId) -> str:
        unit, text = self.unit(about), self.findings.get(gate.gate, "")
        if not text:
            outcome = next((o for o in self.evidence.outcomes if o.audit == about.audit), None)
            title = quantity_texts(outcome, about)[0] if outcome else about.quantity.replace("_", " ")
            text = f"{title}{f' ({about.label})' if about.label else ''}: {{value}}"
        filled = text.replace("{value}", self._value(gate, about, unit))
        filled = filled.replace("{percent}", self._value(gate, about, "share"))
        return words.sentence(filled.replace("{column}", self._column(gate, about)), end="")

    def _value(self, gate: GateResult, about: MeasurementId, unit: str) -> str:
        """Less than nothing beyond chance is none; a gate that asks for a least value says it as it is."""
        value, low, high, found = gate.value, gate.low, gate.high, self.measured.get(about)
        excess = found is not None and found.reference is not None and found.reference.value == 0
        if unit == "share" and excess and gate.minimum is None:
            value, low, high = (None if x is None else max(x, 0.0) for x in (value, low, high))
        if not value and gate.result is not Result.INSUFFICIENT:
            return words.number(value, unit)
        places = words.decimals(unit, value, low=low, high=high)
        open_ = gate.result is Result.INSUFFICIENT
        for limit in (gate.minimum, gate.maximum):
            for end in (value, low, high) if open_ else (value,):
                places = words.telling_apart(places, unit, end, limit)
        told = words.number(value, unit, places)
        if open_ and low is not None and high is not None:
            told += f" ({words.interval(low, high, unit, places)})"  # which is why it is open
        return told

    def _column(self, gate: GateResult, about: MeasurementId) -> str:
        """The column that a worst number is about: its own, or the one whose number it is."""
        unit = self.unit(about)
        alike = (m for m in self.evidence.measurements if m.id.audit == about.audit and m.unit == unit)
        worst = (m.id.column for m in alike if m.id.column and m.value == gate.value)
        found = about.column or next(worst, "")
        return f"column {found}" if found else "the worst column"

    def _contract(self, gate: GateResult) -> str:
        mine = [c for c in self.evidence.table_checks if contract_part(c.key) is not None]
        held = sum(c.met is True for c in mine)
        text = (
            f"{held:,} of {words.counted(len(mine), 'check')} of columns, types, bounds and categories hold"
        )
        return text if gate.result is Result.PASS else f"{text}: {gate.explanation.rstrip('.')}"


def _reaches_beyond(gate: GateResult) -> bool:
    """Whether what keeps a gate open is an interval that lies on both sides of a limit."""
    ends = ((gate.high, gate.maximum), (gate.minimum, gate.low))
    return gate.result is Result.INSUFFICIENT and any(
        more is not None and less is not None and more > less for more, less in ends
    )


def obstacles(outcomes: Outcomes) -> tuple[str, ...]:
    """What keeps a table in, in plain words: deciding gates that failed, then those that could not decide."""
    results = outcomes.evidence.gates.results
    order = (Result.FAIL, Result.INSUFFICIENT)
    return tuple(outcomes.told(g) for r in order for g in results if g.blocking and g.result is r)
