"""The sections of the report, each built by one function from the evidence; the page is their list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.examination.exposed_records import LIKELY
from synth_audit.findings.measurement import Series
from synth_audit.findings.sensitivity import ExposedGroup, Subgroup
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report import words
from synth_audit.report.audits import AuditView, has_numbers, pictures_of
from synth_audit.report.gates import GateView
from synth_audit.report.interval_charts import examples
from synth_audit.report.known_answer import MeasurementSensitivity, known_answer, sensitivities
from synth_audit.report.view import Cells, Chapter, Fact
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.criteria import Answer, answers
from synth_audit.verdict.gate_decision import first_few
from synth_audit.verdict.privacy_budget import proven_cost

ANCHOR = "exposed-records"
_SILENT = (
    "No audit of this run says which training records it got right, so nothing is known of single records."
)
_MOST_NAMES = 6
_LEAD = "Which training records are most at risk, and is that more than chance?"


@dataclass(frozen=True)
class Risk:
    """A section of the report that audits belong to."""

    name: str
    title: str
    question: str
    silence: str

    @property
    def threat(self) -> bool:
        """True for a risk to people, false for a kind of usefulness."""
        return self.name not in ("fidelity", "utility")


RISKS = (
    Risk(
        "singling out",
        "Singling out",
        "Can somebody use the synthetic table to describe exactly one person of the real one?",
        "whether single people can be picked out",
    ),
    Risk(
        "linkability",
        "Linkability",
        "Can somebody use the synthetic table to find out that two records belong to the same person?",
        "whether records of one person can be linked",
    ),
    Risk(
        "inference",
        "Inference",
        "Can somebody who knows part of a person's record learn a secret from the synthetic table?",
        "whether secrets about a person can be learnt",
    ),
    Risk(
        "membership",
        "Membership",
        "Can somebody find out that a person's record was among those the generator learnt from?",
        "whether it can be found out who was in the real table",
    ),
    Risk(
        "fidelity",
        "Fidelity",
        "Does the synthetic table look like the real one?",
        "whether the synthetic table resembles the real one",
    ),
    Risk(
        "utility",
        "Utility",
        "Does work done with the synthetic table give the results that the real one would give?",
        "whether the synthetic table is of any use",
    ),
)


def chapters(evidence: Evidence, gates: Sequence[GateView]) -> tuple[Chapter, ...]:
    """Every section after the first screen, in reading order."""
    outcomes, generator, found = evidence.outcomes, evidence.generator, sensitivities(evidence)
    silent = [(_link(i), o) for i, o in enumerate(outcomes, 1) if o.status is not Status.MEASURED]
    reading = {"level": words.percent_level(evidence.level), "examples": examples()}
    guarantee = certificate(generator.privacy, outcomes, generator.training)
    parts = (
        Chapter("how-to-read", "How to read this report", "how_to_read.html.j2", reading),
        known_answer(evidence, found),
        Chapter("no-result", "Audits without a result", "no_result.html.j2", silent) if silent else None,
        *(_about(risk, evidence, gates, found) for risk in RISKS if risk.threat),
        exposed_records(evidence),
        *(_about(risk, evidence, gates, found) for risk in RISKS if not risk.threat),
        _unplaced(evidence, gates),
        Chapter("warnings", "Warnings", "warnings.html.j2", evidence.notices) if evidence.notices else None,
        Chapter("columns", "Columns", "columns.html.j2", evidence.columns),
        Chapter("certificate", "Formal privacy guarantee", "guarantee.html.j2", guarantee),
        Chapter("evidence", "Evidence", "evidence.html.j2", {"details": _details(evidence)}),
    )
    return tuple(c for c in parts if c is not None)


def exposed_records(evidence: Evidence) -> Chapter | None:
    """The chapter; None where no audit of privacy could have said anything."""
    records = evidence.records
    if not records.groups and not any(o.family == "privacy" for o in evidence.outcomes):
        return None
    titles = {o.audit: o.info.title if o.info else o.audit for o in evidence.outcomes}
    known = bool(records.groups)
    body = {
        "lead": _LEAD if known else _SILENT,
        "likely": words.bare_number(LIKELY),
        "facts": _record_facts(evidence) if known else (),
        "groups": _groups(records.groups, titles, evidence.suppression),
        "subgroups": _subgroups(records.subgroups, titles),
    }
    return Chapter(ANCHOR, "Most exposed records", "exposed.html.j2", body)


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


def certificate(
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


def _about(
    risk: Risk, evidence: Evidence, gates: Sequence[GateView], found: Sequence[MeasurementSensitivity]
) -> Chapter:
    """The section of one risk, with its audits."""
    mine = [(i, o) for i, o in enumerate(evidence.outcomes, 1) if o.info and o.info.risk == risk.name]
    measured = sum(has_numbers(o) for _, o in mine)
    answer = {a.criterion: a for a in answers(evidence.outcomes, evidence.gates.results)}.get(risk.name)
    body = {
        "question": risk.question,
        "alarm": _alarm(risk, [o for _, o in mine], measured, answer),
        "audits": [AuditView(o, [w for w in found if w.outcome is o], gates, _link(i)) for i, o in mine],
    }
    return Chapter(
        f"risk-{risk.name.replace(' ', '-')}",
        risk.title,
        "risk.html.j2",
        body,
        state="missing" if not measured or (answer and answer.reason) else "measured",
        note=_coverage(len(mine), measured, answer),
    )


def _coverage(configured: int, measured: int, answer: Answer | None) -> str:
    if answer is not None:
        return str(answer.state)
    if not configured:
        return "not measured"
    if not measured:
        return f"not measured ({words.counted(configured, 'audit')} without a result)"
    if measured < configured:
        return f"{measured} of {words.counted(configured, 'audit')} gave a result"
    return f"measured by {words.counted(measured, 'audit')}"


def _alarm(risk: Risk, outcomes: Sequence[AuditOutcome], measured: int, answer: Answer | None) -> str:
    if measured and (answer is None or not answer.reason):
        return ""
    why = "The audits for it gave no result" if outcomes else "The plan has no audit for it"
    if measured and answer is not None:
        why = words.sentence(answer.reason, end="")
    return f"{why}: this report does not say {risk.silence}."


def _unplaced(evidence: Evidence, gates: Sequence[GateView]) -> Chapter | None:
    known = {risk.name for risk in RISKS}
    lost = [(i, o) for i, o in enumerate(evidence.outcomes, 1) if o.info is None or o.info.risk not in known]
    if not lost:
        return None
    audits = [AuditView(o, (), gates, _link(i)) for i, o in lost]
    question = "These audits could not be loaded, so their section is not known."
    body = {"question": question, "alarm": "", "audits": audits}
    return Chapter("unplaced", "Audits that could not be placed", "risk.html.j2", body)


def _details(evidence: Evidence) -> dict[str, str]:
    """What the audit was told to do, as text."""

    def as_yaml(value: object) -> str:
        return yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True)

    return {
        "Plan": as_yaml(evidence.plan),
        "Generator configuration": as_yaml(evidence.generator.config),
        "Gate suite": json.dumps(_plain(evidence.gates.suite), indent=2, ensure_ascii=False),
    }


def _link(place: int) -> str:
    return f"audit-{place}"


def _plain(value: object) -> object:
    return json.loads(json.dumps(value, default=str))


def unmeasured(evidence: Evidence) -> tuple[str, ...]:
    """Kinds of usefulness of which nothing is known; the criteria about people stand by themselves."""
    measured = {o.info.risk for o in evidence.outcomes if o.info is not None and has_numbers(o)}
    return tuple(risk.title for risk in RISKS if not risk.threat and risk.name not in measured)
