"""The sections of the report below its verdict: groups of gates with their audits, and what else is known.

Of an audit a reader sees its question, its numbers, its pictures, and what they do not show.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from synth_audit import registry
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.examination.exposed_records import LIKELY
from synth_audit.findings.measurement import Direction, Measurement, MeasurementId, Series, is_share
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, REFERENCE_RATIO, ExposedGroup, Subgroup
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report import words
from synth_audit.report.charts import Beside, picture_of
from synth_audit.report.gates import GateView, Sign, gate_views, rank
from synth_audit.report.panels import PANELS, panels_picture
from synth_audit.report.svg import Cells, Picture
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.criteria import CRITERIA, Answer, answers, declared_risk
from synth_audit.verdict.gate_decision import first_few
from synth_audit.verdict.privacy_budget import proven_cost

_FIRST_PICTURES = 1
"""Pictures of an audit on the short page: each takes about a hundred words of 6,000."""
_WORST = 3
"""Columns or settings that are named where a table of all would be too long."""
_MOST_PICTURES = 40
"""Pictures of an audit on the full page, which stays below 10 MB."""


def pictures_of(
    series: Sequence[Series], measurements: Sequence[Measurement], anchor: str
) -> tuple[tuple[Picture, bool], ...]:
    """The figures of an audit in order, each with whether it shows the whole table rather than a part.

    Series of one quantity whose kind has panels become panels of one figure, at the place of the first.
    Their settings say which table they show.
    """
    together: dict[tuple[str, str, int], list[Series]] = {}
    for i, s in enumerate(series):
        together.setdefault((s.kind, s.id.quantity, -1 if s.kind in PANELS else i), []).append(s)
    return tuple(
        (panels_picture(group, PANELS[group[0].kind], f"{anchor}-{i}"), True)
        if group[0].kind in PANELS
        else (
            picture_of(group[0], f"{anchor}-{i}", beside=references(group[0], measurements)),
            group[0].id == group[0].id.whole,
        )
        for i, group in enumerate(together.values(), 1)
    )


def references(series: Series, measurements: Iterable[Measurement]) -> Beside:
    """Reference values of the measurements that a series pictures, at each place or the same for all."""
    known = {m.id: m.reference.value for m in measurements if m.reference is not None}
    own = [known.get(place) for place in series.places or (series.id,) * len(series.x)]
    return Beside({"reference": own})


@dataclass(frozen=True)
class ScopeTable:
    """One quantity for each column or setting, worst first; ``worst`` names a few with their values.

    It is empty where no direction is worse.
    """

    title: str
    summary: str
    worst: str
    table: Cells


@dataclass(frozen=True)
class AuditView:
    """One audit and what is said of its numbers; what planted leaks say of them stands elsewhere."""

    outcome: AuditOutcome
    anchor: str

    @property
    def title(self) -> str:
        """As a reader knows it."""
        return self.outcome.info.title if self.outcome.info else self.outcome.audit

    @property
    def privacy(self) -> bool:
        """True where an attacker is asked for, and not a user."""
        return self.outcome.family == registry.PRIVACY

    @property
    def numbers(self) -> list[Measurement]:
        """The numbers about the whole table."""
        return [m for m in self._own if m.id == m.id.whole]

    @property
    def scopes(self) -> list[ScopeTable]:
        """One table for each quantity that was measured by column or setting."""
        groups: dict[MeasurementId, list[Measurement]] = {}
        for m in self._own:
            if m.id != m.id.whole:
                groups.setdefault(m.id.whole, []).append(m)
        return [self._scope_table(group) for group in groups.values()]

    def pictures(self, *, full: bool) -> tuple[tuple[Picture, ...], int]:
        """Those that are shown, whole tables first, and how many more are only in the evidence."""
        figures = pictures_of(self.outcome.series, self.outcome.measurements, f"{self.anchor}-series")
        ordered = [picture for picture, _ in sorted(figures, key=lambda figure: not figure[1])]
        most = _MOST_PICTURES if full else _FIRST_PICTURES
        return tuple(ordered[:most]), max(0, len(ordered) - most)

    def texts(self, m: Measurement) -> tuple[str, str]:
        """Title of a number, and how to read it."""
        return words.quantity_texts(self.outcome, m.id)

    def direction(self, m: Measurement) -> str:
        """Which way is harm."""
        if m.direction is Direction.NEUTRAL:
            return "descriptive"
        return f"{m.direction.name.lower()} is {'safer' if self.privacy else 'better'}"

    def ratio(self, m: Measurement) -> str:
        """How many times the reference it is, with the number at its size; nothing where that is open."""
        found = self._ratios.get(m.id)
        if found is None or not found.finite:
            return ""
        value, interval = words.of_measurement(found)
        text = f"{value} times the reference" + (f" ({interval})" if interval else "")
        alike = m.reference.candidate if m.reference else None
        return text if alike is None else f"{words.number(alike.value, m.unit)} on as many rows: {text}"

    @property
    def _own(self) -> list[Measurement]:
        """All but leak-equivalents, told of with the planted leaks, and ratios, told beside their numbers."""
        planted, ratios = {r.id for r in self.outcome.responses}, set(self._ratios.values())

        def apart(m: Measurement) -> bool:
            return m in ratios or (m.id.quantity == LEAK_EQUIVALENT.name and m.id.derived_from in planted)

        return [m for m in self.outcome.measurements if not apart(m)]

    @cached_property
    def _ratios(self) -> dict[MeasurementId, Measurement]:
        """By what they are derived from."""
        return {
            m.id.derived_from: m
            for m in self.outcome.measurements
            if m.id.quantity == REFERENCE_RATIO.name and m.id.derived_from
        }

    def _scope_table(self, group: list[Measurement]) -> ScopeTable:
        title, explained = self.texts(group[0])
        ordered = worst_first(group)
        columns: dict[str, Callable[[Measurement], str]] = {
            "Reference": reference,
            "At the size of the reference": self.ratio,
            "Based on": attempts,
        }
        kept = {name: say for name, say in columns.items() if any(say(m) for m in group)}
        header = ("Column or setting", "Value", "Interval", *kept)
        cells = ((m.id.label, *words.of_measurement(m), *(say(m) for say in kept.values())) for m in ordered)
        rows = tuple(tuple(x or "–" for x in row) for row in cells)
        harmful = group[0].direction is not Direction.NEUTRAL
        told = [f"{_scope(m.id)} {words.number(m.value, m.unit)}" for m in ordered[:_WORST] if harmful]
        summary = words.counted(len(group), "value") + (", worst first" if harmful and len(group) > 1 else "")
        return ScopeTable(title, summary, ", ".join(told), Cells(explained or title, header, rows))


def _scope(about: MeasurementId) -> str:
    """A measurement's scope in a sentence: ``sex``; ``sex (income)`` of the attack on income by sex."""
    of = about.derived_from
    if of is None or not about.column:
        return about.label
    return f"{about.column} ({of.label})" if of.label else about.column


