"""The sections of the report below its verdict: groups of gates with their audits, and what else is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.examination.exposed_records import LIKELY
from synth_audit.findings.measurement import Series
from synth_audit.findings.sensitivity import ExposedGroup, Subgroup
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import words
from synth_audit.report.audits import AuditView, declared, has_numbers, pictures_of
from synth_audit.report.gates import GateView, Sign, gate_views, rank
from synth_audit.report.svg import Cells
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.criteria import CRITERIA, Answer, answers
from synth_audit.verdict.gate_decision import first_few
from synth_audit.verdict.privacy_budget import proven_cost

_SILENT = (
    "No audit of this run says which training records it got right, so nothing is known of single records."
)
_MOST_NAMES = 6
_LEAD = "Which training records are most at risk, and is that more than chance?"


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
ASKED = {
    "singling out": "Can somebody use the synthetic table to describe exactly one person of the real one?",
    "linkability": "Can somebody use the synthetic table to link two records of the same person?",
    "inference": "Can somebody who knows part of a person's record learn a secret from the synthetic table?",
    "membership": "Can somebody find out that a person's record was among those the generator learnt from?",
    "fidelity": "Does the synthetic table look like the real one?",
    "utility": "Does work done with the synthetic table give the results that the real one would give?",
}
"""Questions that audits answer, by what they are about."""

RISKS = (TABLE, *(Risk(name, name.capitalize(), question) for name, question in ASKED.items()))


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
        risk = TABLE.name if judged is None else about.get(judged.audit) or _declared_risk(judged.audit)
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
    if risk.name in ASKED and not any(has_numbers(a.outcome) for a in audits):
        why = "the audits for it gave no result" if audits else "the plan has no audit for it"
    return Group(risk, gates, audits, words.sentence(why), answer)


def _declared_risk(audit: str) -> str:
    """What an audit is about that had no part in the run; empty where it is not installed here."""
    info = declared(audit)
    return str(info.risk) if info else ""


def exposed_records(evidence: Evidence) -> dict[str, Any] | None:
    """The section; None where no audit of privacy could have said anything."""
    records = evidence.records
    if not records.groups and not any(o.family == "privacy" for o in evidence.outcomes):
        return None
    titles = {o.audit: o.info.title if o.info else o.audit for o in evidence.outcomes}
    known = bool(records.groups)
    return {
        "lead": _LEAD if known else _SILENT,
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
        Fact("Exposed training records", exposed, f"of {words.counted(rows, 'training record')}"),
        Fact("Control records that look exposed", alike, of_control),
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
    return tuple(r.title for r in RISKS if r.name in ASKED and r.name not in (*CRITERIA, *measured))
