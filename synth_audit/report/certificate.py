"""The certificate: two pages for the one who signs, of which the report is the annex."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synth_audit.build import build_version, resource_folder
from synth_audit.files import load_yaml
from synth_audit.findings.measurement import Measurement
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.report import words
from synth_audit.report.audits import has_numbers
from synth_audit.report.chapters import unmeasured
from synth_audit.report.gates import NO_GATE, GateView, gates_of, obstacles, verdict_view
from synth_audit.report.known_answer import sharpness
from synth_audit.report.page import alerts_of, page, subject_of
from synth_audit.report.view import Fact
from synth_audit.store.approvals import Approval
from synth_audit.store.evidence import Evidence
from synth_audit.store.history import released_evidence
from synth_audit.store.locate import LocatedEvidence
from synth_audit.store.reports import WRITTEN_BY, Marks, audit_marks, certificate_as_written, read_marks
from synth_audit.verdict.criteria import CRITERIA, Answer, AnswerState, answers
from synth_audit.verdict.own_gates import ANSWERS

COMPARED_WITH = "data-compared-with"
"""Mark of the page: the digest of the release that it compares with; absent where there is none."""

_ANEW = "`synth-audit report --certificate` writes it anew"
_MOST_REASONS, _MOST_SETTINGS = 5, 20
_OF_THE_TABLE = {
    *("name", "connections", "source", "columns", "rules"),
    *("generator", "rows", "privacy", "release", "review", "seed"),
}
"""Keys of a plan that no audit measures by, or that have a place of their own in certificate and annex."""
_SCOPE = {
    "purpose": "Purpose",
    "recipient": "Recipient",
    "environment": "Environment",
    "owner": "Owner",
    "contact": "Contact",
    "valid_until": "Valid until",
    "reports": "Reports of the same people, at most",
}
FILE = "demands.yaml"


def render_certificate(
    evidence: Evidence, approvals: Sequence[Approval] = (), previous: Evidence | None = None
) -> str:
    """The certificate as one self-contained HTML page; the same arguments give the same text, byte for byte.

    Args:
        approvals: that lie beside the evidence, whether they count or not.
        previous: evidence of the last release before this one.
    """
    return page("certificate.html.j2", it=certificate_view(evidence, approvals, previous))


def check_certificate(evidence: Evidence, text: str, found: LocatedEvidence) -> tuple[bool | None, str]:
    """Whether a page is the certificate of this evidence with the approvals beside it, and what to say of it.

    None where another build wrote it and no recorded hash can tell, or where the release that it compares
    with is not at hand.
    """
    marks = read_marks(text)
    if marks is not None and marks.written_by != build_version():
        return _check_other_build(evidence, marks.audit, text, found)
    other = marks.audit.get(COMPARED_WITH) if marks else None
    previous = released_evidence(found.workspace, other) if other and found.workspace else None
    if other and previous is None:
        return None, f"the release {other[:12]} that it compares with is not at hand"
    if text == render_certificate(evidence, found.approvals(), previous):
        return True, "rendered anew and compared byte for byte"
    return False, f"not what evidence and approvals give; {_ANEW}"


def _check_other_build(
    evidence: Evidence, marks: Marks, text: str, found: LocatedEvidence
) -> tuple[bool | None, str]:
    """Check a certificate that cannot be rendered anew, by its marks and the hash recorded of its bytes."""
    if not audit_marks(evidence).items() <= marks.items():
        return False, f"its digest, verdict or attempt is not that of the evidence; {_ANEW}"
    same = certificate_as_written(found, text.encode())
    if same:
        return True, "another build wrote it; its bytes are as they were written"
    # An approver without access to the restricted folder writes the certificate anew and records nothing.
    if same is None or counting_approvals(evidence, found.approvals()):
        return None, f"another build wrote it; {_ANEW}"
    return False, f"another build wrote it, or somebody who altered it; {_ANEW}"


def certificate_view(
    evidence: Evidence, approvals: Sequence[Approval] = (), previous: Evidence | None = None
) -> dict[str, Any]:
    """Everything the certificate shows, by its name in the template."""
    alerts = alerts_of(evidence)
    verdict = verdict_view(evidence, unmeasured=unmeasured(evidence), sound=not alerts)
    reasons = (verdict.explanation,) if alerts else _reasons(evidence)
    scope = _scope(evidence)
    marks = {**audit_marks(evidence), WRITTEN_BY: build_version()}
    return {
        "subject": subject_of(evidence),
        "alerts": alerts,
        "sign": verdict.sign,
        "headline": verdict.headline,
        "questions": verdict.questions,
        "reasons": reasons[:_MOST_REASONS],
        "more_reasons": len(reasons) - _MOST_REASONS,
        "silence": verdict.silence,
        "scope": scope,
        "criteria": residual_risks(evidence, previous),
        "sharpness": sharpness(evidence),
        "previous": previous,
        "demands": demand_rows(evidence, _said(evidence, scope, previous)),
        "signatures": tuple((a, _doubt(a, evidence)) for a in approvals),
        "waiting": _waiting(evidence, approvals),
        "certified": not alerts and evidence.verdict is Result.PASS,
        "evidence": evidence,
        "settings": _settings(evidence),
        "build": build_version(),
        "marks": marks if previous is None else {**marks, COMPARED_WITH: previous.digest},
    }


def _reasons(evidence: Evidence) -> tuple[str, ...]:
    """Why the verdict is what it is: what failed, what is open, or what came nearest to a limit."""
    gates, stopped = gates_of(evidence), obstacles(evidence)
    blockers = tuple(words.sentence(b) for b in evidence.gates.blockers)
    open_ = _open_questions(evidence, stopped)
    # What the gate on answers says, each question says by itself.
    told = [f"{g.told}." for g in stopped if g.result.gate != ANSWERS]
    if stopped or blockers:
        return (*told, *open_, *blockers)
    deciding = words.counted(sum(g.result.blocking for g in gates), "deciding gate")
    if not any(g.result.blocking for g in gates):
        return (NO_GATE, *open_)
    judged = [r.gate for r in residual_risks(evidence) if r.gate is not None and r.gate.result.blocking]
    nearest = (f"Nearest to its limit: {g.sentence}." for g in nearest_first(judged)[:1])
    missed = (g for g in gates if g.role == "advisory" and g.result.result is Result.FAIL)
    advice = (f"Advice not met: {g.sentence}." for g in missed)
    return (*open_, f"All {deciding} passed.", *nearest, *advice)


def _open_questions(evidence: Evidence, stopped: Sequence[GateView]) -> tuple[str, ...]:
    """Criteria whose state is open, but for those of gates that are named anyway."""
    named = {g.result.measurement.audit for g in stopped if g.result.measurement is not None}
    told = {o.info.risk for o in evidence.outcomes if o.info is not None and o.audit in named}
    asked = answers(evidence.outcomes, evidence.gates.results)
    return tuple(
        f"{a.criterion.capitalize()}: {a.state}. {words.sentence(a.reason)}"
        for a in asked
        if a.reason and a.criterion not in told
    )


def _scope(evidence: Evidence) -> tuple[Fact, ...]:
    review: Mapping[str, Any] = evidence.plan.get("review") or {}
    return tuple(
        Fact(label, words.moment(review[key]) if key == "valid_until" else str(review[key]))
        for key, label in _SCOPE.items()
        if review.get(key)
    )


def _said(evidence: Evidence, scope: tuple[Fact, ...], previous: Evidence | None) -> dict[str, str]:
    """Where a section stands that says something."""
    found = {"columns": "Annex: Columns"}
    if scope:
        found["scope"] = "Page 1: scope"
    if previous is not None:
        found["comparison"] = "Page 1: comparison"
    if evidence.generator.privacy.guarantee is not None:
        found["guarantee"] = "Annex: Formal privacy guarantee"
    return found


def _approvers(evidence: Evidence) -> tuple[int, Mapping[str, str]]:
    release: Mapping[str, Any] = evidence.plan.get("release") or {}
    return release.get("approvals", 0), release.get("approvers", {})


def wanted_approvals(evidence: Evidence) -> int:
    """How many approvals the plan asks for."""
    return _approvers(evidence)[0]


def counting_approvals(evidence: Evidence, approvals: Sequence[Approval]) -> tuple[Approval, ...]:
    """Those against which nothing is known but perhaps their date: genuine, about this, by an approver."""
    return tuple(a for a in approvals if not _doubt(a, evidence))


def _doubt(approval: Approval, evidence: Evidence) -> str:
    """Why an approval would not count; empty where nothing is known against it."""
    _, approvers = _approvers(evidence)
    if approval.digest != evidence.digest:
        return "about other evidence"
    if not approval.genuine:
        return "the signature does not hold"
    if approvers.get(approval.by) != approval.key:
        return "not an approver of the plan" if approvers else "the plan names no approvers"
    return ""


def _waiting(evidence: Evidence, approvals: Sequence[Approval]) -> str:
    needed, _ = _approvers(evidence)
    if not needed:
        return ""
    found = len({a.by for a in counting_approvals(evidence, approvals)})
    return f"{found} of {words.counted(needed, 'approval')} by different people"


def _settings(evidence: Evidence) -> str:
    """The settings of audits and gates that the plan states, and the audits, where it lists them."""
    stated = {key: value for key, value in evidence.plan.items() if key not in _OF_THE_TABLE}
    audits = stated.pop("audits", ())
    found = [f"audits = {', '.join(audit['name'] for audit in audits)}"] if audits else []
    found += _flat("", stated)
    for audit in audits:
        found += _flat(f"{audit['name']}.", audit.get("config", {}))
    more = f"{words.counted(len(found) - _MOST_SETTINGS, 'more setting')} in the annex"
    return "; ".join([*found[:_MOST_SETTINGS], *([more] * (len(found) > _MOST_SETTINGS))]) or "none"


def _flat(prefix: str, settings: Mapping[str, Any]) -> Iterator[str]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key} = {json.dumps(value, ensure_ascii=False)}"


@dataclass(frozen=True)
class DemandRow:
    """One demand of a guideline: measured or not, where or why not, and what became of its criterion."""

    framework: str
    demand: str
    measured: bool
    where: str
    answer: Answer | None


@dataclass(frozen=True)
class ResidualRisk:
    """One question about people: what became of it, and what remains.

    Attributes:
        gate: of those on it that decide (of all, where none does) the one whose number comes nearest to its
            limit; None where no number was judged.
        share: the number as a share of people, with its interval; a number that is none is restated as the
            share of copied rows that would give it. None where that is not known either, or where it decides
            nothing.
        compared: the number against the last release.
    """

    answer: Answer
    evidence: Evidence
    gate: GateView | None = None
    share: Measurement | None = None
    compared: str = ""

    @property
    def kind(self) -> str:
        """Its state, as of a sign."""
        return {AnswerState.WITHIN: "pass", AnswerState.BEYOND: "fail"}.get(self.answer.state, "open")

    @property
    def why(self) -> str:
        """Why that is open, or that nothing follows from it."""
        advice = self.gate is not None and not self.gate.result.blocking
        return words.sentence(self.answer.reason or ("Advice only: no gate on it decides" if advice else ""))

    @property
    def finding(self) -> str:
        """The number in words."""
        return words.sentence(self.gate.sentence.partition(";")[0]) if self.gate else ""

    @property
    def percent(self) -> str:
        """``1.5 % (0 to 3.3 %)``: a share beyond chance, cut at none and all for reading."""
        m = self.share
        if m is None:
            return "–"
        copied = " of rows like copies" if m.id.quantity == LEAK_EQUIVALENT.name else ""
        value = _cut(m.value)
        if m.interval is None:
            return words.number(value, m.unit) + copied
        low, high = _cut(m.interval.low), _cut(m.interval.high)
        places = max(1, words.decimals(m.unit, value, low=low, high=high))
        span = words.interval(low, high, m.unit, places)
        return f"{words.number(value, m.unit, places)} ({span}){copied}"

    @property
    def people(self) -> str:
        """The share in people: ``none to 1,285``."""
        if self.share is None:
            return "–"
        if self._of_subgroup:  # how many people that has is not told
            return "of those in one subgroup"
        rows, few, span = train_rows(self.evidence), self.evidence.suppression, self.share.interval
        if span is None:
            return words.people(self.share.value, rows, few)
        return words.people_interval(span.low, span.high, rows, few)

    @property
    def allowed_people(self) -> str:
        """Its limit in people, where the number that was judged counts them."""
        gate = self.gate
        if gate is None or self.share is None or self.share is not gate.measured or self._of_subgroup:
            return ""
        most, rows = gate.result.maximum, train_rows(self.evidence)
        return "" if most is None else words.people(most, rows, self.evidence.suppression)

    @property
    def _of_subgroup(self) -> bool:
        return self.share is not None and self.share.id.quantity.startswith(WORST_SUBGROUP.name)


def residual_risks(evidence: Evidence, previous: Evidence | None = None) -> tuple[ResidualRisk, ...]:
    """One for each criterion, in their order.

    Args:
        previous: evidence of the last release before this one.
    """
    gates = gates_of(evidence)
    found = []
    for answer in answers(evidence.outcomes, evidence.gates.results):
        about = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == answer.criterion}
        mine = [g for g in gates if g.result.measurement and g.result.measurement.audit in about]
        judged = nearest_first([g for g in mine if g.result.blocking] or mine)
        if not judged:
            found.append(ResidualRisk(answer, evidence))
            continue
        measured = judged[0].measured
        assert measured is not None
        if judged[0].unusable:  # a number that decides nothing is no residual risk
            found.append(ResidualRisk(answer, evidence, judged[0]))
            continue
        share = _as_share(measured, evidence.measurements)
        found.append(ResidualRisk(answer, evidence, judged[0], share, words.compared(measured, previous)))
    return tuple(found)


def nearest_first(gates: Sequence[GateView]) -> list[GateView]:
    """Gates whose number is known, the one that comes nearest to its limit first."""
    known = [
        (used(g.result, m), g) for g in gates if (m := g.measured) is not None and math.isfinite(m.value)
    ]
    return [gate for _, gate in sorted(known, key=lambda pair: -pair[0])]


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


def _cut(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _as_share(m: Measurement, others: Sequence[Measurement]) -> Measurement | None:
    """The number itself where it is a share beyond chance, else what it comes to in copied rows."""
    if m.unit == "share" and m.reference is not None and m.reference.value == 0:
        return m
    alike = (x for x in others if x.id.quantity == LEAK_EQUIVALENT.name and x.id.derived_from == m.id)
    return next((x for x in alike if math.isfinite(x.value)), None)


def train_rows(evidence: Evidence) -> int:
    """How many records the generator learnt from."""
    return evidence.tables["train"].rows if "train" in evidence.tables else 0


def frameworks() -> tuple[Mapping[str, Any], ...]:
    """The guidelines with their demands, as they stand in the file."""
    text = (resource_folder("reports_templates") / FILE).read_text(encoding="utf-8")
    return tuple(load_yaml(text))


def demand_rows(evidence: Evidence, said: Mapping[str, str]) -> tuple[DemandRow, ...]:
    """Each demand: measured or not, and where.

    Args:
        said: by section, where it stands; a section that says nothing is left out.
    """
    asked = {a.criterion: a for a in answers(evidence.outcomes, evidence.gates.results)}
    return tuple(
        DemandRow(
            framework["name"] if i == 0 else "",
            d["demand"],
            *_measured(d, evidence, said),
            asked.get(d.get("criterion")),
        )
        for framework in frameworks()
        for i, d in enumerate(framework["demands"])
    )


def _measured(demand: Mapping[str, Any], evidence: Evidence, said: Mapping[str, str]) -> tuple[bool, str]:
    """Whether it is measured or stated, and where; else why not."""
    if where := said.get(demand.get("section", "")):
        return True, where
    asked = _audits(demand, evidence)
    measured = [o.info.title for o in evidence.outcomes if o.audit in asked and o.info and has_numbers(o)]
    if measured:
        return True, f"Annex: {', '.join(measured)}"
    return False, demand.get("open", "no audit of this run measures it")


def _audits(demand: Mapping[str, Any], evidence: Evidence) -> set[str]:
    criterion = demand.get("criterion")
    assert criterion is None or criterion in CRITERIA
    about = {o.audit for o in evidence.outcomes if o.info is not None and o.info.risk == criterion}
    return about if criterion else set(demand.get("audits", ()))