def spread(m: Measurement) -> str:
    """The interval of a number with how it was made."""
    interval = words.of_measurement(m)[1]
    if m.interval is None or not interval:
        return "no interval"
    return f"{words.percent_level(m.interval.level)} interval ({m.interval.method}): {interval}"


def reference(m: Measurement) -> str:
    """The reference value of a number; empty without one."""
    if m.reference is None:
        return ""
    if m.reference.interval is None:
        return words.number(m.reference.value, m.unit)
    say = words.number if is_share(m.unit) else words.bare_number  # a unit in words is said once
    span = words.interval(m.reference.interval.low, m.reference.interval.high, m.unit)
    return f"{say(m.reference.value, m.unit)} ({span})"


def attempts(m: Measurement) -> str:
    """How many attempts a number rests on; empty where they were not counted."""
    if m.n_achieved is None and m.n_requested is None:
        return ""
    done = "unknown" if m.n_achieved is None else f"{m.n_achieved:,}"
    text = done if m.n_requested in (None, m.n_achieved) else f"{done} of {m.n_requested:,} wanted"
    return text + (f", fewer than the {m.n_minimum:,} needed" if m.short else "")


def has_numbers(outcome: AuditOutcome) -> bool:
    """True when the audit measured something."""
    return outcome.status is Status.MEASURED and any(math.isfinite(m.value) for m in outcome.measurements)


def worst_first(group: Iterable[Measurement]) -> list[Measurement]:
    """Not computed first, then by value in the direction of harm; descriptive numbers keep their order."""

    def harm(m: Measurement) -> tuple[bool, float]:
        if math.isnan(m.value):
            return (False, 0.0)
        return (True, {Direction.LOWER: -m.value, Direction.HIGHER: m.value}.get(m.direction, 0.0))

    return sorted(group, key=harm)


_MOST_NAMES = 6


class Fact(NamedTuple):
    """A label with its value, and a remark."""

    label: str
    value: str
    detail: str = ""


