"""Gates and the verdict in words: what a gate found, and what is allowed."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from synth_audit.findings import measurement as units
from synth_audit.findings.measurement import Measurement, MeasurementId, is_share
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT
from synth_audit.findings.verdict import GATE_ROLES, URGENCY, Fitness, GateResult, Result, TableCheck
from synth_audit.report import svg, words
from synth_audit.report.charts import gate_picture, units_of
from synth_audit.store.evidence import Evidence
from synth_audit.store.reports import gate_marks
from synth_audit.text import listed
from synth_audit.verdict import insufficient_evidence as lacking
from synth_audit.verdict.criteria import ANSWERS, CONTRACT, Answer, answers
from synth_audit.verdict.gate_decision import first_few, in_brackets
from synth_audit.verdict.judge import proven_columns
from synth_audit.verdict.table_checks import contract_part

_FROM_MANY = (ANSWERS,)
"""Gates that follow from several numbers, whose explanation says it best."""
_RESTATED = re.compile(
    r"(The (whole|value|lower end|upper end)\b|The ([\d.]+ % )?interval,|No interval\b|Estimate\b"
    r"|It would then\b)"
)
"""How sentences of an explanation begin that say no more than number, interval and limit beside it."""
_SAID_ABOVE = ("Do not release this table. ", "Weigh this before releasing. ")
"""How advice begins that the verdict and the sign of its gate give already."""


_MOST_COLUMNS = 10
"""Columns or secrets that a finding names: as many as a reader takes in at a glance."""

_MOST_FINDINGS = 3
"""Gates named in one place; the report lists them all."""


@dataclass(frozen=True)
class Sign:
    """A result as shape and words. ``kind`` is ``pass``, ``fail`` or ``open``."""

    kind: str
    word: str
    icon: Markup


@dataclass(frozen=True)
class VerdictQuestion:
    """One of the two answers; ``kind`` as of a sign or empty, ``detail`` says what a plain yes does not."""

    label: str
    answer: str
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class VerdictView:
    """The verdict as sentences, with what stands in the way of a release.

    Attributes:
        answers: what became of each question about people.
        questions: whether it is safe to release, and whether it is fit for purpose.
        silence: what else was not measured.
    """

    sign: Sign
    headline: str
    explanation: str
    silence: str
    obstacles: tuple[str, ...]
    answers: tuple[Answer, ...] = ()
    questions: tuple[VerdictQuestion, ...] = ()


@dataclass(frozen=True)
class GateView:
    """One gate of the evidence and its sentences.

    Attributes:
        place: in the suite, from 1.
        finding: what the suite says of a finding, with ``{value}`` (in its unit), ``{percent}`` and
            ``{column}`` (the worst one) in their places; may be empty.
        unit: of the number that was judged. measured: that number, of several the worst.
    """

    result: GateResult
    evidence: Evidence
    place: int
    finding: str
    unit: str
    measured: Measurement | None

    @property
    def anchor(self) -> str:
        """Where the page shows it."""
        return f"gate-{self.place}"

    @property
    def sign(self) -> Sign:
        """Its result; one that failed and stops nothing must not look as if it did."""
        gate = self.result
        if self.nothing_to_search:
            return _unfit_sign("advice", words.NOTHING_TO_SEARCH)
        if gate.blocking or gate.result is not Result.FAIL:
            return sign_of(gate.result)
        return _unfit_sign() if gate.fitness else _unfit_sign("advice", "Fail (advice)")

    @property
    def nothing_to_search(self) -> bool:
        """True of a pass on identifiers where the plan declares none."""
        about = self.result.measurement
        asked = about is not None and about.name == "exact_match.identifier_reuse"
        return asked and self.result.result is Result.PASS and bool(words.identifiers(self.evidence))

    @property
    def role(self) -> str:
        """What it is there for."""
        return self.result.role

    @property
    def scope(self) -> str:
        """Setting and column of what was judged."""
        return self.result.measurement.label if self.result.measurement else ""

    @property
    def sentence(self) -> str:
        """``2.1 % of the rows are copies of real records; 2 % allowed``, without a full stop."""
        gate = self.result
        if gate.gate == CONTRACT:
            mine = [c for c in self.evidence.table_checks if contract_part(c.key) is not None]
            held, checks = sum(c.met is True for c in mine), words.counted(len(mine), "check")
            text = f"{held:,} of {checks} of {listed(_checked(mine))} hold"
            return text if gate.result is Result.PASS else f"{text}: {gate.explanation.rstrip('.')}"
        if not self._has_number:
            return words.sentence(self._named(self.result.explanation), end="").rstrip(".")
        text = self.found
        if self.nothing_to_search:
            return text
        if gate.maximum is not None:
            text += f"; {self.limit.removeprefix('at most ') if gate.minimum is None else self.limit} allowed"
        elif gate.minimum is not None:
            text += f"; {self.limit} needed"
        ends = ((gate.high, gate.maximum), (gate.minimum, gate.low))
        beyond = any(more is not None and less is not None and more > less for more, less in ends)
        open_ = gate.result is Result.INSUFFICIENT
        return text + (", and the interval reaches beyond it" if open_ and beyond else "")

    @property
    def found(self) -> str:
        """The same without its limit; what was asked, where its number decides nothing."""
        about = self.result.measurement
        if self.unusable:
            return words.sentence(f"{self.result.title.rstrip('.')}: this could not be tested", end="")
        if self.nothing_to_search:
            return words.NO_IDENTIFIERS
        if about is None or not self._has_number:
            return self.sentence
        text = self.finding or f"{words.name_of(about, self.evidence)}: {{value}}"
        text = text.replace("{value}", self._found_value(self.unit))
        text = text.replace("{percent}", self._found_value("share"))
        # The column that a worst number is about: its own, or the one whose number it is.
        worst = worst_column(about.audit, self.unit, self.result.value, self.evidence)
        column = about.column or (worst.id.column if worst else "")
        column = f"column {column}" if column else "the worst column"
        if worst is not None and self.unit == units.OF_SUBGROUP:
            column += f" ({_in_category(worst, self.evidence)})"
        return words.sentence(text.replace("{column}", column), end="")

    @property
    def found_in_people(self) -> str:
        """The same with its number of training people, ``(163 to 200 of 395 people)``, where it has one."""
        if self.unusable or self.share is None or self.share.unit != units.PEOPLE:
            return self.found
        if self.share is self.measured:
            return f"{self.found} ({counted_share(self.share, self.evidence)})"
        people = counted_share(self.share, self.evidence, "the {:,} training people")
        return f"{self.found}. These rows are the records of {people}"

    @property
    def share(self) -> Measurement | None:
        """The number as a share beyond chance, of people rather than rows; None where it is no such share."""
        m = self.measured
        if m is None or not is_share(m.unit) or not m.finite or not beyond_chance(m, self.evidence):
            return None
        alike = (x for x in self.evidence.measurements if x.id.audit == m.id.audit and x.unit == units.PEOPLE)
        people = (x for x in alike if m.unit == units.ROWS and not x.id.derived_from and x.id == x.id.whole)
        return next((x for x in people if x.finite), m)

    @property
    def cause(self) -> str:
        """What the explanation says beyond finding, interval and limit; empty where that is nothing."""
        if self.unusable:
            return words.sentence(self._named(self.result.unusable))
        told = re.split(r"(?<=\.) (?=[A-Z])", self.explanation)
        new = " ".join(t for t in told if not _RESTATED.match(t))
        return "" if words.sentence(self.sentence) == new else new

    @property
    def columns(self) -> str:
        """``Columns: age, sex.``: by which a gate failed, or the secrets that were guessed, worst first.

        Empty where the evidence names none of them, or nearly all.
        """
        about = self.result.measurement
        if about is None or about.column or self.result.fitness:
            return ""
        if self.unit == units.SECRETS:
            own = [
                m for m in self.evidence.measurements if m.id.audit == about.audit and m.unit == units.PEOPLE
            ]
            guessed = [m for m in own if m.id.column and m.id.derived_from is None and m.finite]
            secrets = dict.fromkeys(m.id.column for m in sorted(guessed, key=lambda m: -m.value))
            return f"Secrets: {first_few([*secrets], _MOST_COLUMNS)}." if secrets else ""
        hit = next((g.columns for g in self.evidence.records.groups if g.id.audit == about.audit), ())
        names = proven_columns(about.audit, self.evidence.outcomes) or list(hit)
        few = self.result.result is Result.FAIL and 0 < len(names) < len(self.evidence.columns) / 2
        return f"Columns: {first_few(names, _MOST_COLUMNS)}." if few else ""

    @property
    def unusable(self) -> bool:
        """True where its number decides nothing, or there is none."""
        return bool(self.result.unusable)

    @property
    def told(self) -> str:
        """The same behind its result."""
        return f"{words.RESULT_WORDS[self.result.result]}: {self.sentence}"

    @property
    def limit(self) -> str:
        """``at most 2 %``; empty without one."""
        unit = "share" if "{percent}" in self.finding else self.unit
        return words.limits(self.result.minimum, self.result.maximum, unit)

    @property
    def allowed(self) -> str:
        """The limit, or what it is where it is no number."""
        table = self.result.measurement is None and self.result.gate != ANSWERS
        return self.limit or ("the table itself" if table else "none")

    @property
    def value(self) -> str:
        """The number that was judged."""
        return words.number(self.result.cut_at_none(self.unit)[0], self.unit, self._places())

    @property
    def interval(self) -> str:
        """Its interval, cut at 0 for a share with an upper limit; empty without one."""
        _, low, high = self.result.cut_at_none(self.unit)
        if low is None or high is None:
            return ""
        return words.interval(low, high, self.unit, self._places())

    @property
    def numbers(self) -> str:
        """``Limit: at most 2 %. 95 % interval: 0.1 to 0.4 %.``; nothing of a number that decides nothing."""
        level = f"{words.percent_level(self.result.level)} interval" if self.result.level else "Interval"
        parts = (("Limit", self.limit), (level, self.interval))
        return "" if self.unusable else " ".join(f"{name}: {told}." for name, told in parts if told)

    @property
    def explanation(self) -> str:
        """Why it ended as it did."""
        return words.sentence(self.result.explanation)

    @property
    def advice(self) -> str:
        """What to do, with the attempts that would decide; those do not matter once a gate has failed."""
        gate, advice = self.result, words.sentence(self.result.advice)
        if gate.result is Result.PASS:
            return ""
        n = gate.n_needed
        if self.evidence.verdict is Result.FAIL or n is None or f"{n:,}" in advice or str(n) in advice:
            return advice
        return f"{advice} {lacking.WOULD_DECIDE.format(n=n)}".strip()

    @property
    def next_step(self) -> str:
        """The advice, under a verdict that says already whether the table may leave."""
        advice = self.advice
        for general in _SAID_ABOVE:
            advice = advice.removeprefix(general)
        return words.sentence(advice)

    @property
    def picture(self) -> Markup | None:
        """Its interval against its limit; None without anything to draw, or where it decides nothing."""
        anchor = f"{self.anchor}-{self.evidence.digest[:8]}"  # a notebook may show several audits
        return None if self.unusable else gate_picture(self.result, self.unit, anchor)

    @property
    def marks(self) -> Mapping[str, str]:
        """The same for machines."""
        return gate_marks(self.result)

    @property
    def _has_number(self) -> bool:
        """True where one number says what was found."""
        gate = self.result
        known = gate.measurement is not None and gate.value is not None
        return known and gate.gate not in _FROM_MANY and not self.unusable

    def _named(self, text: str) -> str:
        """A text with the measurement called by its titles."""
        about = self.result.measurement
        for x in () if about is None else filter(None, (about, about.derived_from)):
            for outcome in (o for o in self.evidence.outcomes if o.audit == x.audit):
                audit = f" of “{outcome.info.title}”" if outcome.info else ""
                plain = f"“{words.name_of(x, self.evidence)}”{audit}"
                for technical in (str(x), f"{x.name}{in_brackets(x)}"):
                    text = text.replace(technical, plain)
        return text

    def _found_value(self, unit: str) -> str:
        """The number as it stands in a sentence, with its interval where that keeps the gate open."""
        gate = self.result
        value, low, high = gate.cut_at_none(self.unit)
        open_ = gate.result is Result.INSUFFICIENT
        if not open_ and (value is None or round(value * 100, 9) % 1 == 0):  # a whole number has no decimals
            return words.number(value, unit)
        places = words.decimals(unit, value, low=low, high=high)
        places = _apart(places, unit, gate, (value, low, high) if open_ else (value,))
        told = words.number(value, unit, places)
        if open_ and low is not None and high is not None:
            told += f" ({words.interval(low, high, unit, places)})"  # which is why it is open
        return told

    def _places(self) -> int:
        gate = self.result
        places = words.decimals(self.unit, gate.value, low=gate.low, high=gate.high)
        return _apart(places, self.unit, gate, (gate.value, gate.low, gate.high))


def gates_of(evidence: Evidence) -> tuple[GateView, ...]:
    """Every gate in the order of the suite that judged it, in whose words its finding is told."""
    metas = [x.get("meta", {}) for x in evidence.gates.suite.get("expectations", ())]
    findings = {m["id"]: m["finding"] for m in metas if isinstance(m.get("finding"), str)}
    units, measured = units_of(evidence), {m.id: m for m in evidence.measurements}
    return tuple(
        GateView(
            gate,
            evidence,
            place,
            findings.get(gate.gate, ""),
            units.get(gate.measurement.whole, "") if gate.measurement else "",
            measured.get(gate.measurement) if gate.measurement else None,
        )
        for place, gate in enumerate(evidence.gates.results, 1)
    )


def gate_views(evidence: Evidence) -> tuple[GateView, ...]:
    """Every gate: those that keep the release in, failed advice, deciding ones that passed, other advice."""
    return tuple(sorted(gates_of(evidence), key=rank))


def _apart(places: int, unit: str, gate: GateResult, ends: Sequence[float | None]) -> int:
    """As many decimals as it takes to see that these numbers are not the gate's limits."""
    for limit in (gate.minimum, gate.maximum):
        for end in ends:
            places = words.telling_apart(places, unit, end, limit)
    return places


