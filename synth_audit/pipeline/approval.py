"""Who approves what, and whether a release may rest on it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from synth_audit.errors import ApprovalMissing, DataError, PlanError, ReleaseRefused
from synth_audit.findings.verdict import Result
from synth_audit.pipeline.verify import Check
from synth_audit.plan.plan import Plan
from synth_audit.plan.sections import ReleaseChoice
from synth_audit.store.approvals import Approval, approvals_in, public_text, read_key
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.journal import Journal
from synth_audit.store.locate import LocatedEvidence, checked_evidence, locate_newest
from synth_audit.store.workspace import Workspace

_LONGEST_NOTE, _LONGEST_NAME = 1000, 200
"""Letters."""

_NOT_NAMED = "the plan does not name this person with this key"

_CLOCK = "set the clock of this machine right; the audit's time stands in its certificate"


def approve(
    found: LocatedEvidence, *, by: str, key: Path, until: date, note: str = "", now: datetime | None = None
) -> tuple[Approval, Path]:
    """Sign evidence and put the approval beside it.

    Returns:
        The approval, and where it lies.

    Raises:
        DataError: the evidence was altered, or the key cannot be used.
        ReleaseRefused: the evidence does not pass: there is nothing to approve.
        PlanError: the plan does not know this person with this key, or a date or text is none.
    """
    now = now or datetime.now(UTC)
    evidence = checked_evidence(found)
    if evidence.verdict is not Result.PASS:
        raise ReleaseRefused(
            f"there is nothing to approve: the verdict is {evidence.verdict}",
            where=str(found.file),
            expected="evidence that passes",
            fix="the certificate says what holds the release",
        )
    private = read_key(key)
    unsigned = Approval(
        digest=evidence.digest,
        table=evidence.table,
        by=signer_name(by),
        key=public_text(private),
        signed=now.isoformat(timespec="seconds"),
        until=until.isoformat(),
        note=note.strip(),
    )
    if len(unsigned.note) > _LONGEST_NOTE or not unsigned.note.isprintable():
        raise PlanError("the note is no line of text", where="--note", expected=f"{_LONGEST_NOTE} letters")
    if expired(until, now):
        raise PlanError("the approval would be over already", where="--until", expected="today or later")
    choice = release_choice(evidence)
    if choice is not None and choice.approvers and choice.approvers.get(unsigned.by) != unsigned.key:
        known = (
            "this person with another key" if unsigned.by in choice.approvers else "no approver of this name"
        )
        raise PlanError(
            f"the plan names {known}",
            where="release.approvers",
            expected=f"one of {', '.join(sorted(choice.approvers))}, each with the key that the plan has",
            fix=f"have the plan's owner write `{unsigned.by}: {unsigned.key}` there, and run the audit again",
        )
    approval = unsigned.signed_with(private)
    if fault := fault_of(approval, evidence, now):
        raise DataError(f"the approval would not count: {fault}", where=str(found.file), fix=_CLOCK)
    return approval, found.put_approval(approval)


def signer_name(by: str) -> str:
    """The name of a person who signs; raises ``PlanError`` where it is no line of text."""
    name = by.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise PlanError(
            "the signer's name is no line of text", where="--by", expected=f"1 to {_LONGEST_NAME} letters"
        )
    return name


def release_choice(evidence: Evidence) -> ReleaseChoice | None:
    """Under which terms the plan that was audited releases; None where it names no target."""
    return release_terms(evidence).release


def release_terms(evidence: Evidence) -> Plan:
    """Release and review of the plan that was audited.

    Raises:
        PlanError: the plan in the evidence is none of this version.
    """
    try:
        return Plan.model_validate({key: evidence.plan.get(key) for key in ("release", "review")})
    except ValueError:
        raise PlanError("the plan in the evidence cannot be read", where="release") from None


def fault_of(approval: Approval, evidence: Evidence, now: datetime) -> str:
    """Why an approval does not count for this evidence, whoever signed it; empty where it does.

    A day too late is no fault here, see :func:`expired`.
    """
    if approval.digest != evidence.digest or approval.table != evidence.table:
        return "it is about other evidence"
    if not approval.genuine:
        return "its signature does not hold: it was altered, or signed with another key"
    if approval.moment > now:
        return "it is dated in the future"
    if approval.moment < _time(evidence.created):
        return "it is dated before the audit that it approves"
    return ""


def fault_today(approval: Approval, evidence: Evidence, choice: ReleaseChoice | None, now: datetime) -> str:
    """Why a release on these terms may not rest on an approval today; empty where it may."""
    if fault := fault_of(approval, evidence, now):
        return fault
    if choice is None or choice.approvers.get(approval.by) != approval.key:
        return _NOT_NAMED
    return f"it was valid until {approval.until}" if expired(approval.last_day, now) else ""


def _time(text: str) -> datetime:
    """A moment in evidence or journal; the end of time where it is none, so that nothing is after it."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def expired(last_day: date, now: datetime) -> bool:
    """True after the end of a day in UTC."""
    return now.astimezone(UTC).date() > last_day


