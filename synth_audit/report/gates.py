"""Gates and the verdict in words: what a gate found, and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from synth_audit.findings.measurement import Measurement, MeasurementId
from synth_audit.findings.verdict import Fitness, GateResult, Result, TableCheck
from synth_audit.report import interval_charts, svg, words
from synth_audit.report.interval_charts import units_of
from synth_audit.report.sensitivity import quantity_texts
from synth_audit.report.svg import RESULT_CLASSES, result_mark
from synth_audit.report.view import Fact, GateView, Sign, VerdictQuestion, VerdictView
from synth_audit.report.words import RESULT_WORDS
from synth_audit.store.evidence import Evidence
from synth_audit.store.reports import gate_marks
from synth_audit.verdict.criteria import ANSWERS, answers
from synth_audit.verdict.gate_decision import MORE, in_brackets
from synth_audit.verdict.table_checks import CONTRACT, contract_part

_FROM_MANY = (ANSWERS,)
"""Gates that follow from several numbers, whose explanation says it best."""
_URGENCY = {Result.FAIL: 0, Result.INSUFFICIENT: 1, Result.PASS: 2}
_WITHIN_QUOTES = str.maketrans("“”", "‘’")

_NAMED = 2
"""Advisory gates that did not pass are named beside the verdict where they are no more."""
_BOUNDS = {
    "upper": "The upper end of the interval is compared with the limit.",
    "lower": "The lower end of the interval is compared with the limit.",
    "both": "Both ends of the interval are compared with the limits.",
    "value": "The value itself is compared with the limit.",
}
_MOST_NAMES = 40


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
        open_ = gate.result is Result.INSUFFICIENT
        places = words.decimals(unit, value, low=low, high=high)
        places = _apart(places, unit, gate, (value, low, high) if open_ else (value,))
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


def _apart(places: int, unit: str, gate: GateResult, ends: Sequence[float | None]) -> int:
    """As many decimals as it takes to see that these numbers are not the gate's limits."""
    for limit in (gate.minimum, gate.maximum):
        for end in ends:
            places = words.telling_apart(places, unit, end, limit)
    return places


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


def sign_of(result: Result) -> Sign:
    """Shape, word and class of a result."""
    return Sign(RESULT_CLASSES[result], RESULT_WORDS[result], _icon(result_mark(result, 12, 12, 9)))


def gate_sign(gate: GateResult) -> Sign:
    """A gate's sign; one that failed and stops nothing must not look as if it did."""
    if gate.blocking or gate.result is not Result.FAIL:
        return sign_of(gate.result)
    return _unfit_sign() if gate.fitness else Sign("advice", "Advice not met", _warning_icon())


def verdict_sign(evidence: Evidence) -> Sign:
    """The verdict's sign; what may leave and is not fit for purpose does not get that of a pass."""
    if evidence.verdict is Result.PASS and evidence.fitness is Fitness.NO:
        return _unfit_sign()
    return sign_of(evidence.verdict)


def _unfit_sign() -> Sign:
    return Sign("open", "Not fit for purpose", _warning_icon())


def _warning_icon() -> Markup:
    ring = svg.element(
        "circle", class_="s-muted", cx=12, cy=12, r=8, fill="none", stroke=svg.MUTED, stroke_width=2
    )
    bar = svg.element("path", class_="s-muted", d="M12 7.5v6M12 15.6v1.4", stroke=svg.MUTED, stroke_width=2)
    return _icon(ring + bar)


def _icon(shapes: str) -> Markup:
    icon = svg.element(
        "svg", shapes, class_="icon", viewBox="0 0 24 24", width=24, height=24, aria_hidden="true"
    )
    return Markup(icon)  # noqa: S704


def gate_views(evidence: Evidence) -> tuple[GateView, ...]:
    """Every gate: those that keep the release in, failed advice, deciding ones that passed, other advice."""
    lost = evidence.verdict is Result.FAIL
    outcomes = Outcomes.of(evidence)
    gates = [_gate_view(g, outcomes, i, lost=lost) for i, g in enumerate(evidence.gates.results, 1)]
    order = {g.anchor: _rank(r) for g, r in zip(gates, evidence.gates.results, strict=True)}
    return tuple(sorted(gates, key=lambda g: order[g.anchor]))