def obstacles(evidence: Evidence) -> list[GateView]:
    """What keeps a table in: deciding gates that failed, then those that could not decide.

    The most direct harm comes first. Suites list copies before attacks. What follows from other gates, and
    a number restated as a share of copied rows, comes last.
    """
    gates = [g for g in gates_of(evidence) if g.result.blocking and g.result.result is not Result.PASS]
    return sorted(gates, key=lambda g: (URGENCY[g.result.result], _indirect(g.result.measurement)))


def train_people(evidence: Evidence) -> int:
    """How many records the generator learnt from, one counted as one person."""
    return evidence.tables["train"].rows if "train" in evidence.tables else 0


def counted_share(m: Measurement, evidence: Evidence, whole: str = "{:,} people") -> str:
    """A share beyond chance in what it counts: ``none to 85 of 9,758 people``, ``0 to 2 % of the rows``.

    Args:
        whole: how the training people are called.
    """
    if m.unit == units.OF_SUBGROUP:
        worst = m if m.id.column else worst_column(m.id.audit, m.unit, m.value, evidence)
        if worst is None:
            return "none found" if m.value == 0 else "of the people in one category"
        least = "" if m.interval else "at least "
        people = _examined(worst, evidence)
        return f"{least}{words.cut_share(m)} of {people} in one category of column {worst.id.column}"
    if m.unit != units.PEOPLE:
        noun = m.unit.partition(" of ")[2]
        return f"{words.cut_share(m)} of the {noun}" if noun else words.cut_share(m)
    rows, span = train_people(evidence), m.interval
    if span is None or span.low == span.high:
        found = words.people(m.value, rows, evidence.suppression)
        return "none found" if found == "none" else f"{found} of {whole.format(rows)}"
    return f"{words.people_interval(span.low, span.high, rows, evidence.suppression)} of {whole.format(rows)}"


