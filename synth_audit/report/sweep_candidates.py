"""Candidates of a sweep as a reader sees them: names, rows of the tables, points of the plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.core import registry
from synth_audit.core.audit import AuditInfo
from synth_audit.core.errors import SynthAuditError
from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Direction, Quantity
from synth_audit.core.sensitivity import DERIVED
from synth_audit.core.verdict import Result
from synth_audit.report import words
from synth_audit.report.gates import sign_of
from synth_audit.report.sweep_scatter import Axis, Dot
from synth_audit.report.view import Sign
from synth_audit.studies.frontier import ERROR, CandidateResult, FrontierRecord, Number

_ENDINGS = {Result.PASS: "passed", Result.FAIL: "failed", Result.INSUFFICIENT: "undecided"}


@dataclass(frozen=True)
class CandidateRow:
    """One candidate in the table.

    Attributes:
        gates: how its deciding gates ended, in words. scores: the two parts of its score.
    """

    name: str
    chosen: bool
    sign: Sign
    problem: str
    privacy: str
    privacy_interval: str
    utility: str
    utility_interval: str
    gates: str
    score: str
    scores: tuple[str, ...]
    folder: str
    seconds: str


@dataclass(frozen=True)
class GateRow:
    """One gate over all candidates; None where it was not judged."""

    title: str
    signs: tuple[Sign | None, ...]


def short_names(candidates: Sequence[CandidateResult]) -> tuple[tuple[str, ...], str]:
    """What tells the candidates apart, and what that is: the values of the one setting varied, else names."""
    names = tuple(words.clean(c.name) for c in candidates)
    heads = {f"{c.generator.get('name')} {' '.join(map(str, c.varied))}=" for c in candidates}
    head = heads.pop() if len(heads) == 1 else "="
    if all(len(c.varied) == 1 for c in candidates) and all(n.startswith(head) for n in names):
        return tuple(n.removeprefix(head) for n in names), head.removesuffix("=")
    varying = {c.generator.get("name") for c in candidates if c.varied}
    only = (
        f"{varying.pop()} " if len(varying) == 1 else ""
    )  # where one generator is varied, its name says little
    return tuple(n.removeprefix(only) for n in names), "candidate"


def axis_of(measurement: MeasurementId | None) -> Axis:
    """Title, unit and direction of a measurement, as its audit declares them."""
    if measurement is None:
        return Axis("not measured", "", None)
    quantity = _quantity(measurement)
    if quantity is None:
        return Axis(str(measurement), "", None)
    better = {Direction.HIGHER: True, Direction.LOWER: False}.get(quantity.direction)
    title = f"{quantity.title} ({measurement.label})" if measurement.label else quantity.title
    return Axis(words.clean(title), quantity.unit, better)


def direction_of(measurement: MeasurementId) -> Direction | None:
    """Which way is safer; None for what its audit does not declare."""
    quantity = _quantity(measurement)
    return quantity.direction if quantity else None


def result_of(candidate: CandidateResult) -> Result:
    """Its verdict as a result; a candidate without a table has not been decided."""
    known = candidate.verdict in set(Result)
    return Result(candidate.verdict) if known else Result.INSUFFICIENT


def dot_of(candidate: CandidateResult, label: str, *, chosen: bool) -> Dot | None:
    """Its point; None without both numbers."""
    p, u = candidate.privacy, candidate.utility
    if p is None or u is None:
        return None
    return Dot(label, p.value, (p.low, p.high), u.value, (u.low, u.high), result_of(candidate), chosen)


def candidate_rows(record: FrontierRecord) -> tuple[CandidateRow, ...]:
    """Every candidate in the order of the sweep."""
    privacy, utility = axis_of(record.privacy), axis_of(record.utility)
    return tuple(_row(c, privacy, utility, chosen=c is record.best) for c in record.candidates)


def gate_rows(record: FrontierRecord) -> tuple[GateRow, ...]:
    """The gates that not every candidate passed, most failed first."""
    titles = {g.gate: g.title for c in record.candidates for g in c.gates}
    ends = [{g.gate: g.result for g in c.gates} for c in record.candidates]
    passed = {gate: sum(e.get(gate) == Result.PASS for e in ends) for gate in titles}
    rows = [
        GateRow(words.sentence(title, ""), tuple(_sign(e.get(gate)) for e in ends))
        for gate, title in sorted(titles.items(), key=lambda item: passed[item[0]])
        if passed[gate] < sum(bool(e) for e in ends)
    ]
    return tuple(rows)


def _sign(result: str | None) -> Sign | None:
    if result is None:
        return None
    return sign_of(Result(result) if result in set(Result) else Result.INSUFFICIENT)


def _row(c: CandidateResult, privacy: Axis, utility: Axis, *, chosen: bool) -> CandidateRow:
    sign = sign_of(result_of(c))
    known = c.privacy_score is not None and c.utility_score is not None
    return CandidateRow(
        name=c.name,
        chosen=chosen,
        sign=Sign(sign.kind, "No table", sign.icon) if c.verdict == ERROR else sign,
        problem=words.sentence(c.problem),
        privacy=_value(c.privacy, privacy.unit),
        privacy_interval=_interval(c.privacy, privacy.unit),
        utility=_value(c.utility, utility.unit),
        utility_interval=_interval(c.utility, utility.unit),
        gates=_gates(c),
        score=words.number(c.score, places=3) if c.score is not None else "–",
        scores=(f"privacy {c.privacy_score:.2f}", f"utility {c.utility_score:.2f}") if known else (),
        folder=f"candidates/{c.slug}",
        seconds=f"{words.number(c.seconds, places=0)} s" + (", from an earlier sweep" if c.kept else ""),
    )


def _gates(c: CandidateResult) -> str:
    results = [g.result for g in c.gates]
    if not results:
        return "none judged"
    if all(r == Result.PASS for r in results):
        return f"all {len(results)} passed"
    counts = ((sum(r == result for r in results), word) for result, word in _ENDINGS.items())
    return ", ".join(f"{n} {word}" for n, word in counts if n)


def _value(number: Number | None, unit: str) -> str:
    if number is None:
        return "–"
    places = words.decimals(unit, number.value, low=number.low, high=number.high)
    return words.number(number.value, unit, places)


def _interval(number: Number | None, unit: str) -> str:
    if number is None:
        return ""
    return words.interval(number.low, number.high, unit) if number.low == number.low else "no interval"


def _quantity(measurement: MeasurementId) -> Quantity | None:
    """As the audit declares it; None when that audit is not installed here any more."""
    ref = registry.catalogue("audit").get(measurement.audit)
    return next((q for q in _declared(ref) if q.name == measurement.quantity), None) if ref else None


def _declared(ref: registry.PluginRef) -> tuple[Quantity, ...]:
    """The quantities of an audit; none where it does not load here any more."""
    try:
        info: AuditInfo = ref.load().info  # type: ignore[attr-defined]
    except SynthAuditError:
        return ()
    return (*info.quantities, *DERIVED)