def verdict_view(evidence: Evidence, *, unmeasured: Sequence[str], sound: bool) -> VerdictView:
    """The verdict as sentences; evidence that is not sound decides nothing."""
    if not sound:
        return VerdictView(
            sign_of(Result.FAIL),
            "This report must not be used to decide.",
            "The evidence behind it contradicts itself, see above. Run the audit again.",
            "",
            (),
        )
    outcomes = Outcomes.of(evidence)
    headline = {
        Result.PASS: "This synthetic table may be released.",
        Result.FAIL: "This synthetic table must not be released.",
        Result.INSUFFICIENT: "This synthetic table must not be released yet: there is not enough evidence.",
    }[evidence.verdict]
    if evidence.verdict is Result.PASS and evidence.fitness is Fitness.NO:
        headline = "This synthetic table may be released, but it is not fit for purpose."
    blockers = tuple(words.sentence(b) for b in evidence.gates.blockers)
    return VerdictView(
        verdict_sign(evidence),
        headline,
        " ".join((_tally(outcomes), *(f"{o}." for o in obstacles(outcomes)[:1]))),
        _silence(unmeasured),
        blockers,
        tuple(
            Fact(a.criterion.capitalize(), str(a.state), words.sentence(a.reason))
            for a in answers(evidence.outcomes, evidence.gates.results)
        ),
        two_answers(outcomes),
    )


def two_answers(outcomes: Outcomes) -> tuple[VerdictQuestion, VerdictQuestion]:
    """Whether the table is safe to release, and whether it is fit for purpose."""
    gates, fit = outcomes.evidence.gates, outcomes.evidence.fitness
    told = {Fitness.NO: Result.FAIL, Fitness.INSUFFICIENT: Result.INSUFFICIENT}.get(fit)
    left = (g for g in gates.results if g.fitness and not g.blocking and g.result is told)
    detail = " ".join(f"{outcomes.sentence(g)}." for g in left)
    if fit is Fitness.NOT_TESTED:
        detail = "No gate on usefulness decides it, or its audits were not part of this run."
    kinds = {Fitness.YES: Result.PASS, Fitness.NO: Result.FAIL}
    kind = RESULT_CLASSES[kinds.get(fit, Result.INSUFFICIENT)]
    return (
        VerdictQuestion("Safe to release", gates.safe.answer, RESULT_CLASSES[gates.safe]),
        VerdictQuestion("Fit for purpose", str(fit), kind, detail),
    )


def _tally(outcomes: Outcomes) -> str:
    gates = outcomes.evidence.gates.results
    results = [g.result for g in gates if g.blocking]
    if not results:
        return "No gate decides about this table, and without one nothing may leave."
    counts = {r: results.count(r) for r in Result}
    total = words.counted(len(results), "deciding gate")
    if counts[Result.PASS] == len(results):
        parts = [f"{'The only deciding gate' if len(results) == 1 else f'All {total}'} passed"]
    else:
        endings = {Result.FAIL: "failed", Result.INSUFFICIENT: "could not be decided", Result.PASS: "passed"}
        found = [f"{n} {endings[r]}" for r in _URGENCY if (n := counts[r])]
        parts = [f"Of {total}, {', '.join(found)}"]
        if len(results) == 1:
            parts = [f"The only deciding gate {endings[results[0]]}"]
    advisory = [g for g in gates if not g.blocking and not g.fitness and g.result is not Result.PASS]
    if advisory:
        told = words.counted(len(advisory), "advisory gate")
        parts.append(f"{told} did not pass{_named(advisory, outcomes)}; advice does not stop a release")
    return words.sentence(". ".join(parts))


def _named(gates: Sequence[GateResult], outcomes: Outcomes) -> str:
    """What a few found, in brackets; of many a reader finds it in the list."""
    if len(gates) > _NAMED:
        return ""
    told = (outcomes.sentence(g).translate(_WITHIN_QUOTES) for g in sorted(gates, key=_rank))
    return f" ({', '.join(f'“{text}”' for text in told)})"


def _silence(unmeasured: Sequence[str]) -> str:
    if not unmeasured:
        return ""
    *first, last = (name.lower() for name in unmeasured)
    return f"Not measured: {', '.join(first)}{' and ' if first else ''}{last}."


def _rank(gate: GateResult) -> tuple[int, int]:
    """Advice that could not be judged says nothing about the table, so it must not head the list."""
    if gate.blocking:
        place = 2 if gate.result is Result.PASS else 0
    else:
        place = 1 if gate.result is Result.FAIL else 3
    return place, _URGENCY[gate.result]