def worst_column(audit: str, unit: str, value: float | None, evidence: Evidence) -> Measurement | None:
    """The audit's number of this value and unit that is about one column; None where there is none."""
    alike = (m for m in evidence.measurements if m.id.audit == audit and m.unit == unit and m.id.column)
    return next((m for m in alike if m.value == value), None)


def _examined(m: Measurement, evidence: Evidence) -> str:
    """``232 people``: of a category, as many as the attack looked at."""
    return f"{words.people(1.0, m.n_achieved or 0, evidence.suppression)} people"


def _in_category(m: Measurement, evidence: Evidence) -> str:
    """``at least 386 of 648 people examined in that category``; those alone where few are recognised."""
    size, found = m.n_achieved or 0, m.value * (m.n_achieved or 0)
    least = f"at least {words.people(m.value, size, evidence.suppression)} of "
    return f"{least * (found >= evidence.suppression)}{_examined(m, evidence)} examined in that category"


def beyond_chance(m: Measurement, evidence: Evidence) -> bool:
    """Whether 0 is what chance gives: so says its reference, or its range, which goes below 0."""
    if m.reference is not None:
        return m.reference.value == 0
    info = next((o.info for o in evidence.outcomes if o.audit == m.id.audit), None)
    ranges = [q.range for q in info.quantities if q.name == m.id.quantity] if info else []
    return any(low < 0 for low, _ in ranges)