class Risk(NamedTuple):
    """What gates and audits are about."""

    name: str
    title: str
    question: str


TABLE = Risk(
    "table",
    "The table itself",
    "Is it the table that was agreed on, within the privacy budget that was declared?",
)
UNPLACED = Risk(
    "unplaced",
    "Audits that could not be placed",
    "These audits could not be loaded here, so their section is not known.",
)

RISKS = (TABLE, *(Risk(name, name.capitalize(), question) for name, question in words.ASKED.items()))


@dataclass(frozen=True)
class Group:
    """Gates on one risk, with the audits behind them.

    Attributes:
        alarm: why the question is open although the plan may ask it; empty where a number answers it.
        answer: what became of the criterion; None where it is none.
    """

    risk: Risk
    gates: tuple[GateView, ...]
    audits: tuple[AuditView, ...]
    alarm: str = ""
    answer: Answer | None = None

    @property
    def anchor(self) -> str:
        """Where the page shows it."""
        return f"risk-{self.risk.name.replace(' ', '-')}"

    @property
    def held(self) -> list[GateView]:
        """Gates that did not pass."""
        return [g for g in self.gates if g.result.result is not Result.PASS]

    @property
    def passed(self) -> list[GateView]:
        """Gates that passed."""
        return [g for g in self.gates if g.result.result is Result.PASS]

    @property
    def sign(self) -> Sign | None:
        """That of its worst gate; None without gates."""
        return self.gates[0].sign if self.gates else None

    @property
    def stopping(self) -> bool:
        """True where one of its gates keeps the table in."""
        return any(g.result.blocking for g in self.held)

    @property
    def explained(self) -> set[str]:
        """Audits behind gates that did not pass, of which a reader needs to know more."""
        return {g.result.measurement.audit for g in self.held if g.result.measurement}

    @property
    def note(self) -> str:
        """What became of it: ``beyond limit: 2 of 3 gates did not pass``."""
        told = words.counted(len(self.gates), "gate")
        told = f"{len(self.held)} of {told} did not pass" if self.held else f"{told} passed"
        state = str(self.answer.state) if self.answer else "not measured" if self.alarm else ""
        return ": ".join(filter(None, (state, told if self.gates else "no gate on it")))


def groups(evidence: Evidence) -> tuple[Group, ...]:
    """The gates with their audits, by what they are about; those that hold the release come first."""
    asked = answers(evidence.outcomes, evidence.gates.results)
    known = {risk.name for risk in RISKS}
    about = {o.audit: str(o.info.risk) for o in evidence.outcomes if o.info and o.info.risk in known}
    gates: dict[str, list[GateView]] = {}
    for gate in gate_views(evidence):
        judged = gate.result.measurement
        risk = TABLE.name if judged is None else about.get(judged.audit) or declared_risk(judged.audit) or ""
        gates.setdefault(risk if risk in known else UNPLACED.name, []).append(gate)
    audits: dict[str, list[AuditView]] = {}
    for i, o in enumerate(evidence.outcomes, 1):
        audits.setdefault(about.get(o.audit, UNPLACED.name), []).append(AuditView(o, f"audit-{i}"))
    made = [
        _group(risk, tuple(gates.get(risk.name, ())), tuple(audits.get(risk.name, ())), asked)
        for risk in (*RISKS, UNPLACED)
        if risk is not UNPLACED or risk.name in gates or risk.name in audits
    ]
    return tuple(sorted(made, key=_first_held))


def _first_held(group: Group) -> tuple[int, ...]:
    """Groups with a gate that did not pass first, the worst of them at the head; without gates last."""
    return (not group.held, *rank(group.gates[0])) if group.gates else (2,)


def _group(
    risk: Risk, gates: tuple[GateView, ...], audits: tuple[AuditView, ...], asked: Sequence[Answer]
) -> Group:
    answer = next((a for a in asked if a.criterion == risk.name), None)
    why = answer.reason if answer else ""
    if risk.name in words.ASKED and not any(has_numbers(a.outcome) for a in audits):
        why = "the audits for it gave no result" if audits else "the plan has no audit for it"
    return Group(risk, gates, audits, words.sentence(why), answer)


def exposed_records(evidence: Evidence) -> dict[str, Any] | None:
    """The section; None where no audit of privacy could have said anything."""
    records = evidence.records
    if not records.groups and not any(o.family == "privacy" for o in evidence.outcomes):
        return None
    titles = {o.audit: o.info.title if o.info else o.audit for o in evidence.outcomes}
    known = bool(records.groups)
    return {
        "lead": words.RECORDS_AT_RISK if known else words.NO_RECORDS,
        "likely": words.bare_number(LIKELY),
        "facts": _record_facts(evidence) if known else (),
        "groups": _groups(records.groups, titles, evidence.suppression),
        "subgroups": _subgroups(records.subgroups, titles),
    }