def refuse_unless_approved(
    plan: Plan,
    evidence: Evidence,
    approvals: Sequence[Approval],
    journal: Journal | None,
    now: datetime | None = None,
) -> None:
    """Raise ``ReleaseRefused`` unless as many different people approved as the plan asks for, and today.

    Args:
        approvals: that lie beside the evidence. journal: knows of times that a clock must not lie before.
    """
    now = now or datetime.now(UTC)
    if plan.review is not None and plan.review.valid_until is not None:
        if expired(plan.review.valid_until, now):
            raise _refusal(
                f"the plan's review was valid until {plan.review.valid_until}",
                "look at purpose and recipient again, set `review.valid_until` anew and run the audit again",
            )
        _refuse_turned_clock(journal, now)
    choice = plan.release
    if choice is None or not choice.approvals:
        return
    _refuse_turned_clock(journal, now)
    names: set[str] = set()  # each person counts once
    faults = []
    for approval in approvals:
        if fault := fault_today(approval, evidence, choice, now):
            faults.append(f"{approval.fingerprint}: {fault}")
        else:
            names.add(approval.by)
    if len(names) >= choice.approvals:
        return
    waiting = sorted(set(choice.approvers) - names)
    refused = f" Not counted: {'; '.join(faults[:5])}." if faults else ""
    raise ApprovalMissing(
        f"release refused: waiting for approval, {len(names)} of {choice.approvals} are there.{refused}",
        where="release.approvals",
        expected=f"{choice.approvals} different people of {', '.join(sorted(choice.approvers))}",
        fix=f"{' or '.join(waiting)} reads the certificate and runs `synth-audit approve EVIDENCE --by NAME "
        "--key FILE --until DATE`; then release again",
    )


def approved_release(plan: Plan, workspace: Workspace) -> str:
    """Whether a release waits no longer.

    Returns:
        The digest of the newest audit and the names of its approvals, where they suffice and it is not
        released. Else empty.

    Raises:
        DataError: the evidence cannot be read, or was altered.
    """
    store = evidence_store(workspace)
    newest, out = store.newest_digest(), store.released()
    if newest is None or (out is not None and out.digest == newest):
        return ""
    found = locate_newest(workspace)
    approvals = approvals_in(found.filed().files)
    if not approvals:
        return ""
    evidence = checked_evidence(found)
    if evidence.verdict is not Result.PASS or evidence.plan_sha256 != plan.digest:
        return ""
    try:
        refuse_unless_approved(plan, evidence, approvals, found.journal)
    except ReleaseRefused:
        return ""
    return "+".join((newest, *(a.fingerprint for a in approvals)))


def approval_checks(evidence: Evidence, approvals: Iterable[Approval]) -> Iterator[Check]:
    """Each approval: whether somebody signed it whom the plan names. One that is over stays signed."""
    now, choice = datetime.now(UTC), release_choice(evidence)
    for approval in approvals:
        what = f"approval {approval.fingerprint}"
        over = ", which is over" if expired(approval.last_day, now) else ""
        told = f"{approval.by}, signed {approval.signed}, until {approval.until}{over}"
        if fault := fault_of(approval, evidence, now):
            yield Check(what, False, fault)
        elif choice is None or not choice.approvers:
            yield Check(what, None, f"{told}; whose key it is the plan does not say")
        elif choice.approvers.get(approval.by) != approval.key:
            yield Check(what, False, f"{told}: {_NOT_NAMED}")
        else:
            yield Check(what, True, told)


def _refuse_turned_clock(journal: Journal | None, now: datetime) -> None:
    """What was audited or released lies in the past: else a clock was set back, and nothing ever ends."""
    known = [e.created for e in journal.audits] + [r.time for r in journal.releases] if journal else []
    if any(_time(text) > now for text in known if text):
        raise _refusal("the clock of this machine lies before what the journal holds", _CLOCK)


def _refusal(what: str, fix: str) -> ReleaseRefused:
    return ReleaseRefused(f"release refused: {what}", where="release", fix=fix)