def first_findings(found: Sequence[str]) -> str:
    """The first findings as sentences, without the last full stop, and how many more there are."""
    more = len(found) - _MOST_FINDINGS
    left = [f"{words.counted(more, 'more gate')} did not pass"] if more > 0 else []
    return ". ".join([*found[:_MOST_FINDINGS], *left])


def missed_advice(gates: Sequence[GateView]) -> str:
    """What advisory gates found that did not pass, without a full stop; empty where all did."""
    missed = [g for g in gates if g.role == "advisory" and g.result.result is not Result.PASS]
    if not missed:
        return ""
    count = words.counted(len(missed), "advisory gate")
    return f"{count} did not pass, which does not stop a release: {first_findings([g.found for g in missed])}"


def _indirect(about: MeasurementId | None) -> int:
    return 1 if about is None else 2 if about.quantity == LEAK_EQUIVALENT.name else 0


def sign_of(result: Result) -> Sign:
    """Shape, word and class of a result."""
    mark = _icon(svg.result_mark(result, 12, 12, 9))
    return Sign(svg.RESULT_CLASSES[result], words.RESULT_WORDS[result], mark)


def verdict_sign(evidence: Evidence) -> Sign:
    """The verdict's sign; a safe release that is not fit for purpose does not get the sign of a pass."""
    if evidence.verdict is Result.PASS and evidence.fitness is Fitness.NO:
        return _unfit_sign()
    return sign_of(evidence.verdict)