def _record_facts(evidence: Evidence) -> tuple[Fact, ...]:
    records, limit = evidence.records, evidence.suppression
    rows, others = records.train_rows, records.control_rows
    exposed, alike = _count(records.exposed, rows, limit), _count(records.control_exposed, others, limit)
    of_control = f"of {words.counted(others, 'control record')}, by chance alone"
    return (
        Fact(
            f"Training records with odds of {words.bare_number(LIKELY)} to 1, by all attacks together",
            exposed,
            f"of {words.counted(rows, 'training record')}",
        ),
        Fact("Control records with such odds", alike, of_control),
    )


def _count(n: int | None, of: int, limit: int) -> str:
    if n is None:
        return f"fewer than {limit:,}"
    return f"{n:,} ({words.number(n / of, 'share')})" if n and of else f"{n:,}"


def _rate(hit: int | None, tried: int, limit: int) -> str:
    """``12.5 % (125 of 1,000)``, or only that it is too few to show."""
    if not tried:
        return "not tried"
    if hit is None:
        return f"fewer than {limit:,} of {tried:,}"
    return f"{words.number(hit / tried, 'share', 1)} ({hit:,} of {tried:,})"


def _groups(groups: Sequence[ExposedGroup], titles: dict[str, str], limit: int) -> Cells:
    rows = tuple(
        (
            titles.get(g.id.audit, g.id.audit),
            g.id.label or "–",
            first_few(g.columns, _MOST_NAMES) or "–",
            _rate(g.train_hit, g.train_tried, limit),
            _rate(g.control_hit, g.control_tried, limit),
            _beyond(g),
        )
        for g in groups
    )
    right = ("Right about train", "Right about control", "Difference")
    header = ("Attack", "Setting", "Through columns", *right)
    return Cells("How often each attack was right", header, rows)


def _beyond(g: ExposedGroup) -> str:
    """Points by which training records were hit more often than control records."""
    if g.train_hit is None or g.control_hit is None or not g.train_tried or not g.control_tried:
        return "–"
    points = 100 * (g.train_hit / g.train_tried - g.control_hit / g.control_tried)
    sign = "+" if points >= 0.05 else ""
    return f"{sign}{words.bare_number(points, places=1)}\u00a0points"


def _subgroups(subgroups: Sequence[Subgroup], titles: dict[str, str]) -> Cells:
    rows = []
    for s in subgroups:
        attack, setting = titles.get(s.id.audit, s.id.audit), s.id.derived_from and s.id.derived_from.label
        numbers = words.measured("share", s.value, s.interval.low, s.interval.high)
        named = f"{attack} ({setting})" if setting else attack
        rows.append((s.id.column, s.category, named, f"{s.train_rows:,}", *numbers))
    header = ("Column", "Most exposed category", "Attack", "Attacked training records", "Risk", "Interval")
    levels = dict.fromkeys(words.percent_level(s.interval.level) for s in subgroups)
    title = f"The most exposed group of people, column by column ({' or '.join(levels)} intervals)"
    return Cells(title, header, tuple(rows))


def guarantee_section(
    account: PrivacyAccount, outcomes: Sequence[AuditOutcome], training: Sequence[Series] = ()
) -> dict[str, Any]:
    """The section on the formal guarantee: what is claimed, what the release proves, the account, and how the
    fit came to it."""
    proved, claim = proven_cost(outcomes), account.guarantee
    said = (
        "The generator gives no formal privacy guarantee. The measurements above are all there is to rely on."
    )
    if claim is not None:
        known = words.privacy_loss(claim.epsilon, claim.delta)
        said = f"The generator claims differential privacy with {known}."
    return {
        "claim": said,
        "proved": "" if proved is None else proved.sentence,
        "account": account,
        "curves": tuple(picture for picture, _ in pictures_of(training, (), "training")),
    }


def unmeasured(evidence: Evidence) -> tuple[str, ...]:
    """Kinds of usefulness of which nothing is known; the criteria about people stand by themselves."""
    measured = {o.info.risk for o in evidence.outcomes if o.info is not None and has_numbers(o)}
    return tuple(r.title for r in RISKS if r.name in words.ASKED and r.name not in (*CRITERIA, *measured))
