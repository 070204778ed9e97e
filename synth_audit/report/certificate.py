"""The certificate: two pages for the one who signs, of which the report is the annex."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synth_audit.build import build_version
from synth_audit.findings.verdict import Result
from synth_audit.report import words
from synth_audit.report.chapters import unmeasured
from synth_audit.report.criteria import (
    demand_rows,
    nearest_first,
    residual_risks,
    sharpness,
)
from synth_audit.report.gates import GateView, gates_of, obstacles, verdict_view
from synth_audit.report.page import alerts_of, page, subject_of
from synth_audit.report.view import Fact
from synth_audit.store.approvals import Approval
from synth_audit.store.evidence import Evidence
from synth_audit.store.history import released_evidence
from synth_audit.store.locate import LocatedEvidence
from synth_audit.store.reports import WRITTEN_BY, Marks, audit_marks, certificate_as_written, read_marks
from synth_audit.verdict.criteria import answers
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
        return ("No gate decides about this table, and without one nothing may leave.", *open_)
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