def _unfit_sign(kind: str = "open", word: str = "Not fit for purpose") -> Sign:
    """The sign of a result that stops no release, but needs attention."""
    ring = svg.element("circle", cx=12, cy=12, r=8, fill="none", stroke="muted", stroke_width=2)
    bar = svg.element("path", d="M12 7.5v6M12 15.6v1.4", stroke="muted", stroke_width=2)
    return Sign(kind, word, _icon(ring + bar))


def _icon(shapes: str) -> Markup:
    box = {"viewBox": "0 0 24 24", "width": "24", "height": "24"}
    return Markup(svg.element("svg", shapes, class_="icon", aria_hidden="true", **box))  # noqa: S704


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
    blockers = tuple(words.sentence(b) for b in evidence.gates.blockers)
    return VerdictView(
        verdict_sign(evidence),
        words.headline(evidence.verdict, evidence.fitness),
        " ".join((*(f"{g.found_in_people}." for g in obstacles(evidence)[:1]), tally(gates_of(evidence)))),
        f"Not measured: {listed([name.lower() for name in unmeasured])}." if unmeasured else "",
        blockers,
        answers(evidence.outcomes, evidence.gates.results),
        two_answers(evidence),
    )


def two_answers(evidence: Evidence) -> tuple[VerdictQuestion, VerdictQuestion]:
    """Whether the table is safe to release, and whether it is fit for purpose."""
    safe, fit = evidence.gates.safe, evidence.fitness
    told = {Fitness.NO: Result.FAIL, Fitness.INSUFFICIENT: Result.INSUFFICIENT}.get(fit)
    asked = (g for g in gates_of(evidence) if g.result.fitness and not g.result.blocking)
    detail = " ".join(f"{g.sentence}." for g in asked if g.result.result is told)
    if fit is Fitness.NOT_TESTED:
        detail = "No gate on usefulness decides it, or its audits were not part of this run."
    kinds = {Fitness.YES: Result.PASS, Fitness.NO: Result.FAIL}
    answer, kind = str(fit), svg.RESULT_CLASSES[kinds.get(fit, Result.INSUFFICIENT)]
    if fit is Fitness.YES and safe is Result.FAIL:  # a refusal praises nothing
        answer, kind, detail = words.NOT_JUDGED, "", words.COPY_IS_USEFUL
    return (
        VerdictQuestion("Safe to release", safe.answer, svg.RESULT_CLASSES[safe]),
        VerdictQuestion("Fit for purpose", answer, kind, detail),
    )


