"""What pages say of signatures: how many a plan asks for, which of them count, and why others do not."""

from collections.abc import Mapping, Sequence
from typing import Any

from synth_audit.report import words
from synth_audit.store.approvals import Approval
from synth_audit.store.evidence import Evidence


def _approvers(evidence: Evidence) -> tuple[int, Mapping[str, str]]:
    release: Mapping[str, Any] = evidence.plan.get("release") or {}
    return release.get("approvals", 0), release.get("approvers", {})


def wanted_approvals(evidence: Evidence) -> int:
    """How many approvals the plan asks for."""
    return _approvers(evidence)[0]


def counting_approvals(evidence: Evidence, approvals: Sequence[Approval]) -> tuple[Approval, ...]:
    """Those against which nothing is known but perhaps their date: genuine, about this, by an approver."""
    return tuple(a for a in approvals if not doubt_of(a, evidence))


def doubt_of(approval: Approval, evidence: Evidence) -> str:
    """Why an approval would not count; empty where nothing is known against it."""
    _, approvers = _approvers(evidence)
    if approval.digest != evidence.digest:
        return "about other evidence"
    if not approval.genuine:
        return "the signature does not hold"
    if approvers.get(approval.by) != approval.key:
        return "not an approver of the plan" if approvers else "the plan names no approvers"
    return ""


def waiting(evidence: Evidence, approvals: Sequence[Approval]) -> str:
    """``1 of 2 approvals by different people``; empty where the plan asks for none."""
    needed, _ = _approvers(evidence)
    if not needed:
        return ""
    found = len({a.by for a in counting_approvals(evidence, approvals)})
    return f"{found} of {words.counted(needed, 'approval')} by different people"
