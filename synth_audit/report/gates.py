"""Gates and the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from synth_audit.core.verdict import Fitness, GateResult, Result
from synth_audit.judging.criteria import ANSWERS, answers
from synth_audit.judging.gate_decision import MORE
from synth_audit.report import interval_and_limit, result_marks, svg, words
from synth_audit.report.outcomes import Outcomes, obstacles
from synth_audit.report.verdict_view import VerdictQuestion, VerdictView
from synth_audit.report.view import Fact, GateView, Sign
from synth_audit.store.evidence import Evidence
from synth_audit.store.report_marks import gate_marks

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


def sign_of(result: Result) -> Sign:
    """Shape, word and class of a result."""
    icon = svg.element(
        "svg",
        result_marks.result_mark(result, 12, 12, 9),
        class_="icon",
        viewBox="0 0 24 24",
        width=24,
        height=24,
        aria_hidden="true",
    )
    return Sign(result_marks.RESULT_CLASSES[result], result_marks.RESULT_WORDS[result], Markup(icon))  # noqa: S704


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
    icon = svg.element(
        "svg", ring + bar, class_="icon", viewBox="0 0 24 24", width=24, height=24, aria_hidden="true"
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
    kind = result_marks.RESULT_CLASSES[kinds.get(fit, Result.INSUFFICIENT)]
    return (
        VerdictQuestion("Safe to release", gates.safe.answer, result_marks.RESULT_CLASSES[gates.safe]),
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
    drawn = interval_and_limit.IntervalPlot.of_gate(gate, unit).anything
    picture = (
        interval_and_limit.gate_interval_svg(gate, unit=unit, anchor=f"{anchor}-picture") if drawn else None
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
    for limit in (gate.minimum, gate.maximum):
        for end in (gate.value, gate.low, gate.high):
            places = words.telling_apart(places, unit, end, limit)
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