def tally(gates: Sequence[GateView]) -> str:
    """How the deciding gates ended, and which advice was not met."""
    idle = [g for g in gates if g.result.blocking and g.nothing_to_search]
    results = [g.result.result for g in gates if g.result.blocking and g not in idle]
    if not results and not idle:
        return words.NO_GATE
    total = words.counted(len(results) + len(idle), "deciding gate")
    if len(results) == 1 and not idle:
        parts = [f"The only deciding gate {words.ENDINGS[results[0]]}"]
    elif set(results) == {Result.PASS} and not idle:
        parts = [f"All {total} passed"]
    else:
        found = [f"{n} {words.ENDINGS[r]}" for r in URGENCY if (n := results.count(r))]
        found += [f"{len(idle)} had no declared identifier to search for"] if idle else []
        parts = [f"Of {total}, {', '.join(found)}"]
    missed = missed_advice(gates)
    if missed and Result.FAIL not in results:  # beside a refusal, advice is noise
        parts.append(missed)
    return words.sentence(". ".join(parts))


def by_role(gates: Sequence[GateView]) -> str:
    """What gates are there for: ``8 deciding, 2 fit for purpose, 3 advisory``."""
    roles = [g.role for g in gates]
    return ", ".join(f"{n} {role}" for role in GATE_ROLES if (n := roles.count(role)))


def rank(gate: GateView) -> tuple[int, int]:
    """Advice that could not be judged says nothing about the table, so it must not head the list."""
    result, blocking = gate.result.result, gate.result.blocking
    first = result is not Result.PASS if blocking else result is Result.FAIL
    return (0 if blocking else 1) + (0 if first else 2), URGENCY[result]


def _checked(checks: Sequence[TableCheck]) -> list[str]:
    """What checks of the contract are about: ``columns``, ``types``, ``bounds``, in this order."""
    parts = (contract_part(c.key) for c in checks)
    kinds = {str(part["type"]) for part in parts if part is not None}
    return [what for kind, (what, _) in words.CHECKED.items() if kind in kinds]


def check_sentence(check: TableCheck) -> str:
    """What was checked: ``Column age: lies within its bounds``; what is no expectation stays as it is."""
    part = contract_part(check.key)
    if part is None:
        try:
            part = json.loads(check.key)
        except ValueError:
            return words.sentence(check.key, end="")
    if not isinstance(part, dict) or not isinstance(part.get("kwargs"), dict) or "type" not in part:
        return words.sentence(check.key, end="")
    kind, kwargs = str(part["type"]), part["kwargs"]
    about = f"Column {kwargs['column']}" if "column" in kwargs else "The table"
    plain = kind.removeprefix("expect_").removeprefix("column_").replace("_", " ")
    return f"{about}: {words.CHECKED.get(kind, ('', plain))[1]}"
