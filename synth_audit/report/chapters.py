"""The sections of the report, each built by one function from the evidence; the page is their list."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import yaml

from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.verdict import Result
from synth_audit.judging.criteria import Answer, answers
from synth_audit.report import words
from synth_audit.report.audits import audit_view, has_numbers
from synth_audit.report.examples import examples
from synth_audit.report.exposed_records import exposed_records
from synth_audit.report.known_answer import known_answer
from synth_audit.report.measurement_sensitivity import sensitivities
from synth_audit.report.privacy_account import certificate
from synth_audit.report.table_check_words import check_sentence
from synth_audit.report.view import Cells, Chapter, Fact, GateView, RiskView
from synth_audit.store.evidence import Evidence


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

Builder = Callable[[Evidence, Sequence[GateView]], "Chapter | None"]


def chapters(evidence: Evidence, gates: Sequence[GateView]) -> tuple[Chapter, ...]:
    """Every section after the first screen, in reading order."""
    builders: tuple[Builder, ...] = (
        _how_to_read,
        known_answer,
        _no_result,
        *(_risk_builder(risk) for risk in RISKS if risk.threat),
        exposed_records,
        *(_risk_builder(risk) for risk in RISKS if not risk.threat),
        _unplaced,
        _warnings,
        _columns,
        _certificate,
        _identity,
    )
    built = (build(evidence, gates) for build in builders)
    return tuple(c for c in built if c is not None)


def _how_to_read(evidence: Evidence, _: Sequence[GateView]) -> Chapter:
    body = {"level": words.percent_level(evidence.level), "examples": examples()}
    return Chapter("how-to-read", "How to read this report", "how_to_read.html.j2", body)


def _no_result(evidence: Evidence, _: Sequence[GateView]) -> Chapter | None:
    silent = [(i, o) for i, o in enumerate(evidence.outcomes, 1) if o.status is not Status.MEASURED]
    if not silent:
        return None
    rows = tuple(
        (_link(i), o.info.title if o.info else o.audit, str(o.status), words.sentence(o.reason))
        for i, o in silent
    )
    return Chapter("no-result", "Audits without a result", "no_result.html.j2", rows)


def _risk_builder(risk: Risk) -> Builder:
    def build(evidence: Evidence, gates: Sequence[GateView]) -> Chapter:
        mine = [(i, o) for i, o in enumerate(evidence.outcomes, 1) if o.info and o.info.risk == risk.name]
        found = sensitivities(evidence, gates)
        views = tuple(audit_view(o, [w for w in found if w.outcome is o], gates, _link(i)) for i, o in mine)
        measured = sum(has_numbers(o) for _, o in mine)
        answer = {a.criterion: a for a in answers(evidence.outcomes, evidence.gates.results)}.get(risk.name)
        return Chapter(
            anchor=f"risk-{risk.name.replace(' ', '-')}",
            title=risk.title,
            template="risk.html.j2",
            body=RiskView(risk.question, _alarm(risk, [o for _, o in mine], measured, answer), views),
            state="missing" if not measured or (answer and answer.reason) else "measured",
            note=_coverage(len(mine), measured, answer),
        )

    return build


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
    lost = [(i, o) for i, o in enumerate(evidence.outcomes, 1) if not _placed(o)]
    if not lost:
        return None
    views = tuple(audit_view(o, (), gates, _link(i)) for i, o in lost)
    body = RiskView("These audits could not be loaded, so their section is not known.", "", views)
    return Chapter("unplaced", "Audits that could not be placed", "risk.html.j2", body)


def _placed(outcome: AuditOutcome) -> bool:
    return outcome.info is not None and outcome.info.risk in {r.name for r in RISKS}


def _warnings(evidence: Evidence, _: Sequence[GateView]) -> Chapter | None:
    if not evidence.notices:
        return None
    body = tuple(words.sentence(w) for w in evidence.notices)
    return Chapter("warnings", "Warnings", "warnings.html.j2", body)


def _columns(evidence: Evidence, _: Sequence[GateView]) -> Chapter:
    rows = tuple(
        (
            c.name,
            c.kind,
            "declared" if c.kind_declared else "inferred",
            ", ".join(r.replace("_", " ") for r in c.roles) or "feature",
            "declared" if c.domain_declared else "inferred",
            "–" if c.categories is None else f"{c.categories:,}",
        )
        for c in evidence.columns
    )
    header = ("Column", "Kind", "Kind was", "Roles", "Range or categories", "Categories")
    body = Cells("Columns of the table and what was known of them", header, rows)
    return Chapter("columns", "Columns", "columns.html.j2", body)


def _certificate(evidence: Evidence, _: Sequence[GateView]) -> Chapter:
    generator = evidence.generator
    body = certificate(generator.privacy, evidence.outcomes, generator.training)
    return Chapter("certificate", "Formal privacy guarantee", "guarantee.html.j2", body)


def _identity(evidence: Evidence, _: Sequence[GateView]) -> Chapter:
    tables = tuple(
        (name, f"{t.rows:,}", how, value)
        for name, t in evidence.tables.items()
        for how, value in (("under the salt", t.hmac), ("plain", t.sha256))
        if value
    )
    body = {
        "facts": _identity_facts(evidence),
        "tables": Cells(
            "Content of the tables, independent of row order", ("Table", "Rows", "Hash", "SHA-256"), tables
        ),
        "checks": _checks(evidence),
        "versions": Cells("Software", ("Package", "Version"), tuple(evidence.versions.items())),
        "timings": _timings(evidence),
        "details": (
            Fact("Plan", yaml.safe_dump(_plain(evidence.plan), sort_keys=False, allow_unicode=True)),
            Fact(
                "Generator configuration",
                yaml.safe_dump(_plain(evidence.generator.config), sort_keys=False, allow_unicode=True),
            ),
            Fact("Gate suite", json.dumps(_plain(evidence.gates.suite), indent=2, ensure_ascii=False)),
        ),
    }
    return Chapter("evidence", "Evidence", "evidence.html.j2", body)


def _identity_facts(evidence: Evidence) -> tuple[Fact, ...]:
    return (
        Fact("Digest of the evidence", evidence.digest or "not sealed", "SHA-256 of everything below"),
        Fact("Plan", evidence.plan_sha256, "SHA-256"),
        Fact("Gate suite", evidence.gates.suite_sha256, f"SHA-256 of {evidence.gates.suite_name}"),
        Fact("Audited", words.moment(evidence.created), "outside the digest"),
        Fact(
            "Attempt",
            f"{evidence.attempt:,} on this table" if evidence.attempt else "outside a workspace, not counted",
            f"line {evidence.ledger.lines:,} of its ledger, {evidence.ledger.digest}"
            if evidence.ledger
            else "",
        ),
        Fact(
            "Salt",
            evidence.salt_commitment or "none",
            "commitment to the secret that decided split, fits and draws, those of audits too"
            if evidence.salt_commitment
            else "no secret had a part in what the audits drew: the draws can be predicted",
        ),
        Fact("Confidence level", words.percent_level(evidence.level)),
        Fact("Suppression limit", str(evidence.suppression), "no smaller count of records is shown"),
        Fact("Version of the evidence format", evidence.schema_version),
    )


def _checks(evidence: Evidence) -> Cells:
    states = {True: "met", False: "not met", None: "could not be evaluated"}
    checks = evidence.table_checks
    rows = tuple(
        (check_sentence(c), states[c.met], "" if c.met else words.sentence(c.explanation)) for c in checks
    )
    held = sum(c.met is True for c in checks)
    caption = f"Checks of the synthetic table itself: {held:,} of {len(checks):,} hold"
    return Cells(caption, ("Check", "State", "What was found"), rows)


def _timings(evidence: Evidence) -> Cells:
    rows = tuple((k, f"{words.number(v, places=1)} s") for k, v in evidence.timings.items())
    return Cells("Time taken", ("Step", "Seconds"), rows)


def _link(place: int) -> str:
    return f"audit-{place}"


def _plain(value: object) -> object:
    return json.loads(json.dumps(value, default=str))


def signing(evidence: Evidence, *, sound: bool) -> dict[str, str]:
    """What a signature under this report confirms."""
    allowed = sound and evidence.verdict is Result.PASS
    return {
        "statement": (
            "I have read this report, including what was not measured, and decide:"
            if allowed
            else "I have read this report. The table stays in; my signature does not release it."
        ),
        "yes": "the synthetic table may be released" if allowed else "",
        "no": "the synthetic table may not be released" if allowed else "",
        "digest": evidence.digest or "not sealed",
    }