def _gate_view(gate: GateResult, outcomes: Outcomes, place: int, *, lost: bool) -> GateView:
    about = gate.measurement
    unit = outcomes.unit(about) if about else ""
    value, interval = _number_texts(gate, unit)
    limit = words.limits(gate.minimum, gate.maximum, unit)
    anchor = f"gate-{place}"
    drawn = interval_charts.IntervalPlot.of_gate(gate, unit).anything
    picture = (
        interval_charts.gate_interval_svg(gate, unit=unit, anchor=f"{anchor}-picture") if drawn else None
    )
    return GateView(
        anchor=anchor,
        gate=gate.gate,
        title=outcomes.sentence(gate),
        asked=gate.title,
        sign=gate_sign(gate),
        blocking=gate.blocking,
        role="deciding" if gate.blocking else "fit for purpose" if gate.fitness else "advisory",
        numbers=_numbers(gate, interval),
        limit=limit or ("the table itself" if about is None and gate.gate != ANSWERS else "none"),
        judged=_BOUNDS.get(gate.bound, ""),
        explanation=words.sentence(gate.explanation),
        advice="" if gate.result is Result.PASS else _advice(gate, lost=lost),
        reason=words.sentence(gate.reason),
        measurement=about.name if about else "",
        scope=about.label if about else "",
        about=about,
        every=gate.every,
        value=value,
        interval=interval,
        picture=None if picture is None else Markup(picture),  # noqa: S704
        marks=gate_marks(gate),
    )


def _number_texts(gate: GateResult, unit: str) -> tuple[str, str]:
    places = words.decimals(unit, gate.value, low=gate.low, high=gate.high)
    places = _apart(places, unit, gate, (gate.value, gate.low, gate.high))
    known = gate.low is not None and gate.high is not None
    interval = words.interval(gate.low, gate.high, unit, places) if known else ""  # type: ignore[arg-type]
    return words.number(gate.value, unit, places), interval


def _numbers(gate: GateResult, interval: str) -> str:
    """How exact the finding is, and what was asked where it is not simply so."""
    asked = "" if gate.result is Result.PASS else words.sentence(f"Asked: {gate.title}")
    level = f"{words.percent_level(gate.level)} interval" if gate.level else "Interval"
    return " ".join(filter(None, (f"{level} {interval}." if interval else "", asked)))


def _advice(gate: GateResult, *, lost: bool) -> str:
    """What to do, with the attempts that would decide; those do not matter once another gate has failed."""
    advice = words.sentence(gate.advice)
    if lost or gate.n_needed is None:
        return advice
    if f"{gate.n_needed:,}" not in advice and str(gate.n_needed) not in advice:
        advice += f" About {gate.n_needed:,} {MORE} would probably decide it."
    return advice.strip()


def check_sentence(check: TableCheck) -> str:
    """What was checked: ``Column age holds int64 or Int64Dtype``; what is no expectation stays as it is."""
    part = contract_part(check.key) or _expectation(check.key)
    if part is None:
        return words.sentence(check.key, end="")
    kwargs = part["kwargs"]
    about = f"Column {kwargs['column']}" if "column" in kwargs else "The table"
    return f"{about} {_asked(str(part['type']), kwargs)}"


def _expectation(key: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(key)
    except ValueError:
        return None
    known = isinstance(found, dict) and isinstance(found.get("kwargs"), dict) and "type" in found
    return found if known else None


def _asked(kind: str, kwargs: Mapping[str, Any]) -> str:
    match kind, kwargs:
        case "expect_table_columns_to_match_set", {"column_set": list(names)}:
            listed = ", ".join(map(str, names[:_MOST_NAMES])) + (", …" if len(names) > _MOST_NAMES else "")
            return f"has exactly these {words.counted(len(names), 'column')}: {listed}"
        case "expect_column_values_to_be_in_type_list", {"type_list": list(types)}:
            return f"holds {' or '.join(map(str, types))}"
        case "expect_column_values_to_be_between", _:
            return f"lies within its bounds, {_bounds(kwargs)}"
        case "expect_column_values_to_be_in_set", {"value_set": list(values)}:
            return f"holds none but its declared categories ({len(values):,})"
        case "expect_column_values_to_not_be_null", _:
            return "has no missing values"
        case "expect_cells_as_full_as_in_train", {"column_margin": column, "table_margin": table}:
            return (
                f"has at most {column:.0%} more missing cells in a column than train, {table:.0%} in all "
                "columns together, beyond chance"
            )
    return kind.removeprefix("expect_").removeprefix("column_").replace("_", " ")


def _bounds(kwargs: Mapping[str, Any]) -> str:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if low is None or high is None:
        return f"at least {low}" if high is None else f"at most {high}"
    return f"{low} to {high}"
